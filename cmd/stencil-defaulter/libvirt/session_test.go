package libvirt

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLibvirtIsShownNoOtherProgram opens twice, as after the death of a worker, with another QEMU the second time.
func TestLibvirtIsShownNoOtherProgram(t *testing.T) {
	root, installed := t.TempDir(), t.TempDir()
	for _, tc := range []struct{ programs, want []string }{
		{[]string{"qemu-system-x86_64", "qemu-system-arm", "dmidecode"}, []string{"qemu-system-x86_64"}},
		{[]string{"qemu-kvm", "qemu-system-aarch64"}, []string{"qemu-kvm", "qemu-system-aarch64", "qemu-system-x86_64"}},
	} {
		for _, program := range tc.programs {
			if err := os.WriteFile(filepath.Join(installed, program), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", installed)
		if err := wipe(root); err != nil {
			t.Fatal(err)
		}
		if err := show(root); err != nil {
			t.Fatal(err)
		}
		shown, err := os.ReadDir(os.Getenv("PATH"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, each := range shown {
			names = append(names, each.Name())
			if target, err := os.Readlink(filepath.Join(os.Getenv("PATH"), each.Name())); err != nil || target != filepath.Join(installed, each.Name()) {
				t.Errorf("%s is %s (%v)", each.Name(), target, err)
			}
		}
		if !slices.Equal(names, tc.want) {
			t.Errorf("libvirt is shown %v, want %v", names, tc.want)
		}
	}
}
