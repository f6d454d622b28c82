// Command engine applies manifests as Flux does, and prints what Flux reports of them: with the libraries of its kustomize-controller and
// helm-controller. Expressions for the health of kinds come from a Kustomization.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// timeout limits a run.
const timeout = 2 * time.Minute

type options struct {
	kubeconfig, namespace, checks string
	apply                         bool
	wait                          time.Duration
}

// report is what the command prints.
type report struct {
	Resources []resource `json:"resources"`
	// Wait is the error that a Kustomization with "wait: true" reports.
	Wait string `json:"wait,omitempty"`
}

// resource is what Flux reports of one object.
type resource struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Applied is what kustomize-controller did.
	Applied string `json:"applied,omitempty"`
	// Drift is what kustomize-controller finds when it compares: unchanged, configured or created.
	Drift string `json:"drift,omitempty"`
	// Difference is what helm-controller finds, as a JSON patch.
	Difference json.RawMessage `json:"difference,omitempty"`
	Health     string          `json:"health,omitempty"`
	Message    string          `json:"message,omitempty"`
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "of the user as whom Flux acts; without it only the health of the objects that are sent is printed")
	flag.StringVar(&o.namespace, "namespace", "", "of objects that name none")
	flag.StringVar(&o.checks, "checks", "", "file with a Kustomization, whose healthCheckExprs are used")
	flag.BoolVar(&o.apply, "apply", false, "apply the objects before they are compared")
	flag.DurationVar(&o.wait, "wait", 0, "how long to wait until the objects are healthy")
	flag.Parse()
	if err := run(o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options, in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("decoding the manifests: %w", err)
	}
	checks, err := readChecks(o.checks)
	if err != nil {
		return err
	}
	var result report
	if o.kubeconfig == "" {
		result, err = evaluate(ctx, objects, checks)
	} else {
		result, err = reconcile(ctx, o, objects, checks)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

func readChecks(path string) ([]kustomize.CustomHealthCheck, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the Kustomization: %w", err)
	}
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return nil, fmt.Errorf("decoding the Kustomization: %w", err)
	}
	return kustomization.Spec.HealthCheckExprs, nil
}

func describe(object *unstructured.Unstructured) resource {
	return resource{Kind: object.GetKind(), Name: object.GetName()}
}
