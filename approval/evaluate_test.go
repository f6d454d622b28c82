package approval_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

var (
	ada    = authenticationv1.UserInfo{Username: "ada", Groups: []string{"team-a"}}
	robot  = authenticationv1.UserInfo{Username: "system:serviceaccount:kubevirt:kubevirt-controller"}
	fedora = approval.Template{Namespace: "golden", Name: "fedora"}
)

const (
	forRobots = "exemptSubjects: [{kind: ServiceAccount, namespace: kubevirt, name: kubevirt-controller}]"
	reference = "metadata.annotations[template.kubevirt.io/template-ref]"
)

func TestEvaluate(t *testing.T) {
	touched := func(places ...string) []approval.Path {
		var paths []approval.Path
		for _, place := range places {
			path := approval.Path{}
			for _, field := range strings.Split(place, ".") {
				path = append(path, approval.Field(field))
			}
			paths = append(paths, path)
		}
		return paths
	}
	type approvals map[string]string
	for _, tc := range []struct {
		name      string
		approvals approvals
		question  approval.Question
		want      approval.Decision
	}{
		{
			name:     "a namespace that no approval covers is not governed",
			question: approval.Question{User: ada},
			want:     approval.Decision{Allowed: true},
		},
		{
			name:      "an approved template",
			approvals: approvals{"a": "{}"},
			question:  approval.Question{User: ada, Template: fedora},
			want:      approval.Decision{Governed: true, Allowed: true, By: "a", Enforcement: "Deny"},
		},
		{
			name:      "no template at all",
			approvals: approvals{"a": "{}"},
			question:  approval.Question{User: ada},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "the VirtualMachine names no template"},
			}},
		},
		{
			name:      "one of several approvals is enough, and the first in the order of names is named",
			approvals: approvals{"c": "{}", "b": "{}", "a": "templates: [{namespace: golden, name: windows}]"},
			question:  approval.Question{User: ada, Template: fedora},
			want:      approval.Decision{Governed: true, Allowed: true, By: "b", Enforcement: "Deny"},
		},
		{
			name:      "all objections of the approvals of this template, and none of the others",
			approvals: approvals{"a": "{parameters: [{name: CPU, maximum: 8}], overrides: [spec.runStrategy]}", "b": "templates: [{namespace: golden, name: windows}]", "c": "subjects: [{kind: User, name: bob}]"},
			question:  approval.Question{User: ada, Template: fedora, Values: map[string]string{"CPU": "9"}, Sensitive: none, Touched: touched("spec.runStrategy", "spec.template.spec.hostname", "metadata.labels.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "parameters[CPU]", Message: `Invalid value: "9": must be at most 8`},
				{Approval: "a", Field: "spec.template.spec.hostname", Message: "may not be written or changed beside the template; these may: spec.runStrategy"},
				{Approval: "a", Field: "metadata.labels.x", Message: "may not be written or changed beside the template; these may: spec.runStrategy"},
			}},
		},
		{
			name:      "what each approval objects to when none approves the template",
			approvals: approvals{"a": "{templates: [{namespace: golden, name: windows}], subjects: [{kind: User, name: bob}]}", "b": "subjects: [{kind: User, name: bob}]"},
			question:  approval.Question{User: ada, Template: fedora, Touched: touched("spec.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "it does not approve template golden/fedora"},
				{Approval: "a", Field: reference, Message: `it does not serve user "ada"`},
				{Approval: "b", Field: reference, Message: `it does not serve user "ada"`},
			}},
		},
		{
			name:      "two approvals are not combined",
			approvals: approvals{"a": "overrides: [spec.x]", "b": "overrides: [spec.y]"},
			question:  approval.Question{User: ada, Template: fedora, Touched: touched("spec.x", "spec.y")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "spec.y", Message: "may not be written or changed beside the template; these may: spec.x"},
				{Approval: "b", Field: "spec.x", Message: "may not be written or changed beside the template; these may: spec.y"},
			}},
		},
		{
			name:      "an approval without overrides",
			approvals: approvals{"a": "{}"},
			question:  approval.Question{User: ada, Template: fedora, Touched: touched("spec.y")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "spec.y", Message: "may not be written or changed beside the template; no field may"},
			}},
		},
		{
			name:      "the overrides nearest to the place are named first",
			approvals: approvals{"a": "overrides: [spec.a, spec.b, spec.c, spec.d, spec.e, spec.f, metadata.labels.x, spec.z.y]"},
			question:  approval.Question{User: ada, Template: fedora, Touched: touched("spec.z.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "spec.z.x", Message: "may not be written or changed beside the template; these may: spec.z.y, spec.a, spec.b, spec.c, spec.d and 3 more"},
			}},
		},
		{
			name:      "a user exempted by every approval is not evaluated",
			approvals: approvals{"a": forRobots, "b": forRobots},
			question:  approval.Question{User: robot, Touched: touched("spec.x")},
			want:      approval.Decision{Governed: true, Allowed: true, Exempt: true, Enforcement: "Deny"},
		},
		{
			name:      "a user not exempted by one approval is evaluated",
			approvals: approvals{"a": forRobots, "b": "{}"},
			question:  approval.Question{User: robot, Template: fedora, Touched: touched("spec.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "spec.x", Message: "may not be written or changed beside the template; no field may"},
				{Approval: "b", Field: "spec.x", Message: "may not be written or changed beside the template; no field may"},
			}},
		},
		{
			name:      "an update that touches nothing is allowed, whatever it was rendered from",
			approvals: approvals{"a": "templates: [{namespace: golden, name: windows}]"},
			question:  approval.Question{User: ada, Template: fedora, Update: true},
			want:      approval.Decision{Governed: true, Allowed: true, Enforcement: "Deny"},
		},
		{
			name:      "an update of the labels of what never had a template",
			approvals: approvals{"a": "{}"},
			question:  approval.Question{User: ada, Update: true, Touched: touched("metadata.labels.x", "metadata.annotations.y")},
			want:      approval.Decision{Governed: true, Allowed: true, Enforcement: "Deny"},
		},
		{
			name:      "an update of the spec of what never had a template",
			approvals: approvals{"a": "overrides: [spec.x]"},
			question:  approval.Question{User: ada, Update: true, Touched: touched("metadata.labels.x", "spec.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "the VirtualMachine names no template"},
			}},
		},
		{
			name:      "an update of the labels of what has a template",
			approvals: approvals{"a": "{}"},
			question:  approval.Question{User: ada, Update: true, Template: fedora, Touched: touched("metadata.labels.x")},
			want: approval.Decision{Governed: true, Enforcement: "Deny", Objections: []approval.Objection{
				{Approval: "a", Field: "metadata.labels.x", Message: "may not be written or changed beside the template; no field may"},
			}},
		},
		{
			name:      "an update within the overrides",
			approvals: approvals{"a": "overrides: [spec.x]"},
			question:  approval.Question{User: ada, Template: fedora, Update: true, Touched: touched("spec.x")},
			want:      approval.Decision{Governed: true, Allowed: true, By: "a", Enforcement: "Deny"},
		},
		{
			name:      "an audit knows nobody who could be served or exempt",
			approvals: approvals{"a": "{subjects: [{kind: User, name: bob}], exemptSubjects: [{kind: User, name: ada}]}"},
			question:  approval.Question{User: ada, Anyone: true, Template: fedora},
			want:      approval.Decision{Governed: true, Allowed: true, By: "a", Enforcement: "Deny"},
		},
		{
			name:      "the strictest enforcement holds, also that of an approval that has nothing to do with the template",
			approvals: approvals{"a": "enforcement: Audit", "b": "{enforcement: Warn, templates: [{namespace: golden, name: windows}]}"},
			question:  approval.Question{User: ada, Template: approval.Template{Namespace: "golden", Name: "x"}},
			want: approval.Decision{Governed: true, Enforcement: "Warn", Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "it does not approve template golden/x"},
				{Approval: "b", Field: reference, Message: "it does not approve template golden/x"},
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var approvals []*approval.Approval
			for name, spec := range tc.approvals {
				approvals = append(approvals, compile(t, name, spec))
			}
			if diff := cmp.Diff(tc.want, approval.Evaluate(approvals, tc.question)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEvaluateWithAClosedApproval(t *testing.T) {
	closed := approval.Closed(object(t, "closed", "enforcement: Deny"), fmt.Errorf("no"))
	warning := compile(t, "warning", "enforcement: Warn")

	got := approval.Evaluate([]*approval.Approval{closed}, approval.Question{User: ada, Template: fedora})
	if !got.Denied() || len(got.Objections) != 1 || !strings.Contains(got.Objections[0].Message, "until a cluster admin corrects it") {
		t.Errorf("alone: %+v", got)
	}
	got = approval.Evaluate([]*approval.Approval{closed, warning}, approval.Question{User: ada, Template: fedora})
	if !got.Allowed || got.By != "warning" {
		t.Errorf("beside one that is satisfied: %+v", got)
	}
	got = approval.Evaluate([]*approval.Approval{closed, warning}, approval.Question{User: ada, Template: approval.Template{Namespace: "golden", Name: "x"}})
	if !got.Denied() {
		t.Errorf("its enforcement does not count: %+v", got)
	}
}

func TestUndecidedIsDenied(t *testing.T) {
	got := approval.Evaluate([]*approval.Approval{approval.Undecided("nobody knows; try again")}, approval.Question{User: ada, Template: fedora})
	if !got.Denied() {
		t.Errorf("got %+v", got)
	}
	if got, want := got.Causes().ToAggregate().Error(), reference+": Forbidden: nobody knows; try again"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOnlyEnforcementDenyDenies(t *testing.T) {
	for enforcement, want := range map[v1alpha1.Enforcement]bool{"Deny": true, "": true, "Warn": false, "Audit": false} {
		a := compile(t, "a", fmt.Sprintf("enforcement: %q", enforcement))
		if got := approval.Evaluate([]*approval.Approval{a}, approval.Question{User: ada}); got.Denied() != want || got.Allowed {
			t.Errorf("%s: %+v", enforcement, got)
		}
	}
	if (approval.Decision{Allowed: true, Enforcement: v1alpha1.EnforcementDeny}).Denied() {
		t.Error("what is allowed is denied")
	}
}

func TestMatchIsCalledForEachApprovalOfTheTemplate(t *testing.T) {
	approvals := []*approval.Approval{
		compile(t, "a", "parameters: [{name: CPU, maximum: 2}]"),
		compile(t, "b", "templates: [{namespace: golden, name: windows}]"),
		compile(t, "c", "parameters: [{name: CPU, maximum: 4}]"),
	}
	var asked []string
	got := approval.Evaluate(approvals, approval.Question{
		User: ada, Template: fedora, Sensitive: none, Values: map[string]string{"CPU": "1"},
		Match: func(a *approval.Approval) (map[string]string, []approval.Objection) {
			asked = append(asked, a.Name())
			return map[string]string{"CPU": "8"}, []approval.Objection{{Field: "spec.x", Message: "differs"}}
		},
	})
	if diff := cmp.Diff([]string{"a", "c"}, asked); diff != "" {
		t.Error(diff)
	}
	want := []approval.Objection{
		{Approval: "a", Field: "spec.x", Message: "differs"},
		{Approval: "a", Field: "parameters[CPU]", Message: `Invalid value: "8": must be at most 2`},
		{Approval: "c", Field: "spec.x", Message: "differs"},
		{Approval: "c", Field: "parameters[CPU]", Message: `Invalid value: "8": must be at most 4`},
	}
	if diff := cmp.Diff(want, got.Objections); diff != "" {
		t.Error(diff)
	}
}

func TestVeryManyPlacesMakeAFewObjections(t *testing.T) {
	var touched []approval.Path
	for i := range 100 {
		touched = append(touched, approval.Path{approval.Field("spec"), approval.Field(fmt.Sprint("f", i))})
	}
	got := compile(t, "a", "overrides: [spec.f0]").Objections(approval.Question{User: ada, Template: fedora, Touched: touched})
	if len(got) != 32 || !strings.HasSuffix(got[31].Message, "; so it is with 67 more fields") {
		t.Errorf("%d objections, the last: %v", len(got), got[len(got)-1])
	}
}

func TestObjectionsAsCauses(t *testing.T) {
	decision := approval.Decision{Objections: []approval.Objection{{Approval: "team-a", Field: "spec.x", Message: "may not be written"}}}
	if got, want := decision.Causes().ToAggregate().Error(), `spec.x: Forbidden: may not be written (approval "team-a")`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := decision.Objections[0].String(), `spec.x: may not be written (approval "team-a")`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A message about a value has a reason of its own, and no second one.
func TestACauseHasOneReason(t *testing.T) {
	at := field.NewPath("parameters").Key("SIZE")
	for _, cause := range []*field.Error{
		field.Invalid(at, "8", "must be at most 4"), field.Required(at, "the template has no value for it"), field.Forbidden(at, "must be left to the template"),
		field.NotSupported(at, "8", []string{"1", "2"}), field.NotFound(at, "8"), field.Duplicate(at, "8"), field.TooLong(at, "8", 1), field.TooMany(at, 2, 1),
	} {
		got := approval.Objection{Approval: "team-a", Field: cause.Field, Message: cause.ErrorBody()}.Cause()
		if want := cause.ErrorBody() + ` (approval "team-a")`; got.ErrorBody() != want || got.Type != cause.Type || got.Field != cause.Field {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestExempt(t *testing.T) {
	with, without := compile(t, "a", forRobots), compile(t, "b", "{}")
	for _, tc := range []struct {
		name      string
		approvals []*approval.Approval
		user      authenticationv1.UserInfo
		want      bool
	}{
		{"nobody is exempt where nothing is governed", nil, robot, false},
		{"whom the only approval exempts", []*approval.Approval{with}, robot, true},
		{"whom one of two does not", []*approval.Approval{with, without}, robot, false},
		{"somebody else", []*approval.Approval{with}, ada, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := approval.Exempt(tc.approvals, tc.user); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestEvaluateConcurrently(t *testing.T) {
	a := compile(t, "a", `
templates: [{namespace: golden, selector: {matchLabels: {tier: gold}}}]
overrides: [spec.runStrategy, "spec.l[*].x"]
parameters:
- {name: CPU, minimum: 1, maximum: 8, pattern: "[0-9]+", allowed: ["1", "2"], expression: "int(value) < 4 && 'CPU' in params"}
subjects: [{kind: Group, name: team-a}]
`)
	old, new := tree(t, "spec: {runStrategy: Halted, l: [{name: a}]}"), tree(t, "spec: {runStrategy: Always, l: [{name: a, x: 1}]}")
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				cpu := fmt.Sprint((worker+i)%4 + 1)
				decision := approval.Evaluate([]*approval.Approval{a}, approval.Question{
					User: ada, Sensitive: none, Values: map[string]string{"CPU": cpu}, Touched: approval.Changes(old, new),
					Template: approval.Template{Namespace: "golden", Name: "x", Labels: map[string]string{"tier": "gold"}},
				})
				if want := cpu < "3"; decision.Allowed != want {
					t.Errorf("CPU %s: %+v", cpu, decision)
					return
				}
			}
		})
	}
	wg.Wait()
}
