package policies_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/metrics"
)

// bindingController may create namespaces, and is their admin, as with self-service on many clusters. KubeVirt adds its own kinds to the role admin, including
// those that install KubeVirt.
var bindingController = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Verbs: []string{"create", "get"}, Resources: []string{"namespaces", "serviceaccounts", "serviceaccounts/token"}},
	{APIGroups: []string{"kubevirt.io"}, Verbs: []string{"create", "get", "update", "delete"}, Resources: []string{"kubevirts"}},
}

const kubeVirtObject = `{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": {}}`

// account creates a service account in a namespace, which it creates as well, and returns a user with its token. The permissions of settler suffice.
func account(t *testing.T, as *controlplane.User, namespace, name string) (user string, config *rest.Config) {
	t.Helper()
	created := acting(t, as, "").create(encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}}))
	if created.Code != 0 && !strings.Contains(created.Stderr, "already exists") {
		t.Fatal(created.Stderr)
	}
	mustPass(t, acting(t, as, namespace).create(encode(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": name}})))
	config = shared.Plane(t).AdminConfig()
	if as != nil {
		config = as.Config()
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	user = "system:serviceaccount:" + namespace + ":" + name
	// As the admin of a team, who may grant the account their own permissions in their namespace.
	harness.Grant(t, shared.Plane(t), &controlplane.User{Name: user}, "", ownership...)
	return user, config
}

// bound makes an account the subject of the ClusterRoleBinding of its name, as the operators of KubeVirt and CDI do.
func bound(t *testing.T, namespace, name string) {
	t.Helper()
	mustPass(t, acting(t, nil, "").create(encode(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []any{object{"kind": "ServiceAccount", "namespace": namespace, "name": name}},
	})))
	t.Cleanup(func() {
		mustPass(t, requests{t: t, client: clientOf(t, shared.Plane(t).AdminConfig())}.delete(clusterRoleBindings, name))
	})
}

// Users choose the names of namespaces and service accounts. The name of a controller proves nothing.
func TestOnlyInstalledControllersAreExempt(t *testing.T) {
	test := t
	mallory := newOwner(t, "settler", bindingController...)
	space, undecidedSpace := namespace(t), ""
	approve(t, "controllers", object{
		"namespaces": []any{space}, "namespaceSelector": object{"matchLabels": object{"example.com/controllers": "yes"}},
	})
	_, handler := account(t, mallory, "kubevirt", "kubevirt-handler")
	_, cdi := account(t, mallory, "cdi", "cdi-sa")
	_, elsewhere := account(t, mallory, "settlement", "kubevirt-controller")
	create := func(t *testing.T, config *rest.Config, space string) controlplane.Result {
		return requests{t: t, client: clientOf(t, config), namespace: space}.dry().create(plain("attack"))
	}
	attack := func(t *testing.T) {
		t.Helper()
		for _, config := range []*rest.Config{handler, cdi, elsewhere} {
			needsTemplate("controllers").check(t, create(t, config, space))
			if undecidedSpace != "" {
				notDecided.check(t, create(t, config, undecidedSpace))
			}
		}
	}
	attack(t)

	mustPass(t, acting(t, mallory, "settlement").create(kubeVirtObject))
	t.Cleanup(func() {
		mustPass(t, requests{t: t, client: clientOf(t, shared.Plane(t).AdminConfig()), namespace: "settlement"}.delete(kubeVirts, "kubevirt"))
	})
	var user string
	var installed *rest.Config
	t.Run("KubeVirt in another namespace is found", func(t *testing.T) {
		user, installed = account(t, nil, "hco", "kubevirt-controller")
		needsTemplate("controllers").check(t, create(t, installed, space))
		bound(test, "hco", "kubevirt-controller")
		mustPass(t, acting(t, nil, "hco").create(kubeVirtObject))
		if err := install.AwaitExempt(t.Context(), shared.Plane(t), user); err != nil {
			t.Fatalf("%v\n%s", err, stencil.process.Logs())
		}
		denial{}.check(t, create(t, installed, space))
		attack(t)

		t.Run("a binding that somebody changes is restored", func(t *testing.T) {
			mustPass(t, acting(t, nil, "").patch(clusterRoleBindings, "stencil-exempt-users", encode(object{"subjects": []any{
				object{"kind": "ServiceAccount", "namespace": "settlement", "name": "kubevirt-controller"},
			}})))
			if err := install.AwaitExempt(t.Context(), shared.Plane(t), user); err != nil {
				t.Fatal(err)
			}
			attack(t)
		})
		t.Run("while no manager runs", func(t *testing.T) {
			withoutManager(t)
			undecidedSpace = undecided(t, object{"generateName": "policies-"}, "example.com/controllers=yes")
			defer func() { undecidedSpace = "" }()
			denial{}.check(t, create(t, installed, space))
			denial{}.check(t, create(t, installed, undecidedSpace))
			attack(t)
			_, other := account(t, mallory, "settlement-2", "kubevirt-controller")
			needsTemplate("controllers").check(t, create(t, other, space))
		})
	})
	t.Run("a KubeVirt that is removed is exempt no more", func(t *testing.T) {
		mustPass(t, acting(t, nil, "hco").delete(kubeVirts, "kubevirt"))
		eventually(t, "its controller is not exempt", func() string {
			return needsTemplate("controllers").complaint(create(t, installed, space))
		})
	})
}

// Names that exempt no user are reported: of the values of a former release, of KubeVirt in another namespace, of other controllers.
func TestUnknownExemptUsersAreReported(t *testing.T) {
	space := namespace(t)
	approve(t, "reports", object{"namespaces": []any{space}})
	eventually(t, "the condition of the default names", func() string {
		return missing(`"status":"True","type":"ExemptUsersFound"`, conditions(t, "reports"))
	})
	before := stencil.options.Args
	restarted := func(names string) {
		t.Helper()
		if err := stencil.process.Stop(); err != nil {
			t.Fatal(err)
		}
		stencil.options.Args = before
		if names != "" {
			stencil.options.Args = append(slices.Clone(before), "--exempt-users="+names)
		}
		if err := stencil.start(lasting(t)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { restarted("") })
	restarted("system:serviceaccount:virt:kubevirt-controller,velero,kubevirt-handler")
	const cause = "names in the chart value exemptUsers that exempt no user: system:serviceaccount:virt:kubevirt-controller: KubeVirt is not installed in namespace virt: " +
		"write the name without a namespace, kubevirt-controller; exempt controllers other than KubeVirt's and CDI's with exemptSubjects of the TemplateApprovals; " +
		"velero: there is no such service account in the namespace of KubeVirt: remove the name from exemptUsers; " +
		"exempt controllers other than KubeVirt's and CDI's with exemptSubjects of the TemplateApprovals"
	eventually(t, "the condition explains them", func() string {
		said := conditions(t, "reports")
		for _, want := range []string{cause, `"reason":"NotInstalled"`} {
			if complaint := missing(want, said); complaint != "" {
				return complaint
			}
		}
		return ""
	})
	eventually(t, "an event explains them", func() string {
		return missing(cause, kubectl(t, nil, "", "get", "events.events.k8s.io", "--namespace=default", "--output=json", "--field-selector=reason=ExemptUsersUnknown").Stdout)
	})
	answer, err := http.Get(stencil.process.MetricsURL())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	exposed, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"stencil_exempt_users_unknown": 2,
		"stencil_exempt_users_found":   0,
	} {
		if got, err := metrics.Sum(string(exposed), name); err != nil || got != want {
			t.Errorf("%s is %v, want %v (%v)", name, got, want, err)
		}
	}
}

// conditions returns the conditions of an approval in JSON.
func conditions(t *testing.T, approval string) string {
	t.Helper()
	return kubectl(t, nil, "", "get", "templateapproval", approval, "--output=jsonpath={.status.conditions}").Stdout
}

// missing returns a complaint if a text does not contain another.
func missing(want, text string) string {
	if strings.Contains(text, want) {
		return ""
	}
	return "no " + want + " in " + text
}
