package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// deniedLabel is a label of VMs that the policy denies, with the message denialMessage.
	deniedLabel   = "bench.stencil.test/refused"
	denialMessage = "the policy of the benchmark refuses this"

	// rules are an approval that selects the namespace of the VMs, and a policy for all that are created.
	rules = `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "bench"}, "spec": {
			"namespaces": ["` + namespace + `"], "templates": [{"namespace": "golden", "name": "fedora"}],
			"parameters": [{"name": "INSTANCETYPE", "allowed": ["u1.medium", "u1.large"]}], "overrides": ["spec.runStrategy", "metadata.labels.*"]}},
		{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "VirtualMachinePolicy", "metadata": {"name": "bench"}, "spec": {
			"match": {"operations": ["CREATE"], "kinds": ["VirtualMachine"]},
			"rego": "package bench\n\ndeny contains \"` + denialMessage + `\" if input.object.metadata.labels[\"` + deniedLabel + `\"]\n"}}]}`
)

// govern applies the rules, and returns when the API server enforces them.
func (b *bench) govern(ctx context.Context) error {
	result, err := b.stencil.Plane.Kubectl(ctx, nil, rules, "apply", "-f", "-")
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("applying an approval and a policy: %s", result.Stderr)
	}
	// An approval denies a VM without a template.
	for what, denied := range map[string]struct{ body, words []byte }{
		"approval": {b.vms[0].complete, nil},
		"policy":   {b.vms[0].labelled, []byte(denialMessage)},
	} {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, syncLimit, true, func(ctx context.Context) (bool, error) {
			answer, err := b.senders[0].create(ctx, denied.body)
			if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
				return false, err
			}
			return err != nil && bytes.Contains(answer, denied.words), nil
		})
		if err != nil {
			return fmt.Errorf("waiting until the %s refuses something: %w", what, err)
		}
	}
	// The registrations recorded before do not contain the webhooks of policies.
	return b.record(ctx)
}
