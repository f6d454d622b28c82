// Package inode has what the readers of file systems return: the type and size of a file, never its data.
package inode

// Type is the type of a file.
type Type int

// The types of files.
const (
	Other Type = iota
	Regular
	Directory
	Symlink
)

// Info is what an inode contains.
type Info struct {
	Type Type
	// Size is the size of a regular file in bytes. It is what the file system claims.
	Size uint64
}

// TypeOf returns the type in the mode of an inode (S_IFMT of stat.h).
func TypeOf(mode uint16) Type {
	switch mode & 0xF000 {
	case 0x8000:
		return Regular
	case 0x4000:
		return Directory
	case 0xA000:
		return Symlink
	}
	return Other
}

// Visit is called with each name of a directory and the number of its inode, without "." and "..". Iteration ends with its first
// error, which is returned as it is.
type Visit func(name string, number uint64) error
