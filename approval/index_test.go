package approval_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

func TestNamespaceIndex(t *testing.T) {
	long := strings.Repeat("p", 200) + ".example/" + strings.Repeat("k", 63)
	for _, tc := range []struct {
		name  string
		specs []string
		want  map[string]string
	}{
		{name: "no approval"},
		{name: "names", specs: []string{"namespaces: [team-b, team-a]"}, want: map[string]string{"n": ",team-a,team-b,"}},
		{name: "an approval that warns closes nothing", specs: []string{"{enforcement: Warn, namespaces: [team-a]}"}},
		{
			name:  "its selector can still change what is selected",
			specs: []string{"{enforcement: Audit, namespaceSelector: {matchLabels: {tenant: x}}}"},
			want:  map[string]string{"c.tenant": ",x,"},
		},
		{name: "everything", specs: []string{"namespaceSelector: {}"}, want: map[string]string{"all": ""}},
		{
			name:  "of several labels the first is looked up, and all can change the selection",
			specs: []string{"namespaceSelector: {matchLabels: {b: '2', a: '1'}}"},
			want:  map[string]string{"c.a": ",1,", "c.b": ",2,", "l.a": ",1,"},
		},
		{
			name:  "values of In",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod, stage]}]}"},
			want:  map[string]string{"c.env": ",prod,stage,", "l.env": ",prod,stage,"},
		},
		{
			name:  "a label says more than In, and In more than Exists",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: e, operator: Exists}, {key: i, operator: In, values: [x]}], matchLabels: {l: m}}"},
			want:  map[string]string{"c.e": ",*,", "c.i": ",x,", "c.l": ",m,", "l.l": ",m,"},
		},
		{
			name:  "In comes before Exists, whatever their order",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: e, operator: Exists}, {key: i, operator: In, values: [x]}]}"},
			want:  map[string]string{"c.e": ",*,", "c.i": ",x,", "l.i": ",x,"},
		},
		{
			name:  "Exists",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: m, operator: NotIn, values: [x]}, {key: e, operator: Exists}]}"},
			want:  map[string]string{"c.e": ",*,", "c.m": ",x,", "l.e": ",*,"},
		},
		{
			name:  "requirements that a namespace without labels meets select everything",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: m, operator: NotIn, values: [x]}, {key: d, operator: DoesNotExist}]}"},
			want:  map[string]string{"all": "", "c.d": ",*,", "c.m": ",x,"},
		},
		{
			name:  "names and a selector",
			specs: []string{"{namespaces: [team-a], namespaceSelector: {matchLabels: {example.com/tenant: x}}}"},
			want:  map[string]string{"c.example.com_tenant": ",x,", "l.example.com_tenant": ",x,", "n": ",team-a,"},
		},
		{
			name:  "an empty value",
			specs: []string{"namespaceSelector: {matchLabels: {tenant: ''}}"},
			want:  map[string]string{"c.tenant": ",,", "l.tenant": ",,"},
		},
		{
			name:  "a long key is cut off",
			specs: []string{"namespaceSelector: {matchLabels: {" + long + ": x}}"},
			want:  map[string]string{("c." + strings.ReplaceAll(long, "/", "_"))[:253]: ",x,", ("l." + strings.ReplaceAll(long, "/", "_"))[:253]: ",x,"},
		},
		{
			name:  "several approvals",
			specs: []string{"namespaces: [a]", "namespaces: [a, b]", "namespaceSelector: {matchLabels: {x: z}}"},
			want:  map[string]string{"c.x": ",z,", "l.x": ",z,", "n": ",a,b,"},
		},
		{
			name:  "what no namespace can have is left out, for no ConfigMap can have it either",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: env, operator: In, values: ['no value', ok]}]}", "namespaces: ['no name']"},
			want:  map[string]string{"c.env": ",ok,", "l.env": ",ok,"},
		},
		{
			name:  "an operator that there is not narrows nothing",
			specs: []string{"namespaceSelector: {matchExpressions: [{key: env, operator: Like, values: [x]}]}"},
			want:  map[string]string{"all": "", "c.env": ",*,"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := map[string]string{"format": "2"}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff(want, approval.NamespaceIndex(approvalsOf(t, tc.specs...))); diff != "" {
				t.Errorf("index (-want +got):\n%s", diff)
			}
		})
	}
}

// approvalsOf are compiled, or closed where that fails.
func approvalsOf(t *testing.T, specs ...string) []*approval.Approval {
	t.Helper()
	var approvals []*approval.Approval
	for i, spec := range specs {
		o := object(t, fmt.Sprint("a", i), spec)
		a, err := approval.Compile(o)
		if err != nil {
			a = approval.Closed(o, err)
		}
		approvals = append(approvals, a)
	}
	return approvals
}

func TestALargeIndexStandsForEverything(t *testing.T) {
	named := func(count int) []*approval.Approval {
		var specs []string
		for from := 0; from < count; from += 100 {
			spec := "namespaces: ["
			for i := from; i < min(from+100, count); i++ {
				spec += fmt.Sprintf("n%061d, ", i)
			}
			specs = append(specs, spec+"]")
		}
		return approvalsOf(t, specs...)
	}
	// With 62 bytes of name and a comma, 512 KiB have room for 8321.
	if index := approval.NamespaceIndex(named(8321)); len(index) != 2 || strings.Count(index["n"], ",") != 8322 {
		t.Errorf("%d keys, %d commas", len(index), strings.Count(index["n"], ","))
	}
	index := approval.NamespaceIndex(named(8322))
	if diff := cmp.Diff(map[string]string{"format": "2", "all": "", "changes": ""}, index); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	if !approval.ChangesSelection(index, nil, map[string]string{"any": "label"}) {
		t.Error("a label that is added changes nothing")
	}
}

func TestChangesSelection(t *testing.T) {
	index := approval.NamespaceIndex(approvalsOf(t,
		"namespaceSelector: {matchLabels: {tenant: gold}}",
		"{enforcement: Warn, namespaceSelector: {matchExpressions: [{key: example.com/gpu, operator: Exists}, {key: env, operator: NotIn, values: [prod]}]}}"))
	for _, tc := range []struct {
		name          string
		before, after map[string]string
		want          bool
	}{
		{name: "nothing changes", before: map[string]string{"tenant": "gold"}, after: map[string]string{"tenant": "gold"}},
		{name: "a label of no selector", after: map[string]string{"other": "gold"}},
		{name: "a value is added", after: map[string]string{"tenant": "gold"}, want: true},
		{name: "it is removed", before: map[string]string{"tenant": "gold"}, want: true},
		{name: "it becomes another", before: map[string]string{"tenant": "gold"}, after: map[string]string{"tenant": "iron"}, want: true},
		{name: "another becomes it", before: map[string]string{"tenant": "iron"}, after: map[string]string{"tenant": "gold"}, want: true},
		{name: "another value", after: map[string]string{"tenant": "iron"}},
		{name: "one other value for another", before: map[string]string{"tenant": "iron"}, after: map[string]string{"tenant": "tin"}},
		{name: "a key is added, whatever its value", after: map[string]string{"example.com/gpu": "a"}, want: true},
		{name: "its value is of no matter", before: map[string]string{"example.com/gpu": "a"}, after: map[string]string{"example.com/gpu": "b"}},
		{name: "an excluded value", before: map[string]string{"env": "prod"}, want: true},
		{name: "a label that Stencil writes", before: map[string]string{v1alpha1.LabelGoverned: "true"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := approval.ChangesSelection(index, tc.before, tc.after); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// lookedUp is what the admission policy undecided-namespaces does; package policies compares its expression with the index as well.
func lookedUp(index map[string]string, namespace string, labels map[string]string) bool {
	if slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease"}, namespace) {
		return false
	}
	has := func(key, entry string) bool {
		key = strings.ReplaceAll(key, "/", "_")
		return strings.Contains(index[key[:min(len(key), 253)]], ","+entry+",")
	}
	if _, all := index["all"]; all || has("n", namespace) {
		return true
	}
	for key, value := range labels {
		if has("l."+key, "*") || has("l."+key, value) {
			return true
		}
	}
	return false
}

// For any selectors and labels, what is selected is found, and a change of what is selected is a change.
func TestTheIndexNeverStandsForTooLittle(t *testing.T) {
	found, changed, missed, kept := 0, 0, 0, 0
	for seed := range uint64(10_000) {
		random := rand.New(rand.NewPCG(13, seed))
		var approvals []*approval.Approval
		for i := range 1 + random.IntN(3) {
			approvals = append(approvals, randomApproval(t, random, fmt.Sprint("a", i)))
		}
		index := approval.NamespaceIndex(approvals)
		for key := range index {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				t.Fatalf("seed %d: key %q: %v", seed, key, problems)
			}
		}
		namespace := []string{"team-a", "team-b", "team-c", "kube-system"}[random.IntN(4)]
		before, after := randomLabels(random), randomLabels(random)
		if random.IntN(2) == 0 {
			after = maps.Clone(before)
			after[randomKey(random)] = randomLabelValue(random)
		}
		isFound := lookedUp(index, namespace, before)
		isChange := approval.ChangesSelection(index, before, after)
		for _, a := range approvals {
			covers := a.SelectsNamespace(namespace, before)
			if covers && a.Enforcement() == v1alpha1.EnforcementDeny && !isFound {
				t.Fatalf("seed %d: %s covers namespace %s with labels %v, and is not found in %v", seed, a.Name(), namespace, before, index)
			}
			if covers != a.SelectsNamespace(namespace, after) && !isChange {
				t.Fatalf("seed %d: %s covers namespace %s with labels %v or %v only, and that is no change by %v", seed, a.Name(), namespace, before, after, index)
			}
		}
		for count, happened := range map[*int]bool{&found: isFound, &missed: !isFound, &changed: isChange, &kept: !isChange} {
			if happened {
				*count++
			}
		}
	}
	if min(found, changed, missed, kept) < 500 {
		t.Errorf("%d namespaces found and %d not, %d changes and %d none say little", found, missed, changed, kept)
	}
}

var longKey = strings.Repeat("p", 200) + ".example/" + strings.Repeat("k", 60)

func randomKey(random *rand.Rand) string {
	return []string{"tenant", "env", "example.com/env", "example.com_env", longKey, longKey + "2", longKey + "3"}[random.IntN(7)]
}

func randomLabelValue(random *rand.Rand) string {
	return []string{"", "gold", "iron", "a.b", strings.Repeat("v", 63)}[random.IntN(5)]
}

func randomLabels(random *rand.Rand) map[string]string {
	labels := map[string]string{}
	for range random.IntN(4) {
		labels[randomKey(random)] = randomLabelValue(random)
	}
	return labels
}

func randomApproval(t *testing.T, random *rand.Rand, name string) *approval.Approval {
	o := object(t, name, "{namespaceSelector: {}}")
	o.Spec.Enforcement = []v1alpha1.Enforcement{"", v1alpha1.EnforcementDeny, v1alpha1.EnforcementWarn, v1alpha1.EnforcementAudit}[random.IntN(4)]
	if random.IntN(4) == 0 {
		o.Spec.Namespaces, o.Spec.NamespaceSelector = []string{"team-a"}, nil
	}
	if random.IntN(4) > 0 {
		selector := &v1alpha1.LabelSelector{MatchLabels: map[string]string{}}
		for range random.IntN(3) {
			selector.MatchLabels[randomKey(random)] = randomLabelValue(random)
		}
		for range random.IntN(3) {
			r := v1alpha1.LabelSelectorRequirement{Key: randomKey(random), Operator: []metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist, "Like",
			}[random.IntN(5)]}
			for range random.IntN(3) {
				r.Values = append(r.Values, []string{randomLabelValue(random), "no value"}[random.IntN(2)])
			}
			selector.MatchExpressions = append(selector.MatchExpressions, r)
		}
		o.Spec.NamespaceSelector = selector
	}
	a, err := approval.Compile(o)
	if err != nil {
		return approval.Closed(o, errors.New("not valid"))
	}
	return a
}
