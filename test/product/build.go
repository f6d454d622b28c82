package product

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// program is one of Stencil's programs and how it is built.
type program struct {
	name string
	// module is the folder of its module in the checkout; the package is relative to it.
	module, pkg string
	// cgo is set if it is linked with C; the others are static.
	cgo  bool
	tags string
	// counts is the folder of the package that counts what the program executes in a measurement, see [CoverVariable].
	counts string
}

// small omits a page of gRPC that looks up methods by name: with it, the linker retains all methods of all types, and programs are half as
// large again.
const small = "grpcnotrace"

var programs = []program{
	{name: "stencil-manager", module: ".", pkg: "./cmd/stencil-manager", tags: small, counts: "internal/buildinfo"},
	{name: "stencil-apiserver", module: ".", pkg: "./cmd/stencil-apiserver", tags: small, counts: "internal/buildinfo"},
	{name: "stencil-mover", module: ".", pkg: "./cmd/stencil-mover", counts: "internal/buildinfo"},
	{name: "stencilctl", module: ".", pkg: "./cmd/stencilctl"},
	// libvirt is loaded at run time, so that neither it nor its headers are needed to build.
	{name: "stencil-defaulter", module: "cmd/stencil-defaulter", pkg: ".", cgo: true, tags: "libvirt_dlopen", counts: "defaulting/identity"},
}

func names() []string {
	all := make([]string, len(programs))
	for i, each := range programs {
		all[i] = each.name
	}
	return all
}

// Binary returns the path of a program: in a test run, the one that belongs to [Digest]; outside of one, a program that is built now
// from this checkout.
func Binary(ctx context.Context, name string) (string, error) {
	if os.Getenv(Variable) == "" && !testing.Testing() {
		root, err := Root()
		if err != nil {
			return "", err
		}
		if err := build(ctx, root, name); err != nil {
			return "", err
		}
		return filepath.Join(root, "bin", name), nil
	}
	digest, err := Digest()
	if err != nil {
		return "", err
	}
	folder, err := storeFolder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, digest, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("looking for %s of %s: %w", name, Variable, err)
	}
	return path, nil
}

// Build builds every program of the checkout at root, stores the result and returns its digest. Further lines become
// part of the digest: the versions of tools that the tests run.
func Build(ctx context.Context, root string, further ...string) (digest string, err error) {
	if err := build(ctx, root, names()...); err != nil {
		return "", err
	}
	built := filepath.Join(root, "bin")
	digest, err = digestOf(root, built, further...)
	if err != nil {
		return "", err
	}
	folder, err := storeFolder()
	if err != nil {
		return "", err
	}
	Prune(folder, storedFor, digest)
	return digest, store(built, filepath.Join(folder, digest))
}

// build builds programs into bin/ of the checkout. The Go command does nothing for those that are current. Calls of several processes
// wait for each other.
func build(ctx context.Context, root string, wanted ...string) error {
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("creating the folder for programs: %w", err)
	}
	unlock, err := lock(filepath.Join(bin, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	for _, each := range programs {
		for _, name := range wanted {
			if name != each.name {
				continue
			}
			if err := each.build(ctx, root, bin); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p program) build(ctx context.Context, root, bin string) error {
	// The program contains nothing that depends on the host, the folder or git.
	arguments, err := p.coverArguments(bin, root)
	if err != nil {
		return err
	}
	arguments = append([]string{"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-tags=" + p.tags}, arguments...)
	command := exec.CommandContext(ctx, "go", append(arguments, "-o", filepath.Join(bin, p.name), p.pkg)...)
	command.Dir = filepath.Join(root, p.module)
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	command.Env = append(os.Environ(), "GOWORK=off", cgo)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, err, output.String())
	}
	return nil
}

// store copies the programs to a folder that appears atomically.
func store(built, folder string) error {
	if _, err := os.Stat(folder); err == nil {
		now := time.Now()
		return os.Chtimes(folder, now, now)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(folder), ".new-")
	if err != nil {
		return fmt.Errorf("creating a folder for the product: %w", err)
	}
	defer os.RemoveAll(temporary)
	// stencil-defaulter's worker runs as another user.
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	for _, name := range names() {
		content, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return fmt.Errorf("storing the product: %w", err)
		}
		if err := os.WriteFile(filepath.Join(temporary, name), content, 0o755); err != nil {
			return fmt.Errorf("storing the product: %w", err)
		}
	}
	if err := os.Rename(temporary, folder); err != nil && !errors.Is(err, os.ErrExist) {
		if _, missing := os.Stat(folder); missing != nil {
			return fmt.Errorf("storing the product: %w", err)
		}
	}
	return nil
}

// storedFor is how long the programs of another digest are stored: longer than any run that may still use them.
const storedFor = 6 * time.Hour

// Prune removes from a folder in the cache what has not changed for an age, except one name. What cannot be removed now is left for the next call.
func Prune(folder string, age time.Duration, except string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && entry.Name() != except && time.Since(info.ModTime()) > age {
			_ = os.RemoveAll(filepath.Join(folder, entry.Name()))
		}
	}
}

// storeFolder returns the folder in Stencil's cache that has one folder for each digest.
func storeFolder() (string, error) { return CacheFolder("product") }

// CacheFolder returns a folder in Stencil's cache, and creates it.
func CacheFolder(name string) (string, error) {
	// syscall.Getenv, not os.Getenv: the location of the cache does not change the result of a test.
	base, found := syscall.Getenv("STENCIL_CACHE")
	if !found || base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache folder: %w", err)
		}
		base = filepath.Join(user, "stencil")
	}
	folder := filepath.Join(base, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache folder: %w", err)
	}
	return folder, nil
}

// Root returns the root of the checkout: the folder with hack/tool above the working directory, or else above this source file.
func Root() (string, error) {
	var starts []string
	if directory, err := os.Getwd(); err == nil {
		starts = append(starts, directory)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	for _, directory := range starts {
		for {
			if info, err := os.Stat(filepath.Join(directory, "hack", "tool")); err == nil && info.Mode().IsRegular() {
				return directory, nil
			}
			parent := filepath.Dir(directory)
			if parent == directory {
				break
			}
			directory = parent
		}
	}
	return "", errors.New("hack/tool was not found above the working directory: run this inside a checkout of Stencil")
}

// lock takes an exclusive lock that the kernel releases when the process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("taking the build lock: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
