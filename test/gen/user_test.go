package gen_test

import (
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
)

var shared = controlplane.Shared{Options: controlplane.Options{KubeVirt: true, ControllerManager: true}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func newNamespace(t *testing.T, plane *controlplane.Plane) string {
	t.Helper()
	name, err := plane.Namespace(t.Context(), "gen")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUsersHaveTheirPermissionsAndNoOthers(t *testing.T) {
	plane := shared.Plane(t)
	own, other, golden := newNamespace(t, plane), newNamespace(t, plane), newNamespace(t, plane)
	users := map[string]*controlplane.User{}
	for name, modifiers := range map[string][]gen.UserModifier{
		"editor":   {gen.Group("team-a"), gen.Role(own, "edit"), gen.UsesTemplates(golden, "fedora")},
		"kubevirt": {gen.Role(own, "kubevirt.io:edit"), gen.UsesTemplates(other)},
		"viewer":   {gen.Role(own, "view")},
		"labeller": {gen.Permits("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"patch"}})},
		"stranger": nil,
	} {
		user, err := gen.User(t.Context(), plane, name, modifiers...)
		if err != nil {
			t.Fatal(err)
		}
		users[name] = user
	}
	if got := users["editor"].Groups; len(got) != 1 || got[0] != "team-a" {
		t.Errorf("want the group team-a, got %v", got)
	}
	vms := func(verb, namespace string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Group: "kubevirt.io", Resource: "virtualmachines", Verb: verb, Namespace: namespace}
	}
	templates := func(verb, namespace, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{
			Group: "template.kubevirt.io", Resource: "virtualmachinetemplates", Verb: verb, Namespace: namespace, Name: name,
		}
	}
	core := func(verb, resource, namespace string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Resource: resource, Verb: verb, Namespace: namespace}
	}
	for name, tc := range map[string]struct {
		as          string
		to          authorizationv1.ResourceAttributes
		wantAllowed bool
	}{
		"edit permits creating VMs in its namespace":                  {as: "editor", to: vms("create", own), wantAllowed: true},
		"edit permits creating Secrets in its namespace":              {as: "editor", to: core("create", "secrets", own), wantAllowed: true},
		"edit does not permit creating VMs elsewhere":                 {as: "editor", to: vms("create", other)},
		"edit does not permit changing its namespace":                 {as: "editor", to: core("patch", "namespaces", own)},
		"kubevirt.io:edit permits creating VMs in its namespace":      {as: "kubevirt", to: vms("create", own), wantAllowed: true},
		"kubevirt.io:edit does not permit creating VMs elsewhere":     {as: "kubevirt", to: vms("create", other)},
		"kubevirt.io:edit does not permit reading Secrets":            {as: "kubevirt", to: core("get", "secrets", own)},
		"view permits reading VMs":                                    {as: "viewer", to: vms("get", own), wantAllowed: true},
		"view does not permit creating VMs":                           {as: "viewer", to: vms("create", own)},
		"a user of one template may use it":                           {as: "editor", to: templates("use", golden, "fedora"), wantAllowed: true},
		"a user of one template may not use another":                  {as: "editor", to: templates("use", golden, "windows")},
		"a user of one template may not use one of the same name":     {as: "editor", to: templates("use", other, "fedora")},
		"a user of templates may not read them":                       {as: "editor", to: templates("get", golden, "fedora")},
		"a user of all templates may use each":                        {as: "kubevirt", to: templates("use", other, "fedora"), wantAllowed: true},
		"a rule without a namespace holds in the whole cluster":       {as: "labeller", to: core("patch", "namespaces", other), wantAllowed: true},
		"a user without modifiers may not create VMs":                 {as: "stranger", to: vms("create", own)},
		"a user without modifiers may not use templates":              {as: "stranger", to: templates("use", other, "fedora")},
		"no user is an administrator because of a namespaced binding": {as: "editor", to: core("list", "nodes", "")},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(users[tc.as].Config())
			if err != nil {
				t.Fatal(err)
			}
			review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &tc.to},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != tc.wantAllowed {
				t.Errorf("allowed is %v, want %v: %s", review.Status.Allowed, tc.wantAllowed, review.Status.Reason)
			}
		})
	}
}

func TestKubeVirtAdmitsTheVMsThatAreBuilt(t *testing.T) {
	plane := shared.Plane(t)
	own := newNamespace(t, plane)
	user, err := gen.User(t.Context(), plane, "owner", gen.Role(own, "kubevirt.io:edit"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := gen.Manifest(
		gen.VM("small", gen.InNamespace(own), gen.SmallSpec()),
		gen.VM("", gen.InNamespace(own), gen.GenerateName("disks-"), gen.SmallSpec(), gen.Memory("128Mi"),
			gen.ContainerDisk("root", "quay.io/containerdisks/fedora"), gen.CloudInit("init", "#cloud-config"), gen.DataVolumeTemplate("data", "1Gi")),
	)
	got, err := plane.Kubectl(t.Context(), user, manifest, "create", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if got.Code != 0 || strings.Count(got.Stdout, "created") != 2 {
		t.Errorf("want two VMs created, got %s%s", got.Stdout, got.Stderr)
	}
}

func TestARoleThatIsMissingOnThePlaneIsAnError(t *testing.T) {
	plane := controlplane.StartFor(t, controlplane.Options{})
	for name, tc := range map[string]struct {
		role string
		want string
	}{
		"an aggregated role needs kube-controller-manager": {role: "edit", want: "Options.ControllerManager"},
		"a role of KubeVirt needs KubeVirt":                {role: "kubevirt.io:edit", want: "Options.KubeVirt"},
		"any other role is reported as not found":          {role: "nonsense", want: `"nonsense" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gen.User(t.Context(), plane, "editor", gen.Role("default", tc.role))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "editor") {
				t.Errorf("want an error that names the user and %s, got %v", tc.want, err)
			}
		})
	}
}
