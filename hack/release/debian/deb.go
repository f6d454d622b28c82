package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/ulikunitz/xz"
)

// Limits of one package. The largest program of the compilers has 208 MB, and the largest package 229 MB.
const (
	maxFileBytes     = 256 << 20
	maxUnpackedBytes = 384 << 20
	maxFiles         = 20000
)

// File is a regular file, or a symbolic link if Link is set. All belong to root.
type File struct {
	// Name is relative to the root.
	Name    string
	Mode    int64
	Content []byte
	Link    string
}

// unpack returns the control file of a package, and its files for which wanted returns true.
func unpack(content []byte, wanted func(name string) bool) (control []byte, files []File, err error) {
	members, err := members(content)
	if err != nil {
		return nil, nil, err
	}
	if version := string(members["debian-binary"]); version != "2.0\n" {
		return nil, nil, fmt.Errorf("format %q: want a Debian package of format 2.0", version)
	}
	inControl, err := filesOf(members["control.tar.xz"], func(name string) bool { return name == "control" })
	if err != nil {
		return nil, nil, fmt.Errorf("reading control.tar.xz: %w", err)
	}
	if len(inControl) != 1 {
		return nil, nil, errors.New("control.tar.xz has no file control")
	}
	files, err = filesOf(members["data.tar.xz"], wanted)
	if err != nil {
		return nil, nil, fmt.Errorf("reading data.tar.xz: %w", err)
	}
	return inControl[0].Content, files, nil
}

// needed reports whether a file of a package is part of the image: manuals and translations are not, and licenses are.
func needed(name string) bool {
	if rest, ok := strings.CutPrefix(name, "usr/share/doc/"); ok {
		// The folder itself can be a link to that of another package.
		return path.Base(name) == "copyright" || !strings.Contains(rest, "/")
	}
	for _, each := range []string{"usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/"} {
		if strings.HasPrefix(name, each) {
			return false
		}
	}
	return true
}

const (
	arMagic      = "!<arch>\n"
	arHeaderSize = 60
)

// members returns the members of an ar archive by their names, without the long names of GNU, which packages do not have; see ar(5).
func members(content []byte) (map[string][]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(arMagic))
	if !ok {
		return nil, errors.New("it is no Debian package: it does not begin as an ar archive")
	}
	all := map[string][]byte{}
	for len(rest) > 0 {
		if len(rest) < arHeaderSize || string(rest[58:arHeaderSize]) != "`\n" {
			return nil, errors.New("the ar archive is damaged: a header is incomplete")
		}
		name := strings.TrimSuffix(strings.TrimRight(string(rest[:16]), " "), "/")
		size, err := strconv.ParseUint(strings.TrimRight(string(rest[48:58]), " "), 10, 32)
		rest = rest[arHeaderSize:]
		if err != nil || size > uint64(len(rest)) {
			return nil, fmt.Errorf("the ar archive is damaged: member %s ends after the file", name)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("the ar archive has two members %s", name)
		}
		all[name] = rest[:size]
		// Members begin at even offsets.
		rest = rest[min(size+size%2, uint64(len(rest))):]
	}
	return all, nil
}

// filesOf returns the files of a tar archive for which wanted returns true.
func filesOf(compressed []byte, wanted func(name string) bool) ([]File, error) {
	if compressed == nil {
		return nil, errors.New("there is none; other compressions than xz are not supported")
	}
	content, err := xz.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: content, N: maxUnpackedBytes + 1}
	archive := tar.NewReader(limited)
	var files []File
	for {
		header, err := archive.Next()
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("it has more than %d bytes", maxUnpackedBytes)
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, err
		}
		file, err := fileOf(header)
		if err != nil {
			return nil, err
		}
		if file == nil || !wanted(file.Name) {
			continue
		}
		if header.Size > maxFileBytes || len(files) == maxFiles {
			return nil, fmt.Errorf("%s: at most %d files with at most %d bytes are supported", file.Name, maxFiles, maxFileBytes)
		}
		if file.Content, err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		files = append(files, *file)
	}
}

// fileOf returns an entry of a tar archive without its content, or nil for a folder.
func fileOf(header *tar.Header) (*File, error) {
	name := path.Clean(header.Name)
	if path.IsAbs(name) || !inside(name) {
		return nil, fmt.Errorf("%q is outside of the root", header.Name)
	}
	file := &File{Name: name, Mode: header.Mode & 0o777}
	switch header.Typeflag {
	case tar.TypeDir:
		return nil, nil
	case tar.TypeReg:
		if header.Mode&0o7022 != 0 {
			return nil, fmt.Errorf("%s has mode %o: files that others can write, or that run as another user, are not supported", name, header.Mode)
		}
	case tar.TypeSymlink:
		file.Link = header.Linkname
		if !path.IsAbs(file.Link) && !inside(path.Join(path.Dir(name), file.Link)) {
			return nil, fmt.Errorf("%s is a link to %q, which is outside of the root", name, file.Link)
		}
	default:
		return nil, fmt.Errorf("%s has type %q: only files, folders and symbolic links are supported", name, header.Typeflag)
	}
	return file, nil
}

// inside reports whether a clean, relative path stays in its root.
func inside(name string) bool { return name != ".." && !strings.HasPrefix(name, "../") }
