package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/approval"
)

func TestACompleteVirtualMachine(t *testing.T) {
	selector := []approval.Path{{approval.Field("spec"), approval.Field("nodeSelector")}}
	for _, tc := range []struct {
		name, spec string
		instance   approval.Instance
		want       []string
	}{
		{name: "what the template makes of its defaults", instance: approval.Instance{Values: map[string]string{"IMAGE": "fedora", "TOKEN": "made-it"}}},
		{
			name: "a value that is not listed", instance: approval.Instance{Values: map[string]string{"IMAGE": "evil"}},
			want: []string{`parameters[IMAGE]: Invalid value: "evil": must be "fedora", the default of the template, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it`},
		},
		{name: "a value that is", spec: "parameters: [{name: IMAGE, anyValue: true}]", instance: approval.Instance{Values: map[string]string{"IMAGE": "evil"}}},
		{
			name: "a value that the template cannot have generated", instance: approval.Instance{Values: map[string]string{"TOKEN": "mine"}},
			want: []string{`parameters[TOKEN]: Invalid value: "mine": must be left to the template, which generates it, because the approval does not list this parameter; leave it out, or ask a cluster admin to list it`},
		},
		{
			name: "a value that it can have generated, where users must not choose", spec: "generatedValues: Deny", instance: approval.Instance{Values: map[string]string{"TOKEN": "made-it", "PASSWORD": "made-s3cret"}},
			want: []string{
				"parameters[TOKEN]: Forbidden: must be left to the template, which generates it: the approval denies generated values that the user sends; leave out spec, and give the other parameters in annotations",
				"parameters[PASSWORD]: Forbidden: must be left to the template, which generates it: the approval denies generated values that the user sends; leave out spec, and give the other parameters in annotations",
			},
		},
		{name: "where it does not show them", spec: "generatedValues: Deny", instance: approval.Instance{Values: map[string]string{"IMAGE": "fedora"}}},
		{name: "listed ones", spec: "{generatedValues: Deny, parameters: [{name: TOKEN, anyValue: true}]}", instance: approval.Instance{Values: map[string]string{"TOKEN": "made-it"}}},
		{
			name: "a place that differs", instance: approval.Instance{Touched: selector},
			want: []string{"spec.nodeSelector: may not be written or changed beside the template; no field may"},
		},
		{name: "an override", spec: "overrides: [spec.nodeSelector]", instance: approval.Instance{Touched: selector}},
		{
			name: "a value that the template rejects", instance: approval.Instance{Differences: []approval.Objection{{Field: "spec.runStrategy", Message: "no"}}},
			want: []string{"spec.runStrategy: no"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			question := approval.Question{User: ada, Template: fedora, Sensitive: parameters.sensitive, Declared: parameters, Values: map[string]string{"IMAGE": "ignored"}}
			question.Instance = func(a *approval.Approval) approval.Instance {
				if a.Name() != "a" {
					t.Errorf("evaluated for %q", a.Name())
				}
				return tc.instance
			}
			decision := approval.Evaluate([]*approval.Approval{compile(t, "a", tc.spec)}, question)
			var got []string
			for _, objection := range decision.Objections {
				got = append(got, objection.Field+": "+objection.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("objections (-want +got)\n%s", diff)
			}
		})
	}
}

func TestLabelsReferToATemplateWhereAnApprovalAcceptsThem(t *testing.T) {
	const notAccepted = "it does not take labels of a VirtualMachine for a reference to a template"
	for _, tc := range []struct {
		name      string
		approvals map[string]string
		by, want  string
	}{
		{name: "accepted", approvals: map[string]string{"a": "templateLabels: Accept"}, by: "a"},
		{name: "ignored", approvals: map[string]string{"a": "templateLabels: Ignore"}, want: notAccepted},
		{name: "ignored by default", approvals: map[string]string{"a": "{}"}, want: notAccepted},
		{name: "accepted by another one", approvals: map[string]string{"a": "{}", "b": "templateLabels: Accept"}, by: "b"},
		{name: "accepted with another template", approvals: map[string]string{"a": "{}", "b": "{templateLabels: Accept, templates: [{namespace: golden, name: other}]}"}, want: notAccepted},
		{name: "accepted for another user", approvals: map[string]string{"a": "{templateLabels: Accept, subjects: [{kind: User, name: bob}]}"}, want: `it does not serve user "ada"`},
		{name: "accepted by one that warns, where another one denies", approvals: map[string]string{"a": "{templateLabels: Accept, enforcement: Warn, templates: [{namespace: golden, name: other}]}", "b": "{}"}, want: notAccepted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all []*approval.Approval
			for name, spec := range tc.approvals {
				all = append(all, compile(t, name, spec))
			}
			decision := approval.Evaluate(all, approval.Question{User: ada, Template: fedora, Labelled: true})
			if decision.By != tc.by || decision.Denied() != (tc.by == "") {
				t.Errorf("%+v", decision)
			}
			if tc.want != "" {
				found := false
				for _, objection := range decision.Objections {
					found = found || objection.Message == tc.want
				}
				if !found {
					t.Errorf("%v lacks %q", decision.Objections, tc.want)
				}
			}
		})
	}
}
