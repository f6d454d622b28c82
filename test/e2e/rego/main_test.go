// Package rego_test tests Rego policies as their admins use them: with kubectl, against a real API server, and with one or two stencil-managers that
// have only the permissions of the chart.
package rego_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// configuration is the one that is filled in.
const configuration = "validatingwebhookconfiguration/stencil-policies"

var stencil cluster

// cluster is a control plane with the chart, and a Service in front of the managers.
type cluster struct {
	*controlplane.Plane
	ctx     context.Context
	service *manager.Service
	// options of each manager.
	options manager.Options
	// first is the manager that runs before and after each test.
	first *manager.Process
}

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (func() error, error) { return stencil.stop, stencil.start(ctx) })
}

func (c *cluster) start(ctx context.Context) (err error) {
	c.ctx = ctx
	if c.Plane, err = controlplane.Start(ctx, controlplane.Options{VirtualizationCRDs: true, Log: os.Stderr}); err != nil {
		return err
	}
	if c.service, err = manager.NewService(ctx); err != nil {
		return err
	}
	release := install.Options{ManagerURL: c.service.URL(), Values: map[string]any{
		"policySources": map[string]any{"enabled": true, "allowedNetworks": []any{"127.0.0.0/8"}, "readable": []any{map[string]any{"kind": "Secret", "name": "registry"}, map[string]any{"kind": "ConfigMap", "name": "authority"}}},
	}}
	if err := install.Chart(ctx, c.Plane, release); err != nil {
		return err
	}
	if c.options, err = release.Manager(c.Plane); err != nil {
		return err
	}
	c.options.Args = append(c.options.Args, "--policy-statistics-interval=1s")
	if c.first, err = c.run("one"); err != nil {
		return err
	}
	if err := install.AwaitPolicies(ctx, c.Plane); err != nil {
		return err
	}
	return c.awaitWebhooks()
}

func (c *cluster) stop() error {
	var problems []error
	if c.first != nil {
		problems = append(problems, c.first.Stop())
	}
	if c.service != nil {
		c.service.Close()
	}
	if c.Plane != nil {
		problems = append(problems, c.Stop())
	}
	return errors.Join(problems...)
}

// run starts a manager behind the Service and waits until it is ready.
func (c *cluster) run(name string) (*manager.Process, error) {
	options := c.options
	options.Name = name
	process, err := manager.Start(c.ctx, options)
	if err != nil {
		return nil, err
	}
	c.service.Add(c.ctx, process)
	return process, nil
}

// awaitWebhooks waits until the API server reaches the managers: they reject a policy that does not compile.
func (c *cluster) awaitWebhooks() error {
	probe := gen.Manifest(gen.Policy("probe", "?"))
	var last string
	err := wait.PollUntilContextTimeout(c.ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := c.Kubectl(ctx, nil, probe, "create", "--dry-run=server", "-f", "-")
		last = out.Stderr
		return strings.Contains(last, "does not compile") || strings.Contains(last, "is invalid"), err
	})
	if err != nil {
		return fmt.Errorf("the API server does not reach the managers: %w: %s\n%s", err, last, c.first.Logs())
	}
	return nil
}

// restart stops the first manager, calls meanwhile, and starts it again.
func restart(t *testing.T, meanwhile func()) {
	t.Helper()
	stencil.service.Remove(stencil.first)
	if err := stencil.first.Stop(); err != nil {
		t.Error(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	var err error
	if stencil.first, err = stencil.run("one"); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl as the administrator.
func kubectl(t *testing.T, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, nil, stdin, arguments...)
}

// must is kubectl that has to succeed.
func must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, nil, stdin, arguments...).Stdout
}

// policy returns the manifest of a policy with this spec, in YAML, and module.
func policy(name, spec, module string) string {
	return gen.Manifest(gen.Policy(name, strings.TrimSpace(module)+"\n", gen.Spec(spec)))
}

// applied stores a policy, which is deleted when the test ends, and returns the standard error of kubectl.
func applied(t *testing.T, name, spec, module string) string {
	t.Helper()
	t.Cleanup(func() { must(t, "", "delete", "vmpol", name, "--ignore-not-found") })
	return harness.Must(t, stencil.Plane, nil, policy(name, spec, module), "apply", "-f", "-").Stderr
}

// get reads a policy.
func get(t *testing.T, name string) *v1alpha1.VirtualMachinePolicy {
	t.Helper()
	var object v1alpha1.VirtualMachinePolicy
	if err := json.Unmarshal([]byte(must(t, "", "get", "vmpol", name, "-o", "json")), &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// becomes waits until the conditions of the newest generation are these: "Compiled=True Compiled, …".
func becomes(t *testing.T, name string, want map[string]string) *v1alpha1.VirtualMachinePolicy {
	t.Helper()
	var object *v1alpha1.VirtualMachinePolicy
	harness.Eventually(t, "the conditions of policy "+name+" are as wanted", func() error {
		object = get(t, name)
		for kind, state := range want {
			condition := meta.FindStatusCondition(object.Status.Conditions, kind)
			if condition == nil {
				return fmt.Errorf("policy %s has no condition %s", name, kind)
			}
			if got := string(condition.Status) + " " + condition.Reason; got != state || condition.ObservedGeneration != object.Generation {
				return fmt.Errorf("condition %s of policy %s is %s of generation %d (now %d), want %s: %s",
					kind, name, got, condition.ObservedGeneration, object.Generation, state, condition.Message)
			}
		}
		return nil
	})
	return object
}

// active waits until a policy is active.
func active(t *testing.T, name string) *v1alpha1.VirtualMachinePolicy {
	t.Helper()
	return becomes(t, name, map[string]string{"Active": "True Active"})
}

// vmManifest returns a VirtualMachine with a label that policies of a test select.
func vmManifest(name, label string, modifiers ...gen.Modifier) string {
	common := []gen.Modifier{gen.InNamespace("default"), gen.Label("test", label), gen.LeastSpec()}
	return gen.Manifest(gen.VM(name, append(common, modifiers...)...))
}

// create creates a VirtualMachine in a dry run.
func create(t *testing.T, label string) controlplane.Result {
	t.Helper()
	return kubectl(t, vmManifest("one", label), "create", "--dry-run=server", "-f", "-")
}

// awaitDenial waits until a VirtualMachine is denied with these words. The API server observes webhooks a moment after they are stored.
func awaitDenial(t *testing.T, label, words string) {
	t.Helper()
	harness.Eventually(t, "a machine with label "+label+" is refused", func() error {
		if got := create(t, label); got.Code == 0 || !strings.Contains(got.Stderr, words) {
			return fmt.Errorf("exit code %d and %q, want a refusal with %q", got.Code, got.Stderr, words)
		}
		return nil
	})
}

// passes waits until a VirtualMachine passes with these words in its warnings, or without warnings if words is empty.
func passes(t *testing.T, label, words string) {
	t.Helper()
	harness.Eventually(t, "a machine with label "+label+" passes", func() error {
		got := create(t, label)
		if got.Code != 0 || !strings.Contains(got.Stderr, words) || words == "" && got.Stderr != "" {
			return fmt.Errorf("exit code %d and %q, want it to pass with %q", got.Code, got.Stderr, words)
		}
		return nil
	})
}

// denies returns a module that denies VirtualMachines with a label.
func denies(label string) string {
	return fmt.Sprintf(`# METADATA
# title: No %[1]s
# scope: package
# custom:
#   severity: high
package test

deny contains {"msg": "no %[1]s here", "field": "metadata.labels.test", "fix": "use another label"} if {
  input.object.metadata.labels.test == %[1]q
}`, label)
}
