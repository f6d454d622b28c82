package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vmstencil/stencil/hack/release/debian"
)

// hostCompiler is the compiler of a release without a toolchain, which only tests build.
const hostCompiler = "gcc"

// toolchain has the compilers of debian.Toolchain, and the C libraries that they link with.
type toolchain struct {
	lock *debian.Lock
	// folder is where the packages are unpacked, id the checksum of the lock file and of how they are called.
	folder, id string
}

// targets are the platforms of the compilers, and the names of these.
var targets = map[platform]string{{"linux", "amd64"}: "x86_64-linux-gnu", {"linux", "arm64"}: "aarch64-linux-gnu"}

// wrapper calls a compiler with its own programs, libraries and sysroot, and with the C library of the host. The loader finds only what the compiler
// has in usr/lib there, so that the programs of the host, which use another C library, are not called with these.
const wrapper = `#!/bin/sh
root=$(dirname "$(dirname "$0")")
PATH=$root/usr/bin LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu exec "$root/usr/bin/%s-gcc-10" --sysroot="$root" "$@"
`

// unpackToolchain returns the toolchain, which it unpacks into the cache of packages unless it is there. It runs on linux/amd64.
func unpackToolchain(ctx context.Context, from debian.Source) (*toolchain, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("the compilers of %s run on linux/amd64, and this is %s/%s: build the images of stencil-defaulter there", debian.Toolchain.File, runtime.GOOS, runtime.GOARCH)
	}
	lock, err := debian.Toolchain.Lock()
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%x", sha256.Sum256(append(lock.Marshal(), wrapper...)))[:16]
	t := &toolchain{lock: lock, folder: filepath.Join(from.Cache, "toolchain-"+id), id: id}
	if _, err := os.Stat(t.folder); err == nil || !errors.Is(err, os.ErrNotExist) {
		return t, err
	}
	// It exists as a whole or not at all.
	if err := os.MkdirAll(from.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache of packages: %w", err)
	}
	folder, err := os.MkdirTemp(from.Cache, "unpacking-")
	if err != nil {
		return nil, fmt.Errorf("unpacking the compilers: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := from.Unpack(ctx, lock, folder, inToolchain); err != nil {
		return nil, err
	}
	for on, target := range targets {
		file := filepath.Join(folder, "bin", t.compiler(on))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, fmt.Appendf(nil, wrapper, target), 0o755)); err != nil {
			return nil, fmt.Errorf("unpacking the compilers: %w", err)
		}
	}
	if err := os.Rename(folder, t.folder); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("unpacking the compilers: %w", err)
	}
	return t, nil
}

// inToolchain returns where a file of a package is in the folder of the toolchain, empty if it is not needed.
func inToolchain(name string) string {
	switch base := path.Base(name); {
	case strings.HasPrefix(base, "qemu-") && base != emulator:
		return ""
	case base == "lto1", strings.Contains(base, "lto-dump"), strings.HasPrefix(name, "usr/share/"):
		// Programs of 200 MB for optimizations when linking, and documents.
		return ""
	case strings.HasPrefix(name, "lib/x86_64-linux-gnu/libz.so."):
		// The loader looks for it in one folder, without the C library, which is beside it in the package.
		return "usr/" + name
	}
	return name
}

// emulator runs programs for arm64, and needs no other file.
const emulator = "qemu-aarch64-static"

// compiler returns the name of the compiler for a platform. The Go command builds again what depends on C when the name is another one; it does not
// read the file.
func (t *toolchain) compiler(on platform) string { return "stencil-cc-" + t.id + "-" + on.arch }

// environment of the Go command.
func (t *toolchain) environment(on platform) []string {
	if t == nil {
		return []string{"CC=" + hostCompiler}
	}
	return []string{"CC=" + t.compiler(on), "PATH=" + filepath.Join(t.folder, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")}
}
