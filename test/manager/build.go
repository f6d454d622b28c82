package manager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const modulePath = "github.com/vmstencil/stencil"

// Build builds stencil-manager; see BuildProgram.
func Build(ctx context.Context) (string, error) { return BuildProgram(ctx, StencilManager) }

// BuildProgram builds a program from the checkout that the caller's working directory belongs to and
// returns the path of the binary, which lies in Stencil's cache outside the tree. Nothing is done
// when the binary is current; callers in several processes wait for each other.
func BuildProgram(ctx context.Context, program Program) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	directory, err := cacheDirectory(root)
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(directory, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()

	binary, command := filepath.Join(directory, string(program)), "./cmd/"+string(program)
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, command)
	build.Dir = root
	var output bytes.Buffer
	build.Stdout, build.Stderr = &output, &output
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building %s in %s: %w\n%s", command, root, err, output.String())
	}
	return binary, nil
}

// moduleRoot asks the go command where the product's module lies: it is the main module or a replaced
// requirement of the module that the test belongs to.
func moduleRoot(ctx context.Context) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	output, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s: %w\n%s", modulePath, err, stderr.String())
	}
	root := strings.TrimSpace(string(output))
	if root == "" {
		return "", fmt.Errorf("finding the module %s: the go command names no directory", modulePath)
	}
	return root, nil
}

// cacheDirectory returns where binaries of this checkout go. Two checkouts on one machine must not
// exchange binaries under each other's feet, so the path of the checkout is part of the key.
func cacheDirectory(root string) (string, error) {
	base := os.Getenv("STENCIL_CACHE")
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache directory: %w", err)
		}
		base = filepath.Join(user, "stencil")
	}
	key := sha256.Sum256([]byte(root))
	directory := filepath.Join(base, "manager", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	return directory, nil
}

// lock takes an exclusive lock that the kernel gives back when the process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the build lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
