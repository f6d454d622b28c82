package evaluation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/rego"
)

func TestMatching(t *testing.T) {
	created := policyset.Query{
		Operation:       "CREATE",
		Kind:            "VirtualMachine",
		Namespace:       "shop",
		NamespaceLabels: labels.Set{"team": "shop"},
		ObjectLabels:    labels.Set{"tier": "web"},
		Template:        &policyset.TemplateRef{Namespace: "library", Name: "fedora", Labels: labels.Set{"os": "linux"}},
		User:            rego.UserInfo{Username: "ada", Groups: []string{"developers", "system:authenticated"}},
		HasUser:         true,
	}
	with := func(change func(*policyset.Query)) policyset.Query {
		q := created
		change(&q)
		return q
	}
	user := func(name string) policyset.Subject {
		return policyset.Subject{Kind: v1alpha1.SubjectKindUser, Name: name}
	}
	group := func(name string) policyset.Subject {
		return policyset.Subject{Kind: v1alpha1.SubjectKindGroup, Name: name}
	}
	for name, tc := range map[string]struct {
		match policyset.Match
		query policyset.Query
		want  bool
	}{
		"a policy that names nothing is about created VirtualMachines": {query: created, want: true},
		"a policy that names nothing is about changed VirtualMachines": {
			query: with(func(q *policyset.Query) { q.Operation = "UPDATE" }), want: true,
		},
		"a policy that names nothing is not about deletions": {
			query: with(func(q *policyset.Query) { q.Operation = "DELETE" }),
		},
		"a policy that names nothing is not about templates": {
			query: with(func(q *policyset.Query) { q.Kind = "VirtualMachineTemplate" }),
		},
		"a policy about deletions is about nothing else": {
			match: policyset.Match{Operations: []string{"DELETE"}}, query: created,
		},
		"an operation named twice is one": {
			match: policyset.Match{Operations: []string{"CREATE", "CREATE"}}, query: created, want: true,
		},
		"a namespace is selected by its labels": {
			match: policyset.Match{Namespaces: selector(t, "team=shop")}, query: created, want: true,
		},
		"another namespace is not": {
			match: policyset.Match{Namespaces: selector(t, "team=bank")}, query: created,
		},
		"an empty selector selects every namespace": {
			match: policyset.Match{Namespaces: labels.Everything()}, query: created, want: true,
		},
		"a selector of nothing selects no namespace": {
			match: policyset.Match{Namespaces: labels.Nothing()}, query: created,
		},
		"a created object is selected by its labels": {
			match: policyset.Match{Objects: selector(t, "tier=web")}, query: created, want: true,
		},
		"a created object has no old labels, so that it can be excluded": {
			match: policyset.Match{Objects: selector(t, "tier!=web")}, query: created,
		},
		"a label cannot be removed to escape": {
			match: policyset.Match{Objects: selector(t, "tier=web")},
			query: with(func(q *policyset.Query) {
				q.Operation, q.ObjectLabels, q.OldObjectLabels = "UPDATE", nil, labels.Set{"tier": "web"}
			}),
			want: true,
		},
		"a label cannot be added to escape": {
			match: policyset.Match{Objects: selector(t, "!exempt")},
			query: with(func(q *policyset.Query) {
				q.Operation, q.ObjectLabels, q.OldObjectLabels = "UPDATE", labels.Set{"exempt": "yes"}, nil
			}),
			want: true,
		},
		"a deleted object is selected by the labels that it had": {
			match: policyset.Match{Operations: []string{"DELETE"}, Objects: selector(t, "tier=web")},
			query: with(func(q *policyset.Query) {
				q.Operation, q.ObjectLabels, q.OldObjectLabels = "DELETE", nil, labels.Set{"tier": "web"}
			}),
			want: true,
		},
		"a deleted object has no new labels": {
			match: policyset.Match{Operations: []string{"DELETE"}, Objects: selector(t, "!tier")},
			query: with(func(q *policyset.Query) {
				q.Operation, q.ObjectLabels, q.OldObjectLabels = "DELETE", nil, labels.Set{"tier": "web"}
			}),
		},
		"a template by namespace and name": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "library", Name: "fedora"}}},
			query: created, want: true,
		},
		"a template of the same name elsewhere": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "attic", Name: "fedora"}}},
			query: created,
		},
		"one template of several is enough": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "attic"}, {Namespace: "library"}}},
			query: created, want: true,
		},
		"templates by their labels": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{Namespace: "library", Selector: selector(t, "os=linux")}}},
			query: created, want: true,
		},
		"templates with other labels": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{Selector: selector(t, "os=windows")}}},
			query: created,
		},
		"without a template no template is matched": {
			match: policyset.Match{Templates: []policyset.TemplateMatch{{}}},
			query: with(func(q *policyset.Query) { q.Template = nil }),
		},
		"objects of other kinds are not limited by templates": {
			match: policyset.Match{
				Kinds:     []string{"VirtualMachine", "VirtualMachineTemplate"},
				Templates: []policyset.TemplateMatch{{Namespace: "attic"}},
			},
			query: with(func(q *policyset.Query) { q.Kind, q.Template = "VirtualMachineTemplate", nil }),
			want:  true,
		},
		"an included user": {
			match: policyset.Match{Include: []policyset.Subject{user("ada")}}, query: created, want: true,
		},
		"an included group": {
			match: policyset.Match{Include: []policyset.Subject{group("developers")}}, query: created, want: true,
		},
		"a group is not a user of that name": {
			match: policyset.Match{Include: []policyset.Subject{user("developers")}}, query: created,
		},
		"an excluded group wins over an included user": {
			match: policyset.Match{Include: []policyset.Subject{user("ada")}, Exclude: []policyset.Subject{group("developers")}},
			query: created,
		},
		"an excluded service account": {
			match: policyset.Match{Exclude: []policyset.Subject{{Kind: v1alpha1.SubjectKindServiceAccount, Namespace: "ci", Name: "robot"}}},
			query: with(func(q *policyset.Query) { q.User = rego.UserInfo{Username: "system:serviceaccount:ci:robot"} }),
		},
		"an audit does not look at subjects": {
			match: policyset.Match{Include: []policyset.Subject{user("grace")}, Exclude: []policyset.Subject{user("")}},
			query: with(func(q *policyset.Query) { q.User, q.HasUser = rego.UserInfo{}, false }),
			want:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := policyset.NewSet([]policyset.Entry{{Policy: allowing("p"), Match: tc.match}})
			if got := len(set.Matching(tc.query)) == 1; got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	other := policyset.Match{Namespaces: labels.Nothing()}
	set := policyset.NewSet([]policyset.Entry{
		{Policy: allowing("d")},
		{Policy: allowing("c"), Match: other},
		{Policy: allowing("b"), Match: policyset.Match{Kinds: []string{"VirtualMachineTemplate", "VirtualMachine"}}},
		{Policy: allowing("a"), Match: other},
		{Policy: allowing("a")},
		{Policy: allowing("e"), Match: other},
	})
	if got, want := names(set.Entries()), []string{"a", "b", "c", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	for _, tc := range []struct {
		kind, operation string
		want            []string
	}{
		{"VirtualMachine", "CREATE", []string{"a", "b", "d"}},
		{"VirtualMachineTemplate", "UPDATE", []string{"b"}},
		{"VirtualMachineTemplate", "DELETE", nil},
		{"Pod", "CREATE", nil},
	} {
		if diff := cmp.Diff(tc.want, names(set.Matching(policyset.Query{Kind: tc.kind, Operation: tc.operation}))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.operation, tc.kind, diff)
		}
		if got, want := set.Empty(tc.kind, tc.operation), len(tc.want) == 0; got != want {
			t.Errorf("%s %s: empty %v, want %v", tc.operation, tc.kind, got, want)
		}
	}

	var none policyset.Set
	if !none.Empty("VirtualMachine", "CREATE") || none.Matching(policyset.Query{}) != nil || none.Len() != 0 {
		t.Error("the zero set is not empty")
	}
}

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func names(entries []policyset.Entry) []string {
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Policy.Name())
	}
	return names
}
