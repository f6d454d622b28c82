package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmstencil/stencil/hack/release/debian"
)

// debianDefaulter is stencil-defaulter with Debian's libvirt and QEMU.
var debianDefaulter = program{
	name:   "stencil-defaulter",
	image:  "stencil-defaulter-debian",
	module: "cmd/stencil-defaulter",
	// libvirt is loaded when it runs, so that its headers are not needed.
	tags:   "libvirt_dlopen",
	cgo:    true,
	debian: true,
	// Nodes may not have the machine types of Debian's QEMU.
	env:         []string{"STENCIL_PIN_MACHINE_TYPES=false"},
	description: "Fills in the defaults of VirtualMachines with Debian's libvirt and QEMU; pins no machine types",
}

// Debian's mirror and its archive of all versions.
const (
	defaultMirror  = "https://deb.debian.org"
	defaultArchive = "https://snapshot.debian.org/archive"
)

// lockFolder has the lock files of Debian packages in the checkout.
var lockFolder = filepath.Join("hack", "release", "debian")

// lock updates the lock files.
func (r release) lock(ctx context.Context) error {
	for _, set := range append(slices.Clone(debian.Defaulters), debian.Toolchain) {
		lock, err := set.Resolve(ctx, r.debian.Mirror, time.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", set.File, err)
		}
		if err := os.WriteFile(filepath.Join(r.root, lockFolder, set.File), lock.Marshal(), 0o644); err != nil {
			return fmt.Errorf("writing the lock file: %w", err)
		}
	}
	return nil
}

// addDefaulter adds images of stencil-defaulter to the release: with Debian's packages, and on the image of virt-launcher if it has a reference.
func (r *release) addDefaulter(ctx context.Context, packages bool, reference string) (err error) {
	if r.debian.Cache == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("-debian-cache: %w", err)
		}
		r.debian.Cache = filepath.Join(caches, "stencil", "debian")
	}
	if packages {
		r.packages = map[platform]*debian.Lock{}
		for _, set := range debian.Defaulters {
			if r.packages[platform{"linux", set.Architecture}], err = set.Lock(); err != nil {
				return fmt.Errorf("%s: %w", set.File, err)
			}
		}
	}
	if reference != "" {
		if r.launcher, err = pullLauncher(ctx, reference); err != nil {
			return fmt.Errorf("-launcher: %w", err)
		}
	}
	r.toolchain, err = unpackToolchain(ctx, r.debian)
	return err
}

// all returns the programs that have an image.
func (r release) all() []program {
	all := slices.DeleteFunc(slices.Clone(programs), func(p program) bool {
		folder, pkg := p.folder()
		_, err := os.Stat(filepath.Join(r.root, folder, pkg))
		return p.added && err != nil
	})
	if r.packages != nil {
		all = append(all, debianDefaulter)
	}
	if r.launcher != nil {
		all = append(all, launcherDefaulter)
	}
	return all
}

// packaged returns the files of the Debian packages for a platform.
func (r release) packaged(ctx context.Context, on platform) ([]entry, error) {
	lock := r.packages[on]
	if lock == nil {
		return nil, fmt.Errorf("there are no Debian packages for %s: leave it out with -platforms, or -defaulter", on)
	}
	files, err := r.debian.Files(ctx, lock)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(files))
	for i, each := range files {
		entries[i] = entry{name: each.Name, mode: each.Mode, content: each.Content, link: each.Link}
	}
	return entries, nil
}

// addDependencies adds to the provenance what only images of stencil-defaulter have.
func (r release) addDependencies(predicate *provenance) error {
	definition := &predicate.BuildDefinition
	add := func(lock *debian.Lock) {
		for _, each := range lock.Packages {
			definition.ResolvedDependencies = append(definition.ResolvedDependencies, resource{URI: each.URL(), Digest: map[string]string{"sha256": each.SHA256}})
		}
	}
	for _, on := range r.images {
		if lock := r.packages[on]; lock != nil {
			add(lock)
		}
	}
	if r.launcher != nil {
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, r.launcher.dependency())
	}
	switch {
	case r.toolchain != nil:
		add(r.toolchain.lock)
	case r.packages != nil || r.launcher != nil:
		version, err := exec.Command(hostCompiler, "--version").Output()
		if err != nil {
			return fmt.Errorf("reading the version of %s: %w", hostCompiler, err)
		}
		definition.InternalParameters["compiler"], _, _ = strings.Cut(string(version), "\n")
	}
	return nil
}

// checkLinked returns an error if a program does not run with the C library of its image.
func (r release) checkLinked(p program, on platform, binary []byte) error {
	if p.launcher {
		return checkLibc(binary, launcherLibc)
	}
	if lock := r.packages[on]; lock != nil {
		for _, each := range lock.Packages {
			if each.Name == "libc6" {
				return checkLibc(binary, each.Version)
			}
		}
	}
	return fmt.Errorf("the packages for %s have no C library", on)
}

// libraries of glibc, with which programs may be linked.
var libraries = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2"}

// checkLibc returns an error if a program needs a newer C library than this version, or other libraries.
func checkLibc(binary []byte, version string) error {
	available, err := parseLibc(version)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	needed, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, each := range needed {
		if !slices.Contains(libraries, each) {
			return fmt.Errorf("it is linked with %s, and may be with %s only", each, strings.Join(libraries, ", "))
		}
	}
	symbols, err := file.ImportedSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, each := range symbols {
		text, ok := strings.CutPrefix(each.Version, "GLIBC_")
		if !ok {
			continue
		}
		wanted, err := parseLibc(text)
		if err != nil {
			return fmt.Errorf("%s: %w", each.Name, err)
		}
		if slices.Compare(wanted, available) > 0 {
			return fmt.Errorf("it needs %s of glibc %s, and the image has %s: build it with an older glibc", each.Name, text, version)
		}
	}
	return nil
}

// parseLibc returns the numbers of a version of glibc, such as 2.36 or 2.36-9+deb12u14.
func parseLibc(version string) ([]int, error) {
	upstream, _, _ := strings.Cut(version, "-")
	var numbers []int
	for part := range strings.SplitSeq(upstream, ".") {
		number, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is no version of glibc", version)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
