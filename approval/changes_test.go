package approval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		name, old, new string
		want           []string
	}{
		{name: "nothing", old: "spec: {a: 1, l: [{name: a}], m: {x: y}}", new: "spec: {a: 1, l: [{name: a}], m: {x: y}}"},
		{name: "a value", old: "spec: {a: 1, b: 2}", new: "spec: {a: 1, b: 3}", want: []string{"spec.b"}},
		{name: "values that come and go", old: "spec: {a: 1}", new: "spec: {b: 1}", want: []string{"spec.a", "spec.b"}},
		{name: "null is nothing", old: "spec: {a: null, m: {x: 1}}", new: "spec: {b: null, m: {x: 1, y: null}}"},
		{name: "an empty list is nothing", old: "spec: {a: []}", new: "spec: {}"},
		{name: "the same number in another notation", old: "spec: {a: 1.0, b: 1e3, c: 0.10}", new: "spec: {a: 1, b: 1000, c: 0.1}"},
		{name: "a number that became text", old: "spec: {a: 1}", new: `spec: {a: "1"}`, want: []string{"spec.a"}},
		{name: "false is not nothing", old: "spec: {a: false}", new: "spec: {}", want: []string{"spec.a"}},
		{name: "a value that became a map", old: "spec: {a: x}", new: "spec: {a: {x: y}}", want: []string{"spec.a"}},
		{name: "a map that became a list", old: "spec: {a: {x: y}}", new: "spec: {a: [x]}", want: []string{"spec.a"}},
		{name: "a list that became a value", old: "spec: {a: [x]}", new: "spec: {a: x}", want: []string{"spec.a"}},

		{name: "a map that appears is what is in it", old: "spec: {}", new: "spec: {cpu: {cores: 2, numa: {x: 1}}}", want: []string{"spec.cpu.cores", "spec.cpu.numa.x"}},
		{name: "an empty map that appears is a whole one", old: "spec: {}", new: "spec: {tpm: {}}", want: []string{"spec.tpm.*"}},
		{name: "a map of nulls is an empty one", old: "spec: {}", new: "spec: {tpm: {x: null}}", want: []string{"spec.tpm.*"}},
		{name: "a map that disappears is a whole one", old: "spec: {efi: {secureBoot: true}}", new: "spec: {}", want: []string{"spec.efi.*"}},
		{name: "an empty map that disappears is a whole one", old: "spec: {efi: {}}", new: "spec: {}", want: []string{"spec.efi.*"}},
		{name: "a map that is emptied is what was in it", old: "spec: {efi: {secureBoot: true}}", new: "spec: {efi: {}}", want: []string{"spec.efi.secureBoot"}},
		{name: "the last label goes", old: "metadata: {labels: {a: b}}", new: "metadata: {}", want: []string{"metadata.labels.a"}},
		{name: "the last node label goes", old: "spec: {template: {spec: {nodeSelector: {a: b}}}}", new: "spec: {template: {spec: {}}}", want: []string{"spec.template.spec.nodeSelector.a"}},
		{name: "that a map of strings is there means nothing", old: "spec: {template: {spec: {nodeSelector: {}}}}", new: "spec: {template: {spec: {}}}"},

		{name: "an item's field, by name", old: "spec: {l: [{name: a, x: 1}, {name: b, x: 1}]}", new: "spec: {l: [{name: a, x: 1}, {name: b, x: 2}]}", want: []string{"spec.l[name=b].x"}},
		{name: "an item comes as a whole", old: "spec: {l: [{name: a}]}", new: "spec: {l: [{name: b, x: 1}, {name: a}]}", want: []string{"spec.l[name=b]"}},
		{name: "an item goes as a whole", old: "spec: {l: [{name: a, x: 1}, {name: b}]}", new: "spec: {l: [{name: b}]}", want: []string{"spec.l[name=a]"}},
		{name: "the first item comes", old: "spec: {}", new: "spec: {l: [{name: a, x: 1}]}", want: []string{"spec.l[name=a]"}},
		{name: "the last item goes", old: "spec: {l: [{name: a, x: 1}]}", new: "spec: {l: []}", want: []string{"spec.l[name=a]"}},
		{name: "an item is renamed", old: "spec: {l: [{name: a, x: 1}]}", new: "spec: {l: [{name: b, x: 1}]}", want: []string{"spec.l[name=a]", "spec.l[name=b]"}},
		{name: "items in another order", old: "spec: {l: [{name: a}, {name: b}, {name: c}]}", new: "spec: {l: [{name: c}, {name: a}, {name: b}]}", want: []string{"spec.l[*]"}},
		{name: "an order that an item between does not change", old: "spec: {l: [{name: a}, {name: b}]}", new: "spec: {l: [{name: a}, {name: x}, {name: b}]}", want: []string{"spec.l[name=x]"}},
		{name: "a name with a dot and one with a blank", old: "spec: {l: []}", new: "spec: {l: [{name: a.b}, {name: a b}]}", want: []string{`spec.l[name="a b"]`, "spec.l[name=a.b]"}},

		{name: "items without names, by position", old: "spec: {l: [{x: 1}, {x: 1}]}", new: "spec: {l: [{x: 1}, {x: 2}]}", want: []string{"spec.l[1].x"}},
		{name: "a name that is used twice is none", old: "spec: {l: [{name: a, x: 1}, {name: a, x: 1}]}", new: "spec: {l: [{name: a, x: 1}, {name: a, x: 2}]}", want: []string{"spec.l[1].x"}},
		{name: "one more item without a name", old: "spec: {l: [x]}", new: "spec: {l: [x, y]}", want: []string{"spec.l[*]"}},
		{name: "an item loses its name", old: "spec: {l: [{name: a, x: 1}]}", new: "spec: {l: [{x: 1}]}", want: []string{"spec.l[0].name"}},
		{name: "values in a list", old: "spec: {l: [x, y]}", new: "spec: {l: [x, z]}", want: []string{"spec.l[1]"}},
		{name: "null takes a place in a list", old: "spec: {l: [null, x]}", new: "spec: {l: [[], x]}", want: []string{"spec.l[0]"}},
		{name: "the first items without names", old: "spec: {}", new: "spec: {l: [x]}", want: []string{"spec.l[*]"}},
		{name: "lists in lists", old: "spec: {l: [[a, b]]}", new: "spec: {l: [[a, c]]}", want: []string{"spec.l[0][1]"}},

		{name: "labels and annotations", old: "metadata: {labels: {a/b.c: x}}", new: "metadata: {labels: {a/b.c: y}, annotations: {note: m}}", want: []string{`metadata.labels["a/b.c"]`, "metadata.annotations.note"}},
		{name: "other metadata is not evaluated", old: "metadata: {name: a, finalizers: [a], generation: 1}", new: "metadata: {name: a, finalizers: [b], generation: 2, ownerReferences: [{name: x}]}"},
		{name: "the status is not evaluated", old: "status: {a: b}", new: "status: {a: c}"},
		{name: "the version is not evaluated", old: "apiVersion: kubevirt.io/v1", new: "apiVersion: kubevirt.io/v1alpha3"},
		{name: "an unknown field is evaluated", old: "{}", new: "other: {a: b}", want: []string{"other.a"}},
		{
			name: "the contract is not evaluated",
			old:  "metadata: {annotations: {template.kubevirt.io/template-ref: a, parameter.template.kubevirt.io/A: b, kubectl.kubernetes.io/last-applied-configuration: x}}",
			new:  "metadata: {annotations: {template.kubevirt.io/rendered: a}, labels: {vm.kubevirt.io/template: a, vm.kubevirt.io/template.namespace: b, vm.kubevirt.io/template.revision: c}}",
		},
		{
			name: "a key of the contract elsewhere is evaluated",
			old:  "{}", new: "spec: {template: {metadata: {annotations: {template.kubevirt.io/rendered: a}, labels: {vm.kubevirt.io/template: a}}}}",
			want: []string{`spec.template.metadata.annotations["template.kubevirt.io/rendered"]`, `spec.template.metadata.labels["vm.kubevirt.io/template"]`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, new := tree(t, tc.old), tree(t, tc.new)
			got := texts(approval.Changes(old, new))
			if diff := cmp.Diff(tc.want, got, sorted); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tree(t, tc.old), old); diff != "" {
				t.Errorf("the old object was modified:\n%s", diff)
			}
			if diff := cmp.Diff(tree(t, tc.new), new); diff != "" {
				t.Errorf("the new object was modified:\n%s", diff)
			}
		})
	}
}

func TestNumbersThatAnyDecoderMakesAreCompared(t *testing.T) {
	for _, tc := range []struct {
		name     string
		old, new any
		want     bool
	}{
		{"an integer and a json.Number", int64(4), json.Number("4"), false},
		{"an integer and a float", int64(4), float64(4), false},
		{"integers above 2^53 that differ by one", json.Number("9007199254740993"), json.Number("9007199254740992"), true},
		{"an integer above 2^53 and its neighbour as a float", json.Number("9007199254740993"), float64(9007199254740992), true},
		{"integers above 2^64 that differ by one", json.Number("18446744073709551617"), json.Number("18446744073709551616"), true},
		{"a number too large to be computed with", json.Number("1e999999999"), json.Number("1e999999999"), false},
		{"two numbers too large to be computed with", json.Number("1e999999999"), json.Number("1e999999998"), true},
		{"a number and a bool", int64(1), true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := approval.Changes(map[string]any{"spec": map[string]any{"a": tc.old}}, map[string]any{"spec": map[string]any{"a": tc.new}})
			if (len(got) > 0) != tc.want {
				t.Errorf("%v and %v: %v", tc.old, tc.new, got)
			}
		})
	}
}

func TestVeryManyChangesAreEvaluatedBySections(t *testing.T) {
	many := map[string]any{}
	for i := range approval.MaxTouched {
		many[fmt.Sprint("f", i)] = "x"
	}
	object := map[string]any{"spec": many, "metadata": map[string]any{"labels": map[string]any{}}}
	if got := approval.Changes(map[string]any{}, object); len(got) != approval.MaxTouched {
		t.Errorf("%d places, want %d", len(got), approval.MaxTouched)
	}
	object["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	if diff := cmp.Diff([]string{"metadata.labels", "spec"}, texts(approval.Changes(map[string]any{}, object)), sorted); diff != "" {
		t.Error(diff)
	}
}

func TestVeryDeepChangesAreEvaluatedAtTheMaximumDepth(t *testing.T) {
	nested := func(leaf string) map[string]any {
		return tree(t, "spec: "+strings.Repeat("{a: ", 500)+leaf+strings.Repeat("}", 500))
	}
	got := approval.Changes(nested("x"), nested("y"))
	if len(got) != 1 || len(got[0]) != 48 {
		t.Errorf("got %d places: %v", len(got), got)
	}
	if got := approval.Changes(nested("x"), nested("x")); len(got) != 0 {
		t.Errorf("the same depths differ: %v", got)
	}
}

func TestMapsThatMeanNothing(t *testing.T) {
	const old = "spec: {template: {metadata: {labels: {a: b}}, spec: {domain: {resources: {requests: {memory: 1Gi}}, features: {acpi: {}}}}}, dataVolumeTemplates: [{spec: {storage: {resources: {requests: {storage: 1Gi}}}}}]}"
	for _, tc := range []struct {
		name, new string
		want      []string
	}{
		{
			name: "they go with what is in them",
			new:  "spec: {template: {spec: {domain: {features: {x: {}}}}}, dataVolumeTemplates: [{spec: {storage: {}}}]}",
			want: []string{
				"spec.template.metadata.labels.a", "spec.template.spec.domain.resources.requests.memory", "spec.template.spec.domain.features.x.*",
				"spec.dataVolumeTemplates[0].spec.storage.resources.requests.storage",
			},
		},
		{
			name: "they come empty",
			new: "spec: {template: {metadata: {creationTimestamp: null, labels: {a: b}, annotations: {}}, spec: {nodeSelector: {}, domain: {devices: {}, resources: {limits: {}, requests: {memory: 1Gi}}, features: {}}}}," +
				" dataVolumeTemplates: [{metadata: {creationTimestamp: null}, spec: {storage: {resources: {requests: {storage: 1Gi}}}}}]}",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(approval.Changes(tree(t, old), tree(t, tc.new))), sorted); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
