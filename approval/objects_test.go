package approval_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/approval"
)

// declaredObjects are the objects of template golden/fedora.
type declaredObjects struct{}

func (declaredObjects) Objects() []string {
	return []string{"Secret ${NAME}-access", "NetworkPolicy ${NAME}"}
}

func (declaredObjects) ObjectKinds() []schema.GroupKind {
	return []schema.GroupKind{{Kind: "Secret"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}}
}

func (declaredObjects) LendsObject(int) bool { return false }

// lentObjects are the same, and the template lends the right to create the first one.
type lentObjects struct{ declaredObjects }

func (lentObjects) LendsObject(i int) bool { return i == 0 }

func TestObjectsThatTemplatesLend(t *testing.T) {
	const objection = "Secret ${NAME}-access: the template lends the right to create it, which the approval does not allow; use another template, or ask a cluster admin to list the object in objects with rights: Template"
	for name, tc := range map[string]struct {
		approval string
		want     int
	}{
		"an approval that limits nothing":    {approval: "", want: 1},
		"Allow":                              {approval: "objects: {policy: Allow}", want: 1},
		"Deny":                               {approval: "objects: {policy: Deny}", want: 2},
		"an entry for users who may":         {approval: "objects: {allowed: [{kinds: [Secret, NetworkPolicy.networking.k8s.io], rights: User}]}", want: 1},
		"an entry with rights":               {approval: "objects: {allowed: [{kinds: [Secret, NetworkPolicy.networking.k8s.io], rights: Template}]}"},
		"an entry with rights for this name": {approval: "objects: {allowed: [{kinds: [NetworkPolicy.networking.k8s.io]}, {kinds: [Secret], names: ['*-access'], rights: Template}]}"},
		"an entry with rights for another":   {approval: "objects: {allowed: [{kinds: [Secret, NetworkPolicy.networking.k8s.io]}, {kinds: [Secret], names: [web], rights: Template}]}", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			question := approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora"}}
			question.Objects = approval.ObjectsOf(question.Template, lentObjects{})
			question.Objects[0].Name, question.Objects[1].Name = "web-access", "web"
			got := compile(t, "a", tc.approval).Objections(question)
			if len(got) != tc.want || tc.want > 0 && got[0].Message != objection {
				t.Errorf("objections %v, want %d", got, tc.want)
			}
		})
	}
}

func TestObjectsBesidesTheVirtualMachine(t *testing.T) {
	const (
		secret = "template[golden/fedora].spec.objects[0]: Secret ${NAME}-access: "
		policy = "template[golden/fedora].spec.objects[1]: NetworkPolicy ${NAME}: "
		advice = `; use another template, or ask a cluster admin to list the object in objects (approval "%")`
		both   = "objects: {allowed: [{kinds: [Secret], names: [x, '*-access']}, {kinds: [NetworkPolicy.networking.k8s.io]}]}"
	)
	for _, tc := range []struct {
		name      string
		approvals []string
		unnamed   bool
		limits    bool
		want      []string
	}{
		{name: "an approval that limits nothing allows all", approvals: []string{""}},
		{name: "so does Allow", approvals: []string{"objects: {policy: Allow}"}},
		{name: "so does an empty list", approvals: []string{"objects: {policy: Allow, allowed: []}"}},
		{name: "what is listed", approvals: []string{both}, limits: true},
		{name: "each object has an entry of its own or shares one", approvals: []string{"objects: {allowed: [{kinds: [Secret, NetworkPolicy.networking.k8s.io]}]}"}, limits: true},
		{name: "Deny allows none", approvals: []string{"objects: {policy: Deny}"}, limits: true, want: []string{
			secret + "the approval allows no objects of templates" + advice, policy + "the approval allows no objects of templates" + advice,
		}},
		{name: "a kind that is not listed", approvals: []string{"objects: {allowed: [{kinds: [Secret]}]}"}, limits: true, want: []string{policy + "the approval allows only Secret" + advice}},
		{name: "a kind of another group", approvals: []string{"objects: {allowed: [{kinds: [Secret, NetworkPolicy, NetworkPolicy.example.org]}]}"}, limits: true, want: []string{
			policy + "the approval allows only Secret, NetworkPolicy, NetworkPolicy.example.org" + advice,
		}},
		{name: "another name", approvals: []string{"objects: {allowed: [{kinds: [NetworkPolicy.networking.k8s.io]}, {kinds: [Secret], names: [access, web, '*-acces', 'w.b-access']}]}"}, limits: true, want: []string{
			secret + "the approval allows only NetworkPolicy.networking.k8s.io; Secret named access, web, *-acces, w.b-access" + advice,
		}},
		{name: "a name that is not known", approvals: []string{"objects: {allowed: [{kinds: [NetworkPolicy.networking.k8s.io]}, {kinds: [Secret], names: [access]}]}"}, unnamed: true, limits: true},
		{name: "a name of another kind", approvals: []string{"objects: {allowed: [{kinds: [Secret], names: [web]}, {kinds: [NetworkPolicy.networking.k8s.io], names: ['*-access']}]}"}, limits: true, want: []string{
			secret + "the approval allows only Secret named web; NetworkPolicy.networking.k8s.io named *-access" + advice,
			policy + "the approval allows only Secret named web; NetworkPolicy.networking.k8s.io named *-access" + advice,
		}},
		{name: "another approval allows them", approvals: []string{"objects: {policy: Deny}", both}, limits: true},
		{name: "two approvals are not combined", approvals: []string{"objects: {allowed: [{kinds: [NetworkPolicy.networking.k8s.io]}]}", "objects: {allowed: [{kinds: [Secret]}]}"}, limits: true, want: []string{
			secret + "the approval allows only NetworkPolicy.networking.k8s.io" + advice, policy + "the approval allows only Secret" + strings.Replace(advice, "%", "a1", 1),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			approvals := approvalsOf(t, tc.approvals...)
			question := approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora"}}
			question.Objects = approval.ObjectsOf(question.Template, declaredObjects{})
			if !tc.unnamed {
				question.Objects[0].Name, question.Objects[1].Name = "web-access", "web"
			}
			if limits := approval.LimitsObjects(approvals); limits != tc.limits {
				t.Errorf("they limit objects: %v", limits)
			}
			decision := approval.Evaluate(approvals, question)
			var got []string
			for _, o := range decision.Objections {
				if got = append(got, o.String()); o.Reason != approval.ReasonObject {
					t.Errorf("the reason is %q", o.Reason)
				}
			}
			for i := range tc.want {
				tc.want[i] = strings.Replace(tc.want[i], "%", "a0", 1)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || decision.Allowed != (tc.want == nil) {
				t.Errorf("allowed %v; objections (-want +got):\n%s", decision.Allowed, diff)
			}
			question.Objects = nil
			if !approval.Evaluate(approvals, question).Allowed {
				t.Error("what is not known is evaluated")
			}
		})
	}
}

func TestAMessageNamesALimitedNumberOfObjects(t *testing.T) {
	entry := "{kinds: [Service], names: [" + strings.Repeat("a, ", 11) + "b]}"
	a := compile(t, "a", "objects: {allowed: ["+strings.Repeat(entry+", ", 11)+entry+"]}")
	question := approval.Question{Template: approval.Template{Namespace: "golden", Name: "fedora"}}
	question.Objects = approval.ObjectsOf(question.Template, declaredObjects{})[:1]
	got := a.Objections(question)
	want := "Service named a, a, a, a, a, a, a, a, a, a and 2 more; 2 more; use another template"
	if len(got) != 1 || !strings.Contains(got[0].Message, want) || strings.Count(got[0].Message, "Service") != 10 {
		t.Errorf("got %v", got)
	}
}
