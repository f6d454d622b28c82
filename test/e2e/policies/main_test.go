// Package policies_test holds Stencil's admission policies against a real API server while nothing of Stencil runs: there is no
// manager, and its webhook configurations are deleted. What is refused here is refused by the API server itself.
//
// There is no virt-api either, whose own webhooks would speak about half of these requests.
package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

const controllerName = "system:serviceaccount:kubevirt:kubevirt-controller"

var (
	shared = controlplane.Shared{Prepare: prepare}

	// owner owns machines of every kind everywhere, and may use the templates of namespace golden.
	owner *controlplane.User
	// stranger has the same rights as owner, uses no template, and is exempt nowhere.
	stranger *controlplane.User
	// controller is KubeVirt's controller, one of the chart's exemptUsers, and virtAPI its API server, another one.
	controller, virtAPI *controlplane.User
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func prepare(ctx context.Context, plane *controlplane.Plane) error {
	if err := plane.InstallVirtualizationCRDs(ctx); err != nil {
		return err
	}
	if err := install.Chart(ctx, plane, install.Options{}); err != nil {
		return err
	}
	if err := withoutWebhooks(ctx, plane); err != nil {
		return err
	}
	for person, name := range map[**controlplane.User]string{
		&owner: "owner", &stranger: "stranger", &controller: controllerName, &virtAPI: "system:serviceaccount:kubevirt:kubevirt-apiserver",
	} {
		user, err := plane.User(name)
		if err != nil {
			return err
		}
		*person = user
		if err := plane.Grant(ctx, *person, "", ownership...); err != nil {
			return err
		}
	}
	if result, err := plane.Kubectl(ctx, nil, "", "create", "namespace", "golden"); err != nil || result.Code != 0 {
		return fmt.Errorf("creating namespace golden: %w: %s", err, result.Stderr)
	}
	if err := plane.Bind(ctx, owner, "golden", "stencil-template-user"); err != nil {
		return err
	}
	return install.AwaitPolicies(ctx, plane)
}

// withoutWebhooks deletes Stencil's webhook configurations, and returns when the API server calls none of them.
func withoutWebhooks(ctx context.Context, plane *controlplane.Plane) error {
	for _, configuration := range []string{"mutatingwebhookconfiguration/a-stencil-render", "validatingwebhookconfiguration/stencil-validate"} {
		if result, err := plane.Kubectl(ctx, nil, "", "delete", configuration); err != nil || result.Code != 0 {
			return fmt.Errorf("deleting the %s: %w: %s", configuration, err, result.Stderr)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		result, err := plane.Kubectl(ctx, nil, approval("probe", object{"namespaces": []any{"probe"}}), "create", "--dry-run=server", "-f", "-")
		return result.Code == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the webhooks are gone: %w", err)
	}
	return nil
}

// ownership is what an administrator of KubeVirt's objects has.
var ownership = []rbacv1.PolicyRule{{
	APIGroups: []string{"kubevirt.io", "pool.kubevirt.io", "clone.kubevirt.io", "snapshot.kubevirt.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
}}

// kubectl runs kubectl as a person, as the administrator when nil.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, shared.Plane(t), as, stdin, arguments...)
}

// mustKubectl is kubectl as the administrator where nothing but success is of interest; it returns what was printed.
func mustKubectl(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, shared.Plane(t), nil, stdin, arguments...).Stdout
}

// refusal is what a policy is expected to answer; the zero value expects the request to pass.
type refusal struct{ policy, message string }

// complaint tells how a result differs from what is wanted. The message must be the policy's whole message.
func (r refusal) complaint(result controlplane.Result) string {
	said := strings.TrimSpace(result.Stderr)
	if r == (refusal{}) {
		if result.Code != 0 {
			return "refused: " + said
		}
		return ""
	}
	want := fmt.Sprintf("ValidatingAdmissionPolicy 'stencil-%s' with binding 'stencil-%s' denied request: %s", r.policy, r.policy, r.message)
	// There may be warnings before it, and the cause once more after it.
	answered := slices.ContainsFunc(strings.Split(said, "\n"), func(line string) bool { return strings.HasSuffix(line, want) })
	if result.Code == 0 || !answered {
		return fmt.Sprintf("answered\n%s%s\nwant\n%s", result.Stdout, said, want)
	}
	return ""
}

// check complains about a result that is not the wanted one.
func (r refusal) check(t *testing.T, result controlplane.Result) {
	t.Helper()
	if complaint := r.complaint(result); complaint != "" {
		t.Error(complaint)
	}
}

// eventually asks again and again until there is no complaint.
func eventually(t *testing.T, complaint func() string) {
	t.Helper()
	harness.Eventually(t, func() error { return harness.Complaint(complaint()) })
}

// object is JSON in the making.
type object = map[string]any

func encode(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // only of what cannot be JSON
	}
	return string(encoded)
}

// namespace creates a namespace with labels, such as "env=prod".
func namespace(t *testing.T, labels ...string) string {
	t.Helper()
	given := object{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		given[key] = value
	}
	manifest := encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"generateName": "policies-", "labels": given}})
	return strings.TrimPrefix(strings.TrimSpace(mustKubectl(t, manifest, "create", "--output=name", "-f", "-")), "namespace/")
}
