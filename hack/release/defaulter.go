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

// compiler compiles and links the parts of stencil-defaulter in C.
const compiler = "gcc"

// debianPlatform is the platform of the packages.
var debianPlatform = platform{"linux", "amd64"}

// debianDefaulter is stencil-defaulter with Debian's libvirt and QEMU.
var debianDefaulter = program{
	name:   "stencil-defaulter",
	image:  "stencil-defaulter-debian",
	module: "cmd/stencil-defaulter",
	// libvirt is loaded when it runs, so that its headers are not needed.
	tags:   "libvirt_dlopen",
	debian: true,
	// Nodes may not have the machine types of Debian's QEMU.
	env:         []string{"STENCIL_PIN_MACHINE_TYPES=false"},
	description: "Fills in the defaults of VirtualMachines with Debian's libvirt and QEMU; pins no machine types",
}

// lockPath is the lock file of Debian packages in the checkout.
var lockPath = filepath.Join("hack", "release", "debian", "defaulter.lock")

// lock updates the lock file.
func (r release) lock(ctx context.Context) error {
	lock, err := debian.Resolve(ctx, r.debian.Mirror, time.Now())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.root, lockPath), lock.Marshal(), 0o644); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	return nil
}

// addDefaulter adds the image of stencil-defaulter to the release.
func (r *release) addDefaulter() (err error) {
	if r.packages, err = debian.Defaulter(); err != nil || r.debian.Cache != "" {
		return err
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("-debian-cache: %w", err)
	}
	r.debian.Cache = filepath.Join(caches, "stencil", "debian")
	return nil
}

// all returns the programs that have an image.
func (r release) all() []program {
	if r.packages == nil {
		return programs
	}
	return append(slices.Clone(programs), debianDefaulter)
}

// packaged returns the files of the Debian packages.
func (r release) packaged(ctx context.Context) ([]entry, error) {
	files, err := r.debian.Files(ctx, r.packages)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(files))
	for i, each := range files {
		entries[i] = entry{name: each.Name, mode: each.Mode, content: each.Content, link: each.Link}
	}
	return entries, nil
}

// addPackages adds to the provenance what only the image with Debian's packages has.
func (r release) addPackages(predicate *provenance) error {
	version, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", compiler, err)
	}
	definition := &predicate.BuildDefinition
	definition.InternalParameters["compiler"], _, _ = strings.Cut(string(version), "\n")
	for _, each := range r.packages.Packages {
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, resource{URI: each.URL(), Digest: map[string]string{"sha256": each.SHA256}})
	}
	return nil
}

// checkLinked returns an error if a program does not run with the C library of the packages.
func (r release) checkLinked(binary []byte) error {
	for _, each := range r.packages.Packages {
		if each.Name == "libc6" {
			return checkLibc(binary, each.Version)
		}
	}
	return errors.New("the packages have no C library")
}

// checkLibc returns an error if a program needs a newer C library than that of the packages, of which it takes the version.
func checkLibc(binary []byte, version string) error {
	available, err := parseLibc(version)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
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
			return fmt.Errorf("it needs %s of glibc %s, and the image has %s: build it on a system with an older glibc, such as Debian 12", each.Name, text, version)
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
