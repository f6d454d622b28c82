package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// policyLimit is generous: the API server may take half a minute to observe a new kind, which the policies read.
const policyLimit = 2 * time.Minute

// AwaitPolicies returns when the API server enforces the policies of a release. It reads policies and bindings once in a second. Until it has
// observed the kind TemplateApproval, which may take half a minute after the definition was created, it denies all requests that match the policies
// that read approvals. No manager needs to run.
func AwaitPolicies(ctx context.Context, plane *controlplane.Plane) error {
	probe, err := plane.User("policy-probe")
	if err != nil {
		return err
	}
	if err := plane.Grant(ctx, probe, metav1.NamespaceDefault, rbacv1.PolicyRule{
		APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplaterequests"}, Verbs: []string{"create"},
	}); err != nil {
		return err
	}
	return deadline.Wait(ctx, "the API server acts by the policies", policyLimit, func(ctx context.Context) error {
		// One of the last policies in the alphabet: when it is enforced, the others are too.
		const request = `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest",
			"metadata": {"name": "probe", "namespace": "default"}, "spec": {"virtualMachineRef": {"namespace": "default", "name": "probe"}}}`
		denied, err := plane.Kubectl(ctx, probe, request, "create", "--dry-run=server", "-f", "-")
		if err != nil {
			return err
		}
		if answer := denied.Stdout + denied.Stderr; !strings.Contains(answer, "denied request: User is not allowed to") {
			return errors.New(answer)
		}
		return nil
	})
}

// AwaitDefinitions returns when the API server serves what the chart has just defined. A manager that starts before ends, and a node would start it again.
func AwaitDefinitions(ctx context.Context, plane *controlplane.Plane) error {
	return deadline.Wait(ctx, "the API server serves the kinds of the chart", policyLimit, func(ctx context.Context) error {
		served, err := plane.Kubectl(ctx, nil, "", "get", "--raw", "/apis/stencil.kubevirt.io/v1alpha1")
		if err == nil && !strings.Contains(served.Stdout, `"templateapprovals"`) {
			err = errors.New(served.Stdout + served.Stderr)
		}
		return err
	})
}

// AwaitBindings returns when the manager has labelled all namespaces and created the bindings of the policies that read its index, and the API server
// enforces them.
func AwaitBindings(ctx context.Context, plane *controlplane.Plane) error {
	return deadline.Wait(ctx, "the manager has bound the policies about undecided namespaces", policyLimit, func(ctx context.Context) error {
		bound, err := plane.Kubectl(ctx, nil, "", "get", "validatingadmissionpolicybindings", "stencil-undecided-namespaces", "stencil-namespace-coverage")
		if err != nil {
			return err
		}
		if bound.Code != 0 {
			return errors.New(bound.Stderr)
		}
		passed, err := plane.Kubectl(ctx, nil, "", "label", "namespace", metav1.NamespaceDefault, "policy-probe=1", "--dry-run=server")
		if err != nil {
			return err
		}
		if passed.Code != 0 {
			return errors.New(passed.Stderr)
		}
		return nil
	})
}

// AwaitAddedWebhooks returns when the manager has added the webhooks of all configurations that Helm installs without them.
func AwaitAddedWebhooks(ctx context.Context, plane *controlplane.Plane) error {
	return deadline.Wait(ctx, "the manager has added its webhooks", policyLimit, func(ctx context.Context) error {
		listed, err := plane.Kubectl(ctx, nil, "", "get", "mutatingwebhookconfigurations", "--selector=app.kubernetes.io/part-of=stencil", "--output=json")
		if err != nil {
			return err
		}
		var configurations admissionregistrationv1.MutatingWebhookConfigurationList
		if err := json.Unmarshal([]byte(listed.Stdout), &configurations); err != nil {
			return fmt.Errorf("%w: %s", err, listed.Stderr)
		}
		for _, each := range configurations.Items {
			if each.Annotations["stencil.kubevirt.io/authority-of"] != "" && len(each.Webhooks) == 0 {
				return fmt.Errorf("MutatingWebhookConfiguration %s has none", each.Name)
			}
		}
		return nil
	})
}
