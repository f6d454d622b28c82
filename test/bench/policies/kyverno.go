package policies

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vmstencil/stencil/test/bench/measurement"
)

// kyverno is the command that measures Kyverno's engine, and a folder with the VM.
type kyverno struct {
	*measurement.Counterpart
	folder string
}

func newKyverno(ctx context.Context, module string) (*kyverno, error) {
	vm, err := files.ReadFile("files/machine.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the VM: %w", err)
	}
	counterpart, err := measurement.BuildCounterpart(ctx, module)
	if err != nil {
		return nil, err
	}
	k := &kyverno{Counterpart: counterpart}
	if k.folder, err = os.MkdirTemp("", "stencil-bench-"); err == nil {
		err = os.WriteFile(k.machine(), vm, 0o600)
	}
	if err != nil {
		k.remove()
		return nil, fmt.Errorf("writing what Kyverno reviews: %w", err)
	}
	return k, nil
}

func (k *kyverno) machine() string { return filepath.Join(k.folder, "machine.yaml") }

func (k *kyverno) remove() {
	k.Remove()
	if k.folder != "" {
		_ = os.RemoveAll(k.folder)
	}
}

// review measures what one review costs with a number of policies.
func (k *kyverno) review(ctx context.Context, duration time.Duration, number int) (measurement.Cost, error) {
	var cost measurement.Cost
	err := k.Run(ctx, &cost, "-time", duration.String(), "-machine", k.machine(), "-policies", strconv.Itoa(number))
	return cost, err
}
