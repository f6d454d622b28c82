package defaulter

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vmstencil/stencil/test/product"
)

// Boot starts a guest of a VirtualMachine with its defaults, which is passed as JSON, and returns one line with what the guest sees, or with
// the reason why the programs of guests are missing.
func Boot(ctx context.Context, stored string) (string, error) {
	root, err := product.Root()
	if err != nil {
		return "", err
	}
	script := filepath.Join(root, "hack", "guest.sh")
	find := exec.CommandContext(ctx, script, "true")
	if output, _ := find.CombinedOutput(); find.ProcessState == nil || !find.ProcessState.Success() {
		return fmt.Sprintf("no guest is started: %s\n", bytes.TrimSpace(output)), nil
	}
	command := exec.CommandContext(ctx, script, "go", "run", "-tags=libvirt_dlopen", "./guest/boot")
	command.Dir = filepath.Join(root, "cmd", "stencil-defaulter")
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=1")
	command.Stdin = strings.NewReader(stored)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("starting a guest: %w\n%s", err, problems.String())
	}
	return string(output), nil
}
