package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

const objectAccount = "system:serviceaccount:" + install.Namespace + ":stencil-objects"

func TestObjects(t *testing.T) {
	rule := func(group string, resources ...string) any {
		return map[string]any{
			"apiGroups": []string{group}, "apiVersions": []string{"*"}, "operations": []string{"CREATE", "UPDATE", "DELETE"}, "resources": resources,
		}
	}
	const (
		policies = "ValidatingAdmissionPolicy/stencil-"
		rules    = policies + "manager-objects {.spec.matchConstraints.resourceRules}"
		account  = " {.spec.variables[?(@.name==\"objectUser\")].expression}"
		rights   = "ClusterRole/stencil-objects {.rules}"
		keys     = "Role/stencil-manager {.rules[?(@.resources[0]==\"secrets\")].resourceNames[*]}"
	)
	manager := map[string]any{
		policies + "manager-objects" + account: `"` + objectAccount + `"`,
		policies + "pending-objects" + account: `"` + objectAccount + `"`,
		keys:                                   []string{"stencil-object-keys", "stencil-webhook-ca"},
		"ServiceAccount/stencil-objects {.automountServiceAccountToken}":  false,
		"ClusterRoleBinding/stencil-objects {.subjects}":                  []any{map[string]any{"kind": "ServiceAccount", "name": "stencil-objects", "namespace": install.Namespace}},
		"ClusterRoleBinding/stencil-objects {.roleRef.name}":              "stencil-objects",
		"ValidatingAdmissionPolicyBinding/stencil-held-instances {.spec}": map[string]any{"policyName": "stencil-held-instances", "validationActions": []string{"Deny"}},
	}
	right := func(group, resource string, verbs ...string) any {
		return map[string]any{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}
	}
	runRenderCases(t, map[string]renderCase{
		"Secrets, ConfigMaps and Services by default": {
			want: merged(manager, map[string]any{
				rules: []any{rule("", "secrets"), rule("", "configmaps"), rule("", "services"), rule("kubevirt.io", "virtualmachines")},
				rights: []any{
					right("", "secrets", "create"), right("", "configmaps", "create", "get"), right("", "services", "create", "get"), right("kubevirt.io", "virtualmachines", "patch"),
				},
			}),
		},
		"other resources": {
			values: `{objects: {resources: [networkpolicies.networking.k8s.io, secrets]}}`,
			want: merged(manager, map[string]any{
				rules:  []any{rule("networking.k8s.io", "networkpolicies"), rule("", "secrets"), rule("kubevirt.io", "virtualmachines")},
				rights: []any{right("networking.k8s.io", "networkpolicies", "create", "get"), right("", "secrets", "create"), right("kubevirt.io", "virtualmachines", "patch")},
				deployment + " {" + container + ".args}": items{
					"--object-account=" + objectAccount, "--object-resources=networkpolicies.networking.k8s.io,secrets", "--object-keys-secret=stencil-object-keys",
				},
				apiserverContainer + ".args}": items{"--object-resources=networkpolicies.networking.k8s.io,secrets"},
			}),
		},
		"resources that templates lend": {
			values: `{objects: {lentResources: [configmaps, secrets]}}`,
			want:   merged(manager, map[string]any{deployment + " {" + container + ".args}": items{"--object-resources=secrets,configmaps,services", "--lent-object-resources=configmaps,secrets"}}),
		},
		"a resource called secrets in another group can be read": {
			values: `{objects: {resources: [secrets.example.com]}}`,
			want: merged(manager, map[string]any{
				rules:  []any{rule("example.com", "secrets"), rule("kubevirt.io", "virtualmachines")},
				rights: []any{right("example.com", "secrets", "create", "get"), right("kubevirt.io", "virtualmachines", "patch")},
			}),
		},
		"none": {
			values: `{objects: {resources: []}}`,
			want: map[string]any{
				policies + "manager-objects" + account: `""`,
				policies + "pending-objects" + account: `""`,
				keys:                                   "stencil-webhook-ca",
				rules:                                  []any{rule("", "secrets", "configmaps", "services"), rule("kubevirt.io", "virtualmachines")},
			},
			present: []string{policies + "held-instances", "ValidatingAdmissionPolicyBinding/stencil-held-instances"},
			absent:  []string{"ServiceAccount/stencil-objects", "ClusterRole/stencil-objects", "ClusterRoleBinding/stencil-objects"},
		},
	})
}

func TestValuesOfObjectsThatAreNoResources(t *testing.T) {
	for name, value := range map[string]string{
		"a kind":                   "Secret",
		"a subresource":            "pods/exec",
		"all":                      "*",
		"a version":                "/v1/secrets",
		"nothing":                  "",
		"two resources":            "secrets,pods",
		"a group without resource": ".apps",
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, ok := helm(t, "", "template", "stencil", chartFolder(t), "--namespace", install.Namespace, "--set-json", `objects.resources=["`+value+`"]`)
			if ok || !strings.Contains(stderr, "/objects/resources/0") {
				t.Errorf("it was accepted: %s", stderr)
			}
		})
	}
}

func TestTemplatesLendOnlyWhatTheyCreate(t *testing.T) {
	_, stderr, ok := helm(t, "", "template", "stencil", chartFolder(t), "--namespace", install.Namespace, "--set-json", `objects.lentResources=["pods"]`)
	if ok || !strings.Contains(stderr, "objects.lentResources has pods, which objects.resources does not have: templates create only those") {
		t.Errorf("it was accepted: %s", stderr)
	}
}

// The account as which the manager creates objects of templates, and the manager without it.
//
//suite:long
func TestTheAccountOfObjectsCreatesTheListedResourcesOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		resources    []any
		want         []string
		impersonates bool
	}{
		"by default": {want: rightsTo(map[string]string{"secrets": "create", "configmaps": "create get", "services": "create get", "kubevirt.io/virtualmachines": "patch"}), impersonates: true},
		"with other resources": {
			resources: []any{"networkpolicies.networking.k8s.io", "secrets"}, impersonates: true,
			want: rightsTo(map[string]string{"networking.k8s.io/networkpolicies": "create get", "secrets": "create", "kubevirt.io/virtualmachines": "patch"}),
		},
		"where none are created": {resources: []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			options := install.Options{}
			if tc.resources != nil {
				options.Values = map[string]any{"objects": map[string]any{"resources": tc.resources}}
			}
			plane := installed(t, options)
			manager, err := options.ManagerUser(plane)
			if err != nil {
				t.Fatal(err)
			}
			accountMay(t, plane, manager, "stencil-objects", map[string][]string{install.Namespace: tc.want, "default": tc.want})
			eventually(t, "the manager acts as the account, and has the keys, or may not", func() string {
				rights := rightsOf(t, manager, install.Namespace)
				for _, right := range []string{"impersonate serviceaccounts stencil-objects", "get secrets stencil-object-keys", "update secrets stencil-object-keys"} {
					if slices.Contains(rights, right) != tc.impersonates {
						return "unlike wanted: " + right
					}
				}
				return ""
			})
			arguments := options.ManagerArgs()
			if slices.Contains(arguments, "--object-account="+objectAccount) != tc.impersonates || strings.Contains(strings.Join(arguments, " "), "--object-") != tc.impersonates {
				t.Errorf("flags %q", arguments)
			}
		})
	}
}

// A client with the token of the account, or of the manager that acts as it: RBAC permits these requests, admission policies deny them.
//
//suite:long
func TestTheAccountOfObjectsWritesNothingElse(t *testing.T) {
	options := install.Options{Values: map[string]any{"objects": map[string]any{"resources": []any{"networkpolicies.networking.k8s.io", "secrets"}}}}
	plane := shared.Plane(t)
	space := namespace(t, plane)
	installed(t, options)
	if err := install.AwaitPolicies(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	account := harness.User(t, plane, objectAccount, gen.Group(manager.Groups...))
	const (
		owned = `"labels": {"objects.template.kubevirt.io/owner": "u"}, "ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "u", "controller": true}]`
		owner = "ValidatingAdmissionPolicy 'stencil-manager-objects' with binding 'stencil-manager-objects' denied request: Stencil's manager creates objects for one VirtualMachine only, " +
			"which controls them and whose UID is in label objects.template.kubevirt.io/owner: create it as another user"
	)
	secret := func(metadata string) string {
		return `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"` + metadata + `}}`
	}
	policy := func(metadata string) string {
		return `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web"` + metadata + `}, "spec": {"podSelector": {}}}`
	}
	for name, tc := range map[string]struct {
		stdin  string
		dryRun string
		want   string
	}{
		"it creates a Secret of a VM":             {stdin: secret(", " + owned), dryRun: "server"},
		"it creates a NetworkPolicy of a VM":      {stdin: policy(", " + owned), dryRun: "server"},
		"it tries an object before there is a VM": {stdin: secret(""), dryRun: "server"},
		"it creates no Secret of its own":         {stdin: secret(""), dryRun: "none", want: owner},
		"it creates no NetworkPolicy of its own":  {stdin: policy(""), dryRun: "none", want: owner},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "the answer is as wanted", func() string {
				return differs(tc.want, kubectl(t, plane, account, tc.stdin, "create", "--namespace", space, "--dry-run="+tc.dryRun, "--validate=false", "-f", "-"))
			})
		})
	}
}
