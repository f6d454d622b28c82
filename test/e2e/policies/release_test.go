package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// indexBindings are the bindings of the policies that read the index of approvals. The manager creates them.
var indexBindings = []string{"stencil-namespace-coverage", "stencil-undecided-namespaces"}

// release is Stencil on a plane, with a manager and without webhooks.
type release struct {
	plane *controlplane.Plane
	// options of the manager.
	options manager.Options
	process *manager.Process
}

// installRelease installs the chart, deletes its webhook configurations and starts the manager. It returns when the manager has written
// the index and created the bindings of the policies that read it.
func installRelease(ctx context.Context, plane *controlplane.Plane) (*release, error) {
	options, err := install.Beside(ctx, plane, nil)
	if err != nil {
		return nil, err
	}
	if err := withoutWebhooks(ctx, plane); err != nil {
		return nil, err
	}
	// The configurations that it would write its authority into do not exist.
	options.Args = append(options.Args, "--webhook-configurations=", "--policy-webhooks=")
	r := &release{plane: plane, options: options}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	err = deadline.Wait(ctx, "the manager has created the bindings of policies that read the index", time.Minute, func(ctx context.Context) error {
		return must(plane.Kubectl(ctx, nil, "", append([]string{"get", "validatingadmissionpolicybinding"}, indexBindings...)...))
	})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, r.process.Logs())
	}
	return r, nil
}

// withoutWebhooks deletes Stencil's webhook configurations, and returns when the API server calls none of them. The list of protected objects retains
// only what the manager itself creates, so that the configurations are not restored and tests can change policies.
func withoutWebhooks(ctx context.Context, plane *controlplane.Plane) error {
	const list = "stencil-protected-objects"
	result, err := plane.Kubectl(ctx, nil, "", "get", "configmap", list, "--namespace", install.Namespace, "--output=json")
	if err := must(result, err); err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", list, err)
	}
	var protected struct{ Data map[string]string }
	if err := json.Unmarshal([]byte(result.Stdout), &protected); err != nil {
		return fmt.Errorf("decoding ConfigMap %s: %w", list, err)
	}
	var keys []string
	for _, binding := range indexBindings {
		keys = append(keys, "ValidatingAdmissionPolicyBinding."+binding+".yaml")
	}
	removed, retained := object{}, 0
	for key := range protected.Data {
		if slices.Contains(keys, key) {
			retained++
			continue
		}
		removed[key] = nil
	}
	if retained != len(keys) {
		return fmt.Errorf("ConfigMap %s does not have all of %q", list, keys)
	}
	change := encode(object{"data": removed})
	if err := must(plane.Kubectl(ctx, nil, "", "patch", "configmap", list, "--namespace", install.Namespace, "--type=merge", "--patch", change)); err != nil {
		return fmt.Errorf("changing ConfigMap %s: %w", list, err)
	}
	for _, configuration := range []string{"mutatingwebhookconfiguration/a-stencil-render", "validatingwebhookconfiguration/stencil-validate"} {
		if err := must(plane.Kubectl(ctx, nil, "", "delete", configuration)); err != nil {
			return fmt.Errorf("deleting the %s: %w", configuration, err)
		}
	}
	return deadline.Wait(ctx, "the webhooks are gone", time.Minute, func(ctx context.Context) error {
		return must(plane.Kubectl(ctx, nil, approval("probe", object{"namespaces": []any{"probe"}}), "create", "--dry-run=server", "-f", "-"))
	})
}

// start starts the manager.
func (r *release) start(ctx context.Context) (err error) {
	r.process, err = manager.Start(ctx, r.options)
	return err
}

// kill ends the manager, if there is one.
func (r *release) kill() error {
	if r.process == nil {
		return nil
	}
	return r.process.Kill()
}

// withoutManager stops the manager of the shared plane until the test ends.
func withoutManager(t *testing.T) {
	t.Helper()
	shared.Plane(t)
	// A killed manager holds the lease of the leader for a while.
	if err := stencil.process.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stencil.start(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
