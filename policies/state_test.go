package policies_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// The settings of a release.
var settings = map[string]string{
	"exemptUsers":   `["virt-controller"]`,
	"apiserverUser": `"apiserver"`,
}

const (
	unreadable = "annotation stencil.kubevirt.io/approvals of this governed namespace is missing or cannot be read, so nothing is allowed here: " +
		"wait until Stencil has written it, or see the conditions of its TemplateApprovals"
	delegatedUser  = "delegation.template.kubevirt.io/user"
	delegatedGroup = "delegation.template.kubevirt.io/group"
)

// vm is a VirtualMachine of a template, or of none.
func vm(reference string) map[string]any {
	metadata := map[string]any{"name": "vm"}
	if reference != "" {
		metadata["annotations"] = map[string]any{"template.kubevirt.io/template-ref": reference}
	}
	return map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": map[string]any{"runStrategy": "Halted"}}
}

// stated returns a namespace with a state.
func stated(name string, state approval.NamespaceState) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelGoverned: state.Governed}}}
	if state.Approvals != "" {
		namespace.Annotations = map[string]string{v1alpha1.AnnotationApprovals: state.Approvals}
	}
	return namespace
}

// The policies, which read the annotation, must make the same decisions as the approvals from which the annotation is computed.
func TestPoliciesDecideByTheStateAsByTheApprovals(t *testing.T) {
	templates := evaluate(t, "approved-templates", settings)
	evaluator := evaluate(t, "governed-machines", settings)
	counts := map[string]int{}
	for seed := range uint64(4_000) {
		random := rand.New(rand.NewPCG(14, seed))
		var approvals []*approval.Approval
		for i := range 1 + random.IntN(4) {
			approvals = append(approvals, randomApproval(random, fmt.Sprint("a", i)))
		}
		state := approval.StateOf(approvals)
		if state.Governed != v1alpha1.GovernedDeny {
			continue
		}
		person := authenticationv1.UserInfo{Username: randomName(random)}
		for range random.IntN(3) {
			person.Groups = append(person.Groups, randomName(random))
		}
		info := &user.DefaultInfo{Name: person.Username, Groups: person.Groups}
		if random.IntN(4) == 0 {
			info = &user.DefaultInfo{Name: "apiserver", Groups: []string{"alice"}, Extra: map[string][]string{delegatedUser: {person.Username}}}
			if len(person.Groups) > 0 {
				info.Extra[delegatedGroup] = person.Groups
			}
		}
		exempt := !slices.ContainsFunc(approvals, func(a *approval.Approval) bool {
			return a.Enforcement() == v1alpha1.EnforcementDeny && !a.Exempts(person)
		})
		template := [2]string{[]string{"golden", "silver", "team-a"}[random.IntN(3)], []string{"fedora", "ubuntu"}[random.IntN(2)]}
		reference := template[0] + "/" + template[1]
		if template[0] == "team-a" && random.IntN(2) == 0 {
			reference = template[1]
		}
		listed := slices.ContainsFunc(approvals, func(a *approval.Approval) bool {
			list := a.Listed()
			return a.Serves(person) && (slices.Contains(list, template[0]+"/"+template[1]) || slices.Contains(list, template[0]+"/*"))
		})
		explain := func(who string, allowed bool, denial string) {
			t.Helper()
			counts[fmt.Sprint(who, " ", allowed)]++
			if allowed != (denial == "") {
				t.Fatalf("seed %d: %s: want allowed=%t, got refusal %q\nuser %q groups %q template %s\nstate %s", seed, who, allowed, denial, person.Username, person.Groups, reference, state.Approvals)
			}
		}
		namespace := stated("team-a", state)
		denial, _ := templates.decide(t, request{operation: admission.Create, user: info, namespace: namespace, name: "vm", object: vm(reference)})
		explain("approved-templates", exempt || listed, denial)
		if want := fmt.Sprintf("does not approve template %s/%s for you", template[0], template[1]); denial != "" && !strings.Contains(denial, want) {
			t.Fatalf("seed %d: the refusal does not say %q: %s", seed, want, denial)
		}
		denial, _ = evaluator.decide(t, request{operation: admission.Create, user: info, namespace: namespace, name: "vm", object: vm("")})
		explain("governed-machines", exempt, denial)
		denial, _ = evaluator.decide(t, request{operation: admission.Update, user: info, namespace: namespace, name: "vm", object: vm(""), oldObject: vm("")})
		explain("governed-machines", exempt, denial)
	}
	for _, name := range []string{"approved-templates", "governed-machines"} {
		for _, allowed := range []bool{true, false} {
			if n := counts[fmt.Sprint(name, " ", allowed)]; n < 100 {
				t.Errorf("%s: %d requests with allowed=%t say little", name, n, allowed)
			}
		}
	}
}

// randomName returns the name of a user or a group: one of few, so that names repeat, and with the characters that a state reserves.
func randomName(random *rand.Rand) string {
	return []string{"alice", "bob", "a,b", "a%2Cb", "a;b", "a|b", "a>b", "u:alice", "", "ä %25", "a"}[random.IntN(11)]
}

func randomSubjects(random *rand.Rand, most int) []v1alpha1.Subject {
	var subjects []v1alpha1.Subject
	for range random.IntN(most + 1) {
		if name := randomName(random); name != "" {
			subjects = append(subjects, v1alpha1.Subject{Kind: []v1alpha1.SubjectKind{v1alpha1.SubjectKindUser, v1alpha1.SubjectKindGroup}[random.IntN(2)], Name: name})
		}
	}
	return subjects
}

func randomApproval(random *rand.Rand, name string) *approval.Approval {
	object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Spec = v1alpha1.TemplateApprovalSpec{
		Namespaces:     []string{"team-a"},
		Enforcement:    []v1alpha1.Enforcement{"", "", "", v1alpha1.EnforcementWarn, v1alpha1.EnforcementAudit}[random.IntN(5)],
		Subjects:       randomSubjects(random, 2),
		ExemptSubjects: randomSubjects(random, 6),
	}
	for range 1 + random.IntN(2) {
		entry := v1alpha1.ApprovedTemplate{Namespace: []string{"golden", "silver", "team-a"}[random.IntN(3)]}
		if random.IntN(4) == 0 {
			entry.Selector = &v1alpha1.LabelSelector{}
		} else {
			entry.Name = []string{"fedora", "ubuntu"}[random.IntN(2)]
		}
		object.Spec.Templates = append(object.Spec.Templates, entry)
	}
	if random.IntN(6) == 0 {
		return approval.Closed(object, errors.New("not valid"))
	}
	a, err := approval.Compile(object)
	if err != nil {
		panic(err)
	}
	return a
}

// A governed namespace is closed if its annotation is missing or was not written by this version of Stencil.
func TestAnUnreadableStateApprovesNothing(t *testing.T) {
	templates := evaluate(t, "approved-templates", settings)
	evaluator := evaluate(t, "governed-machines", settings)
	for _, tc := range []struct {
		name, state string
		denied      bool
	}{
		{name: "a state is readable", state: "1;a;u:alice;golden/fedora"},
		{name: "there is none", denied: true},
		{name: "another version", state: "2;a;u:alice;golden/fedora", denied: true},
		{name: "a section is missing", state: "1;a;u:alice", denied: true},
		{name: "there is a section too many", state: "1;a;u:alice;golden/fedora;", denied: true},
		{name: "no version", state: ";a;u:alice;golden/fedora", denied: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			namespace := stated("team-a", approval.NamespaceState{Governed: "true", Approvals: tc.state})
			ask := func(e evaluated, name, reference string) string {
				denial, _ := e.decide(t, request{operation: admission.Create, user: &user.DefaultInfo{Name: name}, namespace: namespace, name: "vm", object: vm(reference)})
				return denial
			}
			want := ""
			if tc.denied {
				want = unreadable
			}
			for who, got := range map[string]string{
				"approved-templates": ask(templates, "alice", "golden/fedora"), "governed-machines": ask(evaluator, "alice", ""),
			} {
				if got != want {
					t.Errorf("%s: got %q, want %q", who, got, want)
				}
			}
			for who, got := range map[string]string{
				"approved-templates": ask(templates, "virt-controller", "silver/debian"), "governed-machines": ask(evaluator, "virt-controller", ""),
			} {
				if got != "" {
					t.Errorf("%s: the exempt user is refused: %s", who, got)
				}
			}
		})
	}
}

// The policies and package approval return the same results for an index.
func TestPoliciesReadTheIndexAsItIsMeant(t *testing.T) {
	undecided := evaluate(t, "undecided-namespaces", settings, "variables.selected")
	labels := evaluate(t, "namespace-coverage", settings, "variables.concerned")
	counts := map[string]int{}
	for seed := range uint64(4_000) {
		random := rand.New(rand.NewPCG(15, seed))
		var approvals []*approval.Approval
		for i := range random.IntN(3) {
			approvals = append(approvals, randomSelection(random, fmt.Sprint("a", i)))
		}
		index := approval.NamespaceIndex(approvals)
		if random.IntN(20) == 0 {
			index = map[string]string{"format": "2", "all": "", "changes": ""}
		}
		params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ApprovalIndexName}, Data: index}
		name := []string{"team-a", "team-b", "kube-system", "stencil-system"}[random.IntN(4)]
		system := name == "kube-system" || name == "stencil-system"
		before, after := randomLabels(random), randomLabels(random)
		if random.IntN(2) == 0 {
			after = maps.Clone(before)
			after[randomKey(random)] = randomValue(random)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: before}}

		selected := undecided.holds(t, request{operation: admission.Create, user: &user.DefaultInfo{Name: "alice"}, namespace: namespace, name: "vm", object: vm(""), params: params})
		counts[fmt.Sprint("selected ", selected)]++
		if want := !system && lookedUp(index, name, before); selected != want {
			t.Fatalf("seed %d: selected is %t, want %t: namespace %s, labels %v, index %v", seed, selected, want, name, before, index)
		}
		for _, a := range approvals {
			if !system && a.Enforcement() == v1alpha1.EnforcementDeny && a.SelectsNamespace(name, before) && !selected {
				t.Fatalf("seed %d: %s covers namespace %s with labels %v and is not found in %v", seed, a.Name(), name, before, index)
			}
		}

		concerned := labels.holds(t, request{
			operation: admission.Update, user: &user.DefaultInfo{Name: "alice"}, resource: "namespaces", name: name, params: params,
			object: labelled(name, after), oldObject: labelled(name, before),
		})
		counts[fmt.Sprint("concerned ", concerned)]++
		if want := !system && approval.ChangesSelection(index, before, after); concerned != want {
			t.Fatalf("seed %d: concerned is %t, want %t: namespace %s, labels %v to %v, index %v", seed, concerned, want, name, before, after, index)
		}
	}
	for _, what := range []string{"selected true", "selected false", "concerned true", "concerned false"} {
		if counts[what] < 100 {
			t.Errorf("%s: %d say little", what, counts[what])
		}
	}
}

// lookedUp is the expected result of a look-up in the index; see approval.NamespaceIndex.
func lookedUp(index map[string]string, namespace string, labels map[string]string) bool {
	has := func(key, entry string) bool {
		key = strings.ReplaceAll(key, "/", "_")
		return strings.Contains(index[key[:min(len(key), 253)]], ","+entry+",")
	}
	_, found := index["all"]
	found = found || has("n", namespace)
	for key, value := range labels {
		found = found || has("l."+key, "*") || has("l."+key, value)
	}
	return found
}

func labelled(name string, labels map[string]string) map[string]any {
	metadata := map[string]any{"name": name}
	if len(labels) > 0 {
		values := map[string]any{}
		for key, value := range labels {
			values[key] = value
		}
		metadata["labels"] = values
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}

var longKey = strings.Repeat("p", 200) + ".example/" + strings.Repeat("k", 60)

func randomKey(random *rand.Rand) string {
	return []string{"tenant", "env", "example.com/env", longKey, longKey + "2", v1alpha1.LabelGoverned}[random.IntN(6)]
}

func randomValue(random *rand.Rand) string {
	return []string{"", "gold", "iron", strings.Repeat("v", 63)}[random.IntN(4)]
}

func randomLabels(random *rand.Rand) map[string]string {
	labels := map[string]string{}
	for range random.IntN(4) {
		labels[randomKey(random)] = randomValue(random)
	}
	return labels
}

// randomSelection returns an approval that selects namespaces.
func randomSelection(random *rand.Rand, name string) *approval.Approval {
	object := &v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name}}
	object.Spec.Templates = []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}}
	object.Spec.Enforcement = []v1alpha1.Enforcement{"", "", v1alpha1.EnforcementWarn}[random.IntN(3)]
	if random.IntN(4) == 0 {
		object.Spec.Namespaces = []string{"team-a"}
		return compiled(object)
	}
	selector := &v1alpha1.LabelSelector{MatchLabels: map[string]string{}}
	if random.IntN(2) == 0 {
		selector.MatchLabels[randomKey(random)] = randomValue(random)
	}
	for range random.IntN(3) {
		r := v1alpha1.LabelSelectorRequirement{Key: randomKey(random), Operator: []metav1.LabelSelectorOperator{
			metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
		}[random.IntN(4)]}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = []string{randomValue(random)}
		}
		selector.MatchExpressions = append(selector.MatchExpressions, r)
	}
	object.Spec.NamespaceSelector = selector
	return compiled(object)
}

func compiled(object *v1alpha1.TemplateApproval) *approval.Approval {
	a, err := approval.Compile(object)
	if err != nil {
		return approval.Closed(object, err)
	}
	return a
}

// The largest state that fits, and a user of many long groups: an API server stops an expression that costs more than PerCallLimit, and a
// policy that costs more than RuntimeCELCostBudget, and denies the request.
func TestTheLargestStateIsAffordable(t *testing.T) {
	const long = 200
	groups := make([]string, 1000)
	for i := range groups {
		groups[i] = fmt.Sprintf(",%04d", i)
		if i >= 512 {
			groups[i] += strings.Repeat(",", 20) + strings.Repeat("g", long-25)
		}
	}
	name := func(prefix string, i, length int) string {
		name := fmt.Sprintf("%s%04d", prefix, i)
		return name + strings.Repeat("x", length-len(name))
	}
	subjects := func(prefix string, count, length int) []v1alpha1.Subject {
		var listed []v1alpha1.Subject
		for i := range count {
			listed = append(listed, v1alpha1.Subject{Kind: v1alpha1.SubjectKindGroup, Name: name(prefix, i, length)})
		}
		return listed
	}
	templates := func(prefix string, count, length int) []v1alpha1.ApprovedTemplate {
		var listed []v1alpha1.ApprovedTemplate
		for i := range count {
			listed = append(listed, v1alpha1.ApprovedTemplate{Namespace: "golden", Name: name(prefix, i, length)})
		}
		return listed
	}
	approve := func(name string, spec v1alpha1.TemplateApprovalSpec) *approval.Approval {
		spec.Namespaces = []string{"team-a"}
		a, err := approval.Compile(&v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	group := func(name string) []v1alpha1.Subject {
		return []v1alpha1.Subject{{Kind: v1alpha1.SubjectKindGroup, Name: name}}
	}
	// many returns 512 approvals, each of which adds a section to the state.
	many := func(spec func(i int) v1alpha1.TemplateApprovalSpec) []*approval.Approval {
		var approvals []*approval.Approval
		for i := range 512 {
			approvals = append(approvals, approve(fmt.Sprintf("a%03d", i), spec(i)))
		}
		return approvals
	}
	for _, tc := range []struct {
		name      string
		approvals []*approval.Approval
		// least is the minimum size of the state in bytes.
		least int
	}{
		{
			name: "all subjects in one approval",
			approvals: []*approval.Approval{approve("a", v1alpha1.TemplateApprovalSpec{
				Subjects: subjects("s", 512, 56), ExemptSubjects: subjects("e", 512, 56), Templates: templates("t", 64, 60),
			})},
			least: 63 << 10,
		},
		{
			name: "an approval for each subject",
			approvals: many(func(i int) v1alpha1.TemplateApprovalSpec {
				return v1alpha1.TemplateApprovalSpec{
					Subjects: group(name("s", i, 24)), ExemptSubjects: group(name("e", i, 24)), Templates: templates(fmt.Sprintf("t%d-", i), 1, 60),
				}
			}),
			least: 60 << 10,
		},
		{
			name: "a template that each approval lists",
			approvals: many(func(i int) v1alpha1.TemplateApprovalSpec {
				return v1alpha1.TemplateApprovalSpec{
					Subjects: group(name("s", i, 24)), ExemptSubjects: group(name("e", i, 24)), Templates: templates("t", 1, 60),
				}
			}),
			least: 60 << 10,
		},
		{
			name: "a user whom all approvals but the last exempt",
			approvals: many(func(i int) v1alpha1.TemplateApprovalSpec {
				exempt := group(groups[i])
				if i == 511 {
					exempt = group("zzz")
				}
				return v1alpha1.TemplateApprovalSpec{Subjects: group(name("s", i, 24)), ExemptSubjects: exempt, Templates: templates("t", 1, 60)}
			}),
			least: 50 << 10,
		},
		{
			name: "many short templates",
			approvals: []*approval.Approval{approve("a", v1alpha1.TemplateApprovalSpec{
				Subjects: subjects("s", 512, 6), ExemptSubjects: subjects("e", 512, 6), Templates: templates("t", 4300, 5),
			})},
			least: 63 << 10,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := approval.StateOf(tc.approvals)
			if len(state.Omitted) > 0 || len(state.Approvals) < tc.least {
				t.Fatalf("%d bytes, %d approvals omitted", len(state.Approvals), len(state.Omitted))
			}
			namespace := stated("team-a", state)
			info := &user.DefaultInfo{Name: name("user", 1, long), Groups: groups}
			for _, ask := range []struct{ policy, reference string }{
				{"approved-templates", "golden/" + name("t", 0, 60)}, {"approved-templates", "golden/" + name("t", 0, 5)},
				{"approved-templates", "golden/other"}, {"governed-machines", ""},
			} {
				_, left := evaluate(t, ask.policy, settings).decide(t, request{operation: admission.Create, user: info, namespace: namespace, name: "vm", object: vm(ask.reference)})
				t.Logf("%s %.20s costs %d of %d", ask.policy, ask.reference, celconfig.RuntimeCELCostBudget-left, celconfig.RuntimeCELCostBudget)
			}
		})
	}
}

// The largest index on one label, and a request that changes its longest value: both evaluations stay within the cost limits of the API
// server.
func TestTheLargestIndexIsAffordable(t *testing.T) {
	const key = "example.com/tenant"
	value := func(i int) string { return fmt.Sprintf("v%062d", i) }
	var values []string
	for i := range 4090 {
		values = append(values, value(i))
	}
	selecting, err := approval.Compile(&v1alpha1.TemplateApproval{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TemplateApprovalSpec{
		Templates:         []v1alpha1.ApprovedTemplate{{Namespace: "golden", Name: "fedora"}},
		NamespaceSelector: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	index := approval.NamespaceIndex([]*approval.Approval{selecting})
	if _, all := index["all"]; all || len(index["l."+strings.ReplaceAll(key, "/", "_")]) < 255<<10 {
		t.Fatalf("the index has %d keys", len(index))
	}
	// Without the entries l., which policies read for new VMs, the entries c. of one label may fill the whole index.
	index["c."+strings.ReplaceAll(key, "/", "_")] = "," + strings.Repeat(value(1)+",", 8190)
	params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ApprovalIndexName}, Data: index}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{key: value(5000)}}}
	for _, ask := range []struct {
		policy string
		as     request
	}{
		{"undecided-namespaces", request{operation: admission.Create, user: &user.DefaultInfo{Name: "alice"}, namespace: namespace, name: "vm", object: vm(""), params: params}},
		{"namespace-coverage", request{
			operation: admission.Update, user: &user.DefaultInfo{Name: "alice"}, resource: "namespaces", name: "team-a", params: params,
			object: labelled("team-a", map[string]string{key: value(5001)}), oldObject: labelled("team-a", map[string]string{key: value(5000)}),
		}},
	} {
		reason, left := evaluate(t, ask.policy, settings).decide(t, ask.as)
		if reason != "" {
			t.Errorf("%s denies it: %s", ask.policy, reason)
		}
		t.Logf("%s costs %d of %d", ask.policy, celconfig.RuntimeCELCostBudget-left, celconfig.RuntimeCELCostBudget)
	}
}

// An index of another format, such as that of the previous release, selects every namespace and every change of labels.
func TestAnIndexOfAnotherFormatSelectsEverything(t *testing.T) {
	for name, data := range map[string]map[string]string{"none": nil, "the first": {"n.team-b": ""}, "a later one": {"format": "3"}} {
		t.Run(name, func(t *testing.T) {
			params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ApprovalIndexName}, Data: data}
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}
			if !evaluate(t, "undecided-namespaces", settings, "variables.selected").holds(t, request{
				operation: admission.Create, user: &user.DefaultInfo{Name: "alice"}, namespace: namespace, name: "vm", object: vm(""), params: params,
			}) {
				t.Error("an undecided namespace is open")
			}
			concerned := evaluate(t, "namespace-coverage", settings, "variables.concerned")
			change := request{operation: admission.Update, user: &user.DefaultInfo{Name: "alice"}, resource: "namespaces", name: "team-a", params: params,
				object: labelled("team-a", map[string]string{"a": "b"}), oldObject: labelled("team-a", nil)}
			if !concerned.holds(t, change) {
				t.Error("a label is free")
			}
			change.object = labelled("team-a", nil)
			if concerned.holds(t, change) {
				t.Error("no label changes, and one is protected")
			}
		})
	}
}
