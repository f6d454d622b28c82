package policies

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/bench/measurement"
	"github.com/vmstencil/stencil/test/controlplane"
)

//go:embed files
var files embed.FS

// reviews is how often Gatekeeper's tool reviews the VM in one measurement; its warm-up is a tenth of it.
const reviews = 1000

// constraintSpecs are the parameters of each Constraint, by its kind; the VM satisfies all of them, as it does most of the ready policies.
var constraintSpecs = []struct {
	kind       string
	parameters map[string]any
}{
	{"VMAllowedRegistries", map[string]any{"registries": []string{"quay.io/containerdisks/", "registry.example.com/"}}},
	{"VMRequiredLabels", map[string]any{"labels": []string{"owner", "app.kubernetes.io/name"}}},
	{"VMNetworks", map[string]any{"allowed": []string{"networks/*"}}},
	{"VMRunStrategies", map[string]any{"allowed": []string{"Halted", "Manual", "Always"}}},
	{"VMStorageClasses", map[string]any{"allowed": []string{"fast", "slow"}}},
	{"VMPasswords", nil},
}

// gatekeeper is Gatekeeper's own benchmark tool, `gator bench`, and folders with so many Constraints and the VM.
type gatekeeper struct {
	binary string
	folder string
}

func newGatekeeper(ctx context.Context) (*gatekeeper, error) {
	tools, err := controlplane.Tools(ctx, "gator")
	if err != nil {
		return nil, fmt.Errorf("building Gatekeeper's tool: %w", err)
	}
	folder, err := os.MkdirTemp("", "stencil-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for Gatekeeper's policies: %w", err)
	}
	g := &gatekeeper{binary: tools["gator"], folder: folder}
	for _, number := range Numbers {
		if err := g.write(number); err != nil {
			g.remove()
			return nil, err
		}
	}
	return g, nil
}

func (g *gatekeeper) remove() { _ = os.RemoveAll(g.folder) }

// write writes a folder of what is reviewed with a number of Constraints.
func (g *gatekeeper) write(number int) error {
	folder := filepath.Join(g.folder, strconv.Itoa(number))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("making a folder for %d Constraints: %w", number, err)
	}
	constraints, err := constraints(number)
	if err != nil {
		return err
	}
	vm, err := files.ReadFile("files/machine.yaml")
	if err != nil {
		return fmt.Errorf("reading the VM: %w", err)
	}
	templates, err := files.ReadFile("files/gatekeeper/templates.yaml")
	if err != nil {
		return fmt.Errorf("reading Gatekeeper's policies: %w", err)
	}
	for name, content := range map[string][]byte{"templates.yaml": templates, "constraints.yaml": constraints, "machine.yaml": vm} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing what Gatekeeper reviews: %w", err)
		}
	}
	return nil
}

// constraints returns a number of Constraints, of each kind in turn.
func constraints(number int) ([]byte, error) {
	var documents []string
	for i := range number {
		wanted := constraintSpecs[i%len(constraintSpecs)]
		spec := map[string]any{
			"match": map[string]any{"kinds": []map[string]any{{"apiGroups": []string{"kubevirt.io"}, "kinds": []string{"VirtualMachine"}}}},
		}
		if wanted.parameters != nil {
			spec["parameters"] = wanted.parameters
		}
		document, err := yaml.Marshal(map[string]any{
			"apiVersion": "constraints.gatekeeper.sh/v1beta1",
			"kind":       wanted.kind,
			"metadata":   map[string]any{"name": fmt.Sprintf("bench-%d", i)},
			"spec":       spec,
		})
		if err != nil {
			return nil, fmt.Errorf("writing a Constraint: %w", err)
		}
		documents = append(documents, string(document))
	}
	return []byte(strings.Join(documents, "---\n")), nil
}

// review measures what one review costs with a number of Constraints.
func (g *gatekeeper) review(ctx context.Context, number int) (measurement.Cost, error) {
	command := exec.CommandContext(ctx, g.binary, "bench", "--engine=rego", "--memory", "--output=json",
		"--iterations", strconv.Itoa(reviews), "--warmup", strconv.Itoa(reviews/10), "--filename", filepath.Join(g.folder, strconv.Itoa(number)))
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return measurement.Cost{}, fmt.Errorf("measuring Gatekeeper with %d Constraints: %w\n%s", number, err, problems.String())
	}
	cost, err := reviewed(output.Bytes(), number)
	if err != nil {
		return measurement.Cost{}, fmt.Errorf("%w\n%s", err, output.String())
	}
	return cost, nil
}

// reviewed reads what the tool prints.
func reviewed(output []byte, number int) (measurement.Cost, error) {
	var results []struct {
		ConstraintCount int `json:"constraintCount"`
		ObjectCount     int `json:"objectCount"`
		ViolationCount  int `json:"violationCount"`
		Latencies       struct {
			Mean string `json:"mean"`
		} `json:"latencies"`
		MemoryStats struct {
			AllocsPerReview int64  `json:"allocsPerReview"`
			BytesPerReview  string `json:"bytesPerReview"`
		} `json:"memoryStats"`
	}
	if err := json.Unmarshal(output, &results); err != nil {
		return measurement.Cost{}, fmt.Errorf("decoding Gatekeeper's measurements: %w", err)
	}
	if len(results) != 1 || results[0].ConstraintCount != number || results[0].ObjectCount != 1 || results[0].ViolationCount != 0 {
		return measurement.Cost{}, fmt.Errorf("gator did not review one VM by %d Constraints that it satisfies", number)
	}
	mean, err := time.ParseDuration(results[0].Latencies.Mean)
	if err != nil {
		return measurement.Cost{}, fmt.Errorf("decoding Gatekeeper's measurements: %w", err)
	}
	bytes, err := size(results[0].MemoryStats.BytesPerReview)
	if err != nil {
		return measurement.Cost{}, err
	}
	return measurement.Cost{
		Nanoseconds: float64(mean.Nanoseconds()),
		Bytes:       bytes,
		Allocations: results[0].MemoryStats.AllocsPerReview,
	}, nil
}

// size reads a number of bytes as the tool prints it, such as "148.30 KB", where a KB is 1024 bytes.
func size(printed string) (int64, error) {
	var number float64
	var unit string
	if _, err := fmt.Sscanf(printed, "%f %s", &number, &unit); err != nil {
		return 0, fmt.Errorf("decoding Gatekeeper's memory %q: %w", printed, err)
	}
	for _, previous := range []string{"B", "KB", "MB", "GB"} {
		if unit == previous {
			return int64(number), nil
		}
		number *= 1 << 10
	}
	return 0, fmt.Errorf("decoding Gatekeeper's memory %q: unknown unit %q", printed, unit)
}
