package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vmstencil/stencil/test/bench/measurement"
)

// helm is the command that measures Helm's engine, in a process of its own because Helm's dependencies and ours do not agree.
type helm struct {
	folder, binary string
}

// helmAnswer is what the command prints.
type helmAnswer struct {
	Document json.RawMessage  `json:"document"`
	Text     measurement.Cost `json:"text"`
	JSON     measurement.Cost `json:"json"`
}

func buildHelm(ctx context.Context, module string) (*helm, error) {
	folder, err := os.MkdirTemp("", "stencil-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the helmengine command: %w", err)
	}
	h := &helm{folder: folder, binary: filepath.Join(folder, "helmengine")}
	build := exec.CommandContext(ctx, "go", "build", "-o", h.binary, ".")
	build.Dir = module
	build.Env = append(os.Environ(), "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		h.remove()
		return nil, fmt.Errorf("building the helmengine command: %w\n%s", err, output)
	}
	return h, nil
}

func (h *helm) run(ctx context.Context, duration time.Duration) (*helmAnswer, error) {
	command := exec.CommandContext(ctx, h.binary, "-time", duration.String(), "-name", proofName, "-password", proofPassword)
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("measuring Helm's engine: %w\n%s", err, problems.String())
	}
	answer := &helmAnswer{}
	if err := json.Unmarshal(output.Bytes(), answer); err != nil {
		return nil, fmt.Errorf("decoding the measurements of Helm's engine: %w", err)
	}
	return answer, nil
}

func (h *helm) remove() { _ = os.RemoveAll(h.folder) }
