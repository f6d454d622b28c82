package formats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/internal/disktest"
)

// watch reports whether a file was opened since the last call.
func watch(t *testing.T, path string) func() bool {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if _, err := syscall.InotifyAddWatch(fd, path, syscall.IN_OPEN|syscall.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, err := syscall.Read(fd, make([]byte, 4096))
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			t.Fatal(err)
		}
		return n > 0
	}
}

func TestHostFilesAreNeverOpened(t *testing.T) {
	folder := t.TempDir()
	secret := disktest.Raw(t, disktest.MiB, disktest.Range{Offset: 0, Length: disktest.MiB})
	create := func(format, name string, arguments ...string) string {
		path := filepath.Join(folder, name)
		disktest.QEMU(t, append(append([]string{"create", "-q", "-f", format}, arguments...), path)...)
		return path
	}
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	backing := create("qcow2", "backing.qcow2", "-b", secret, "-F", "raw")
	data := filepath.Join(folder, "data.qcow2")
	disktest.QEMU(t, "create", "-q", "-f", "qcow2", "-o", "data_file="+filepath.Join(folder, "data.raw")+",data_file_raw=on", data, "1M")
	parent := disktest.Convert(t, secret, "vmdk")
	snapshot := create("vmdk", "snapshot.vmdk", "-b", parent, "-F", "vmdk")
	for _, tc := range []struct{ name, image, file, want string }{
		{"backing file of qcow2", backing, secret, fmt.Sprintf("qcow2: it has the backing file %q: convert it with qemu-img convert, so that it holds the whole disk", secret)},
		{"data file of qcow2", data, filepath.Join(folder, "data.raw"), "qcow2: its data is in another file: convert it with qemu-img convert, without data_file"},
		{"flat extent of VMDK", write("flat.vmdk", fmt.Sprintf("# Disk DescriptorFile\nRW 2048 FLAT %q 0\n", secret)), secret, fmt.Sprintf("vmdk: the disk is in another file (extent %q): only disks in one file are read; convert it to streamOptimized", fmt.Sprintf("RW 2048 FLAT %q 0", secret))},
		{"parent of VMDK", snapshot, parent, "vmdk: a snapshot of another disk (parentCID "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opened := watch(t, tc.file)
			file, size := disktest.Open(t, tc.image)
			_, err := Detect(file, size)
			var problem *disk.FormatError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("the error is\n\t%v\ninstead of\n\t%s", err, tc.want)
			}
			if opened() {
				t.Errorf("%s was opened", tc.file)
			}
			disktest.ReadFile(t, tc.file)
			if !opened() {
				t.Error("the watch does not work")
			}
		})
	}
}
