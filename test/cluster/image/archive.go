package image

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// File is a file of an image.
type File struct {
	// Name is its path without the first slash. A name that ends with a slash is a folder.
	Name string
	Mode int64
	// From is the path of its content on this host; Content is used if it is empty.
	From    string
	Content string
	// Link is the destination of a symbolic link.
	Link string
	// Owner is its user and group.
	Owner int
	// BindsPorts gives the program the file capability cap_net_bind_service.
	BindsPorts bool
}

// created is the time of all files, so that equal content has equal digests.
var created = time.Unix(0, 0)

// bindService is the attribute security.capability with cap_net_bind_service permitted and effective, see capability.h of Linux, version 2.
var bindService = func() string {
	const revision2, effective, netBindService = 0x02000000, 1, 10
	var value []byte
	for _, word := range []uint32{revision2 | effective, 1 << netBindService, 0, 0, 0} {
		value = binary.LittleEndian.AppendUint32(value, word)
	}
	return string(value)
}()

// writeFiles writes files to an archive.
func writeFiles(archive *tar.Writer, files []File) error {
	for _, file := range files {
		if err := writeFile(archive, file); err != nil {
			return fmt.Errorf("adding %s: %w", file.Name, err)
		}
	}
	return nil
}

func writeFile(archive *tar.Writer, file File) error {
	header := &tar.Header{Name: file.Name, Mode: file.Mode, ModTime: created, Uid: file.Owner, Gid: file.Owner, Format: tar.FormatPAX}
	content := io.Reader(strings.NewReader(file.Content))
	switch {
	case file.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, file.Link
	case strings.HasSuffix(file.Name, "/"):
		header.Typeflag = tar.TypeDir
	case file.From != "":
		source, err := os.Open(file.From)
		if err != nil {
			return err
		}
		defer source.Close()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Size, content = info.Size(), source
	default:
		header.Size = int64(len(file.Content))
	}
	if file.BindsPorts {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": bindService}
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}

// superfluous are folders of Debian's packages that no program in an image reads.
var superfluous = []string{"dev", "proc", "sys", "tmp", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache", "var/lib/apt", "var/log", "boot"}

// writeFolder writes the files of a root file system to an archive.
func writeFolder(archive *tar.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		left := slices.Contains(superfluous, name)
		if left && !entry.IsDir() {
			return nil
		}
		if err := writeEntry(archive, name, path, entry); err != nil {
			return fmt.Errorf("adding %s: %w", name, err)
		}
		if left {
			return fs.SkipDir
		}
		return nil
	})
}

func writeEntry(archive *tar.Writer, name, path string, entry fs.DirEntry) (err error) {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.ModTime, header.AccessTime, header.ChangeTime = name, created, time.Time{}, time.Time{}
	header.Uname, header.Gname = "", ""
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		header.Uid, header.Gid = int(owner.Uid), int(owner.Gid)
	}
	if info.IsDir() {
		header.Name += "/"
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return errors.Join(err, content.Close())
}
