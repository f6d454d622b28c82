package formats

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
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
	raw := disktest.Raw(t, disktest.MiB, disktest.Range{Offset: 0, Length: 4096})
	flat := filepath.Join(t.TempDir(), "flat.vmdk")
	if err := os.WriteFile(flat, []byte("# Disk DescriptorFile\nRW 2048 FLAT \"disk.raw\" 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, image, file, want string }{
		{"backing file of qcow2", disktest.Made(t, raw, "backing.qcow2", "create -q -f qcow2 -b disk.raw -F raw backing.qcow2"), "disk.raw", `qcow2: it has the backing file "disk.raw": convert it with qemu-img convert, so that it holds the whole disk`},
		{"data file of qcow2", disktest.Made(t, raw, "data.qcow2", "create -q -f qcow2 -o data_file=data.raw,data_file_raw=on data.qcow2 1M"), "data.raw", "qcow2: its data is in another file: convert it with qemu-img convert, without data_file"},
		{"flat extent of VMDK", flat, "disk.raw", `vmdk: the disk is in another file (extent "RW 2048 FLAT \"disk.raw\" 0"): only disks in one file are read; convert it to streamOptimized`},
		{"parent of VMDK", disktest.Made(t, raw, "snapshot.vmdk", "convert -f raw -O vmdk disk.raw parent.vmdk", "create -q -f vmdk -b parent.vmdk -F vmdk snapshot.vmdk"), "parent.vmdk", "vmdk: a snapshot of another disk (parentCID "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// The names are relative to the image.
			t.Chdir(filepath.Dir(tc.image))
			if err := os.WriteFile(tc.file, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
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
			testfile.Read(t, tc.file)
			if !opened() {
				t.Error("the watch does not work")
			}
		})
	}
}
