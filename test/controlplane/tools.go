package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/test/product"
)

// Tools returns the paths of the named tools, and has hack/tool build those that are neither in the folder STENCIL_ASSETS nor in its
// cache; its progress goes to standard error.
func Tools(ctx context.Context, names ...string) (map[string]string, error) {
	root, err := product.Root()
	if err != nil {
		return nil, err
	}
	// A stored result of tests is that of other tools when this differs: the Go command compares the variables that a test has read.
	from := strings.Join([]string{root, os.Getenv("STENCIL_ASSETS"), os.Getenv("PATH")}, " ")
	paths := map[string]string{}
	var missing []string
	for _, name := range names {
		if path, known := provided.Load(from + " " + name); known {
			paths[name] = path.(string)
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	more, err := provide(exec.CommandContext(ctx, filepath.Join(root, "hack", "tool"), missing...), os.Stderr, missing)
	for name, path := range more {
		provided.Store(from+" "+name, path)
		paths[name] = path
	}
	return paths, err
}

// provided are the paths that hack/tool has printed, by the place of the tools and the name: a call of it takes longer than many commands of kubectl.
var provided sync.Map

// provide runs hack/tool and returns the paths that it prints.
func provide(command *exec.Cmd, progress io.Writer, names []string) (map[string]string, error) {
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, io.MultiWriter(progress, &complaints)
	// A compiler that outlives hack/tool holds its output open and must not block the caller.
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
