package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Tools returns the paths of the named tools, and has hack/tool build those that are neither in the folder STENCIL_ASSETS nor in its
// cache; its progress goes to standard error.
func Tools(ctx context.Context, names ...string) (map[string]string, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	return provide(exec.CommandContext(ctx, filepath.Join(root, "hack", "tool"), names...), os.Stderr, names)
}

// provide runs hack/tool and returns the paths that it prints.
func provide(command *exec.Cmd, progress io.Writer, names []string) (map[string]string, error) {
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, io.MultiWriter(progress, &complaints)
	// A compiler that outlives hack/tool keeps its output open and must not keep the caller.
	command.WaitDelay = 5 * time.Second
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("hack/tool cannot provide %s: %w:\n%s", strings.Join(names, ", "), err, lastLines(complaints.String(), 20))
	}
	built := strings.Fields(output.String())
	if len(built) != len(names) {
		return nil, fmt.Errorf("hack/tool printed %d paths for %d tools", len(built), len(names))
	}
	paths := make(map[string]string, len(names))
	for i, name := range names {
		paths[name] = built[i]
	}
	return paths, nil
}

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// repository returns the root of the checkout: the folder holding hack/tool above the working directory, which for a test is that
// of its package, or else above this source file.
func repository() (string, error) {
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
