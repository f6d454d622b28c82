//go:build debian && linux && amd64

package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/hack/release/debian"
)

// TestTheToolchainBuildsStencilDefaulter builds the real program for virt-launcher's C library, with compilers that were unpacked twice, from copies of
// the checkout in two folders. It downloads the packages that the user's cache does not have.
//
//suite:debian
func TestTheToolchainBuildsStencilDefaulter(t *testing.T) {
	reference := base(t, platform{"linux", "amd64"}, platform{"linux", "arm64"})
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(caches, "stencil", "debian")
	lock, err := debian.Toolchain.Lock()
	if err != nil {
		t.Fatal(err)
	}
	built, tools := map[platform][]byte{}, (*toolchain)(nil)
	var digests []string
	for _, folder := range []string{"first", "second/in/another"} {
		root := filepath.Join(t.TempDir(), folder)
		for _, each := range []string{"cmd/stencil-defaulter", "defaulting"} {
			if err := os.CopyFS(filepath.Join(root, each), os.DirFS(filepath.Join("../..", each))); err != nil {
				t.Fatal(err)
			}
		}
		r := of(t, root)
		r.debian = debian.Source{Mirror: defaultMirror, Archive: defaultArchive, Cache: filepath.Join(t.TempDir(), "cache")}
		if err := os.MkdirAll(r.debian.Cache, 0o755); err != nil {
			t.Fatal(err)
		}
		shared := r.debian
		shared.Cache = packages
		for _, p := range lock.Packages {
			if _, err := shared.Read(t.Context(), lock, p); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(packages, p.SHA256+".deb"), filepath.Join(r.debian.Cache, p.SHA256+".deb")); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.addDefaulter(t.Context(), false, reference); err != nil {
			t.Fatal(err)
		}
		tools = r.toolchain
		now := map[platform][]byte{}
		for _, on := range r.images {
			binary, err := r.build(t.Context(), launcherDefaulter, on)
			if err != nil {
				t.Fatal(err)
			}
			if before := built[on]; before != nil && !bytes.Equal(before, binary) {
				t.Errorf("%s: the program of another folder is another one", on)
			}
			built[on], now[on] = binary, binary
		}
		index, err := r.index(t.Context(), launcherDefaulter, now)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the images of two folders have digests %q", digests)
	}
	for on, machine := range map[platform]elf.Machine{{"linux", "amd64"}: elf.EM_X86_64, {"linux", "arm64"}: elf.EM_AARCH64} {
		file, err := elf.NewFile(bytes.NewReader(built[on]))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != machine {
			t.Errorf("%s: machine %s", on, file.Machine)
		}
		needs, err := file.DynamicVersionNeeds()
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, library := range needs {
			for _, need := range library.Needs {
				found = append(found, library.Name+" "+need.Dep)
				version, err := parseLibc(strings.TrimPrefix(need.Dep, "GLIBC_"))
				if err != nil || slices.Compare(version, []int{2, 34}) > 0 {
					t.Errorf("%s: it needs %s of %s, which virt-launcher's glibc does not have: %v", on, need.Dep, library.Name, err)
				}
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: it has no versions of symbols", on)
		}
		t.Logf("%s: %d bytes, %q", on, len(built[on]), found)
	}
	// Version 2.2 is older than all that it needs.
	if err := checkLibc(built[platform{"linux", "arm64"}], "2.2"); err == nil || !strings.Contains(err.Error(), "of glibc 2.17, and the image has 2.2") {
		t.Errorf("an older glibc: error %v", err)
	}
	for on, run := range map[platform][]string{
		{"linux", "amd64"}: nil,
		// With the C library for arm64 that it was linked with.
		{"linux", "arm64"}: {filepath.Join(tools.folder, "usr", "bin", emulator), "-L", filepath.Join(tools.folder, "usr", "aarch64-linux-gnu")},
	} {
		printsVersion(t, built[on], run)
	}
}

// printsVersion runs a program, by an emulator if one is given.
func printsVersion(t *testing.T, program []byte, run []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := slices.Concat(run, []string{path, "--version"})
	if output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil || !strings.Contains(string(output), "v1.2.3") {
		t.Errorf("%q prints %q, %v", command, output, err)
	}
}

// TestProgramsForARM64Run runs the programs of the other images, by an emulator.
//
//suite:debian
func TestProgramsForARM64Run(t *testing.T) {
	r := of(t, "../..")
	r.debian = debian.Source{Mirror: defaultMirror, Archive: defaultArchive}
	if err := r.addDefaulter(t.Context(), true, ""); err != nil {
		t.Fatal(err)
	}
	for _, each := range programs {
		t.Run(each.name, func(t *testing.T) {
			binary, err := r.build(t.Context(), each, platform{"linux", "arm64"})
			if err != nil {
				t.Fatal(err)
			}
			printsVersion(t, binary, []string{filepath.Join(r.toolchain.folder, "usr", "bin", emulator)})
		})
	}
}

// TestPackagesForARM64 runs QEMU and stencil-defaulter with the packages for arm64, by an emulator.
//
//suite:debian
func TestPackagesForARM64(t *testing.T) {
	r := of(t, "../..")
	r.debian = debian.Source{Mirror: defaultMirror, Archive: defaultArchive}
	if err := r.addDefaulter(t.Context(), true, ""); err != nil {
		t.Fatal(err)
	}
	on := platform{"linux", "arm64"}
	files, err := r.packaged(t.Context(), on)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := r.build(t.Context(), debianDefaulter, on)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, each := range append(files, entry{name: "stencil-defaulter", mode: 0o755, content: binary}) {
		path := filepath.Join(root, each.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if each.link != "" {
			err = os.Symlink(each.link, path)
		} else {
			err = os.WriteFile(path, each.content, os.FileMode(each.mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// libvirt is loaded when the program runs, so that it needs another one: QEMU is linked with most libraries of the image.
	for program, want := range map[string]string{"stencil-defaulter": "v1.2.3", "usr/bin/qemu-system-x86_64": "QEMU emulator version 7.2."} {
		command := exec.CommandContext(t.Context(), filepath.Join(r.toolchain.folder, "usr", "bin", emulator), "-L", root, filepath.Join(root, program), "--version")
		if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), want) {
			t.Errorf("%s prints %q, %v; want %s", program, output, err, want)
		}
	}
}
