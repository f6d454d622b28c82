package policies_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane"
)

const (
	manyApprovals = 30
	// manyGroups are more than directories usually give a person.
	manyGroups = 1000
)

// bulky is an approval with every list that a policy reads as long as its definition allows, and nothing in them that ends a search
// before the last item.
func bulky(number int, last object) object {
	repeat := func(count int, item func(i int) any) []any {
		items := make([]any, count)
		for i := range items {
			items[i] = item(i)
		}
		return items
	}
	label := func(i int) string {
		return fmt.Sprintf("label-%03d.example.com/%s", i, strings.Repeat("k", 63))
	}
	value := func(i int) string { return fmt.Sprintf("%s-%02d", strings.Repeat("v", 60), i) }
	wanted := object{}
	for i := range 16 {
		wanted[label(i)] = value(63)
	}
	spec := object{
		"namespaces": repeat(255, func(i int) any { return fmt.Sprintf("%s-%03d-%03d", strings.Repeat("n", 50), number, i) }),
		"namespaceSelector": object{
			"matchLabels": wanted,
			"matchExpressions": repeat(16, func(i int) any {
				return object{"key": label(i), "operator": "In", "values": repeat(64, func(i int) any { return value(i) })}
			}),
		},
		"templates": append(repeat(63, func(i int) any {
			return object{"namespace": "golden", "name": fmt.Sprintf("%s-%03d-%03d", strings.Repeat("t", 240), number, i)}
		}), object{"namespace": "golden", "name": fmt.Sprintf("last-%03d", number)}),
		"subjects": repeat(128, func(i int) any {
			return object{"kind": "Group", "name": fmt.Sprintf("%s-%03d", strings.Repeat("s", 500), i)}
		}),
		"exemptSubjects": repeat(128, func(i int) any {
			return object{"kind": "Group", "name": fmt.Sprintf("%s-%03d", strings.Repeat("g", 500), i)}
		}),
	}
	for key, value := range last {
		spec[key] = value
	}
	return spec
}

// bulkyLabels are what bulky approvals select.
func bulkyLabels() []string {
	var labels []string
	selector := bulky(0, nil)["namespaceSelector"].(object)
	for key, value := range selector["matchLabels"].(object) {
		labels = append(labels, key+"="+value.(string))
	}
	return labels
}

// An expression that costs too much refuses the request whatever it says, so one big approval, or many, could bring all work to a stop.
func TestManyBigApprovalsStayWithinTheBudgets(t *testing.T) {
	covered, free := namespace(t, bulkyLabels()...), namespace(t)
	mustKubectl(t, plain("stored"), "create", "--namespace", covered, "-f", "-")

	groups := make([]string, manyGroups)
	for i := range groups {
		groups[i] = fmt.Sprintf("%s-%04d", strings.Repeat("g", 200), i)
	}
	// A client certificate holds no thousand groups; a token of a directory does, and so does impersonation.
	crowd := []string{"--as", "member"}
	for _, group := range groups {
		crowd = append(crowd, "--as-group", group)
	}
	mustKubectl(t, encode(object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": "member"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{object{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "member"}},
	}), "apply", "-f", "-")

	t.Cleanup(func() { mustKubectl(t, "", "delete", "templateapprovals", "--all") })
	applyMany(t, func(int) object { return nil })
	refused := func(result controlplane.Result) string {
		for i := range manyApprovals {
			if (needsTemplate(fmt.Sprintf("bulky-%03d", i))).complaint(result) == "" {
				return ""
			}
		}
		return "answered " + result.Stdout + result.Stderr
	}
	eventually(t, func() string { return refused(probe(t, covered)) })

	create := func(space, manifest string, as ...string) controlplane.Result {
		t.Helper()
		return kubectl(t, nil, manifest, append([]string{"create", "--namespace", space, "--dry-run=server", "-f", "-"}, as...)...)
	}
	t.Run("each", func(t *testing.T) {
		t.Run("a member of many groups is refused for the right reason", func(t *testing.T) {
			t.Parallel()
			if complaint := refused(create(covered, plain("a"), crowd...)); complaint != "" {
				t.Error(complaint)
			}
		})
		t.Run("a namespace that none of them covers is not concerned", func(t *testing.T) {
			t.Parallel()
			refusal{}.check(t, create(free, plain("a"), crowd...))
		})
		t.Run("a template that nobody lists is refused for the right reason", func(t *testing.T) {
			t.Parallel()
			result := create(covered, templated("a", "golden/fedora"), crowd...)
			if !strings.Contains(result.Stderr, " does not approve template golden/fedora for you in this namespace") {
				t.Error(result.Stderr)
			}
		})
		t.Run("a door is closed for the right reason", func(t *testing.T) {
			t.Parallel()
			d := doors()[1]
			result := create(covered, d.manifest(d.versions[1], object{"name": "a"}), crowd...)
			if !strings.Contains(result.Stderr, "VirtualMachinePools lead to virtual machines that nobody judges") {
				t.Error(result.Stderr)
			}
		})
		t.Run("a volume is not plugged in for the right reason", func(t *testing.T) {
			t.Parallel()
			if result := plug(t, covered); !strings.Contains(result.Stderr, "volumes cannot be plugged in or unplugged") {
				t.Error(result.Stderr)
			}
		})
		t.Run("the labels of the namespace are kept for the right reason", func(t *testing.T) {
			t.Parallel()
			labeller := person(t, "labeller", labelling)
			result := kubectl(t, labeller, "", "patch", "namespace", covered, "--dry-run=server", "--type=merge", "--patch", `{"metadata": {"labels": null}}`)
			if !strings.Contains(result.Stderr, "would no longer cover the Namespace") {
				t.Error(result.Stderr)
			}
		})
	})
	t.Run("one that somebody lists passes", func(t *testing.T) {
		// As long as Stencil lets it become.
		list := strings.Repeat("golden/"+strings.Repeat("t", 240)+",", 65) + "golden/fedora"
		change := encode(object{"metadata": object{"annotations": object{"stencil.kubevirt.io/approved-templates": list}}})
		mustKubectl(t, "", "patch", "namespace", covered, "--type=merge", "--patch", change)
		eventually(t, func() string { return refusal{}.complaint(create(covered, templated("a", "golden/fedora"), crowd...)) })
	})
	t.Run("somebody whom the last subject of each exempts passes", func(t *testing.T) {
		applyMany(t, func(i int) object {
			exempt := bulky(i, nil)["exemptSubjects"].([]any)
			exempt[len(exempt)-1] = object{"kind": "Group", "name": groups[len(groups)-1]}
			return object{"exemptSubjects": exempt}
		})
		eventually(t, func() string { return refusal{}.complaint(create(covered, plain("a"), crowd...)) })
	})
}

// applyMany stores the bulky approvals with what is special about each. kubectl would take a minute for them.
func applyMany(t *testing.T, special func(i int) object) {
	t.Helper()
	config := rest.CopyConfig(shared.Plane(t).AdminConfig())
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	approvals := client.Resource(schema.GroupVersionResource{Group: "stencil.kubevirt.io", Version: "v1alpha1", Resource: "templateapprovals"})
	for i := range manyApprovals {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON([]byte(approval(fmt.Sprintf("bulky-%03d", i), bulky(i, special(i))))); err != nil {
			t.Fatal(err)
		}
		if _, err := approvals.Apply(t.Context(), manifest.GetName(), manifest, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
}
