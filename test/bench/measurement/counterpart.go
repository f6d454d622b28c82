package measurement

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Counterpart is a command that measures another project's engine. It runs in a process of its own because the dependencies of that project and of
// Stencil exclude each other.
type Counterpart struct {
	folder, binary string
}

// BuildCounterpart builds the command in the folder of a module. Remove deletes it.
func BuildCounterpart(ctx context.Context, module string) (*Counterpart, error) {
	folder, err := os.MkdirTemp("", "stencil-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for %s: %w", filepath.Base(module), err)
	}
	c := &Counterpart{folder: folder, binary: filepath.Join(folder, filepath.Base(module))}
	build := exec.CommandContext(ctx, "go", "build", "-o", c.binary, ".")
	build.Dir = module
	build.Env = append(os.Environ(), "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		c.Remove()
		return nil, fmt.Errorf("building %s: %w\n%s", filepath.Base(module), err, output)
	}
	return c, nil
}

// Run runs the command and decodes the JSON that it prints.
func (c *Counterpart) Run(ctx context.Context, into any, arguments ...string) error {
	command := exec.CommandContext(ctx, c.binary, arguments...)
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w\n%s", filepath.Base(c.binary), err, problems.String())
	}
	if err := json.Unmarshal(output.Bytes(), into); err != nil {
		return fmt.Errorf("decoding the measurements of %s: %w", filepath.Base(c.binary), err)
	}
	return nil
}

// Remove deletes the command.
func (c *Counterpart) Remove() { _ = os.RemoveAll(c.folder) }
