// Package policies_test tests Stencil's admission policies with a real API server while it calls no webhook of Stencil: its webhook configurations
// are deleted, and nothing restores them. The manager runs, because it writes the effect of the approvals to each namespace; some tests stop it. All
// denials here come from the API server itself.
//
// There is no virt-api either: its own webhooks would deny about half of these requests.
package policies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

const controllerName = "system:serviceaccount:kubevirt:kubevirt-controller"

var (
	shared = controlplane.Shared{Options: controlplane.Options{VirtualizationCRDs: true}, Prepare: prepare}
	// stencil is the release on the shared plane.
	stencil *release

	// owner owns VirtualMachines of every kind in all namespaces, and may use the templates of namespace golden.
	owner *controlplane.User
	// stranger has the same rights as owner, uses no template, and is exempt nowhere.
	stranger *controlplane.User
	// controller is KubeVirt's controller, one of the chart's exemptUsers, and virtAPI its API server, another one. The manager finds no KubeVirt:
	// the test grants them the permission that it would grant.
	controller, virtAPI *controlplane.User
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := shared.Run(m)
	if stencil != nil {
		if err := stencil.kill(); err != nil {
			fmt.Fprintln(os.Stderr, "ending the manager:", err)
			return 1
		}
	}
	return code
}

func prepare(ctx context.Context, plane *controlplane.Plane) (err error) {
	if err := plane.InstallImports(ctx); err != nil {
		return err
	}
	if stencil, err = installRelease(ctx, plane); err != nil {
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
	for _, user := range []*controlplane.User{controller, virtAPI} {
		if err := plane.Grant(ctx, user, "", install.Bypass()); err != nil {
			return err
		}
	}
	if err := must(plane.Kubectl(ctx, nil, "", "create", "namespace", "golden")); err != nil {
		return err
	}
	if err := plane.Bind(ctx, owner, "golden", "stencil-template-user"); err != nil {
		return err
	}
	return install.AwaitPolicies(ctx, plane)
}

// must makes an error of a command that failed.
func must(result controlplane.Result, err error) error {
	if err == nil && result.Code != 0 {
		err = errors.New(strings.TrimSpace(result.Stderr))
	}
	return err
}

// ownership is what an administrator of KubeVirt's objects has.
var ownership = []rbacv1.PolicyRule{{
	APIGroups: []string{"kubevirt.io", "pool.kubevirt.io", "clone.kubevirt.io", "snapshot.kubevirt.io", "import.kubevirt.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
}}

// kubectl runs kubectl as a user, as the administrator when as is nil.
func kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, shared.Plane(t), as, stdin, arguments...)
}

// denial is the expected denial of a policy; the zero value expects the request to pass.
type denial struct{ policy, message string }

// complaint returns how a result differs from the expected one. The message must be the policy's whole message.
func (r denial) complaint(result controlplane.Result) string {
	stderr := strings.TrimSpace(result.Stderr)
	if r == (denial{}) {
		if result.Code != 0 {
			return "refused: " + stderr
		}
		return ""
	}
	want := fmt.Sprintf("ValidatingAdmissionPolicy 'stencil-%s' with binding 'stencil-%s' denied request: %s", r.policy, r.policy, r.message)
	// Warnings may precede it, and the cause may be repeated after it.
	answered := slices.ContainsFunc(strings.Split(stderr, "\n"), func(line string) bool { return strings.HasSuffix(line, want) })
	if result.Code == 0 || !answered {
		return fmt.Sprintf("answered\n%s%s\nwant\n%s", result.Stdout, stderr, want)
	}
	return ""
}

// check fails the test if a result differs from the expected one.
func (r denial) check(t *testing.T, result controlplane.Result) {
	t.Helper()
	if complaint := r.complaint(result); complaint != "" {
		t.Error(complaint)
	}
}

// eventually polls until there is no complaint. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, complaint func() string) {
	t.Helper()
	harness.Eventually(t, what, func() error { return harness.Complaint(complaint()) })
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

// namespace creates a namespace with labels, such as "env=prod", and returns when Stencil has decided which approvals select it.
func namespace(t *testing.T, labels ...string) string {
	t.Helper()
	name := undecided(t, object{"generateName": "policies-"}, labels...)
	eventually(t, "Stencil has decided on namespace "+name, func() string {
		if governed(t, name) == "" {
			return "it has not"
		}
		return ""
	})
	return name
}

// undecided creates a namespace with labels, such as "env=prod", and returns its name.
func undecided(t *testing.T, metadata object, labels ...string) string {
	t.Helper()
	given := object{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		given[key] = value
	}
	metadata["labels"] = given
	manifest := encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
	created, err := api(t, nil).Resource(namespaces).Create(t.Context(), unstructuredOf(t, manifest), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.GetName()
}

const (
	governedLabel       = "stencil.kubevirt.io/governed"
	approvalsAnnotation = "stencil.kubevirt.io/approvals"
)

// governed returns the value of the label, empty while the namespace is undecided.
func governed(t *testing.T, namespace string) string {
	t.Helper()
	return acting(t, nil, "").get(namespaces, namespace).GetLabels()[governedLabel]
}
