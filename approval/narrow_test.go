package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	subresources "github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
)

// Accepts checks two rules of the template: its list, and that SIZE has no upper case.
func (d declared) Accepts(name, value string) bool {
	return slices.ContainsFunc(d, func(p v1beta1.Parameter) bool {
		return p.Name == name && (len(p.Enum) == 0 || slices.Contains(p.Enum, value)) && (name != "SIZE" || strings.ToLower(value) == value)
	})
}

func compiled(t *testing.T, specs ...string) []*approval.Approval {
	t.Helper()
	var all []*approval.Approval
	for i, spec := range specs {
		o := object(t, string(rune('a'+i)), spec)
		a, err := approval.Compile(o)
		if err != nil {
			a = approval.Closed(o, err)
		}
		all = append(all, a)
	}
	return all
}

// TestNarrowedParameters narrows one parameter by one entry of an approval.
func TestNarrowedParameters(t *testing.T) {
	for _, tc := range []struct {
		name, entry string
		declared    v1beta1.Parameter
		want        subresources.AvailableParameter
	}{
		{
			name: "any value", entry: "anyValue: true", declared: v1beta1.Parameter{Value: "a", Pattern: "[a-z]", DisplayName: "X-ray", Description: "A letter.", Required: true},
			want: subresources.AvailableParameter{Default: "a", Patterns: []string{"[a-z]"}, DisplayName: "X-ray", Description: "A letter.", NonEmpty: true},
		},
		{
			name: "listed values", entry: "allowed: [a, b]", declared: v1beta1.Parameter{Value: "a"},
			want: subresources.AvailableParameter{Default: "a", Enum: []string{"a", "b"}},
		},
		{
			name: "listed values, in the order of the template where both list some", entry: "allowed: [b, a, z]", declared: v1beta1.Parameter{Value: "a", Enum: []string{"a", "b", "c"}},
			want: subresources.AvailableParameter{Default: "a", Enum: []string{"a", "b"}},
		},
		{
			name: "a default that is not allowed has to be replaced", entry: "allowed: [b]", declared: v1beta1.Parameter{Value: "a"},
			want: subresources.AvailableParameter{Required: true, Enum: []string{"b"}},
		},
		{
			name: "no default where an empty value is not allowed", entry: "pattern: '[a-z]+'", declared: v1beta1.Parameter{},
			want: subresources.AvailableParameter{Required: true, Patterns: []string{"[a-z]+"}},
		},
		{
			name: "no default where an empty value is allowed", entry: "pattern: '[a-z]*'", declared: v1beta1.Parameter{},
			want: subresources.AvailableParameter{Patterns: []string{"[a-z]*"}},
		},
		{
			name: "two patterns", entry: "pattern: 'a.*'", declared: v1beta1.Parameter{Value: "ab", Pattern: ".*b"},
			want: subresources.AvailableParameter{Default: "ab", Patterns: []string{".*b", "a.*"}},
		},
		{
			name: "values of the template that the approval's pattern leaves", entry: "pattern: '[ab]'", declared: v1beta1.Parameter{Value: "a", Enum: []string{"a", "b", "c"}},
			want: subresources.AvailableParameter{Default: "a", Enum: []string{"a", "b"}, Patterns: []string{"[ab]"}},
		},
		{
			name: "the narrower of both bounds", entry: "{minimum: 2, maximum: 16}",
			declared: v1beta1.Parameter{Type: v1beta1.ParameterTypeInt, Value: "4", Minimum: ptr.To[int64](1), Maximum: ptr.To[int64](8)},
			want:     subresources.AvailableParameter{Type: v1beta1.ParameterTypeInt, Default: "4", Minimum: ptr.To[int64](2), Maximum: ptr.To[int64](8)},
		},
		{
			name: "bounds make an integer of a text", entry: "maximum: 8", declared: v1beta1.Parameter{Value: "16"},
			want: subresources.AvailableParameter{Type: v1beta1.ParameterTypeInt, Required: true, Maximum: ptr.To[int64](8)},
		},
		{
			name: "bounds of what is no integer", entry: "maximum: 8", declared: v1beta1.Parameter{Value: "true", Type: v1beta1.ParameterTypeBool},
			want: subresources.AvailableParameter{Type: v1beta1.ParameterTypeBool, Required: true, Requirements: []string{"must be an integer within the bounds of the approval"}},
		},
		{
			name: "an expression, in words", entry: "{expression: 'value.size() < 4', message: at most three letters}", declared: v1beta1.Parameter{Value: "a"},
			want: subresources.AvailableParameter{Default: "a", Requirements: []string{"at most three letters"}},
		},
		{
			name: "a generator that makes none of the listed values", entry: "allowed: [a]", declared: v1beta1.Parameter{Generate: "expression", From: "[a-z]{4}"},
			want: subresources.AvailableParameter{Generated: true, Required: true, Enum: []string{"a"}},
		},
		{
			name: "a generator that may make one", entry: "allowed: [made-a]", declared: v1beta1.Parameter{Generate: "expression", From: "[a-z]{4}"},
			want: subresources.AvailableParameter{Generated: true, Enum: []string{"made-a"}},
		},
		{
			name: "a sensitive one shows no values", entry: "allowed: [s3cret]", declared: v1beta1.Parameter{Value: "s3cret", Sensitive: true},
			want: subresources.AvailableParameter{Sensitive: true, Requirements: []string{"must be one of the values that are listed"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.declared.Name, tc.want.Name = "X", "X"
			entry := strings.Trim(tc.entry, "{}")
			got := approval.Narrow(compiled(t, "parameters: [{name: X, "+entry+"}]"), approval.Question{Template: fedora}, declared{tc.declared})
			want := approval.Narrowing{Allowed: true, Enforcement: v1alpha1.EnforcementDeny, Variants: []subresources.TemplateVariant{
				{Approvals: []string{"a"}, Parameters: []subresources.AvailableParameter{tc.want}},
			}}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParametersThatAreNotListedAreFixed(t *testing.T) {
	got := approval.Narrow(compiled(t, "parameters: [{name: IMAGE, anyValue: true}]"), approval.Question{Template: fedora}, parameters)
	want := []subresources.AvailableParameter{
		{Name: "NAME", Required: true, NonEmpty: true},
		{Name: "IMAGE", Default: "fedora"},
		{Name: "EXTRA", Fixed: true},
		{Name: "TOKEN", Fixed: true, Generated: true, NonEmpty: true},
		{Name: "PIN", Fixed: true, Sensitive: true},
		{Name: "PASSWORD", Fixed: true, Generated: true, Sensitive: true},
		{Name: "SIZE", Fixed: true, Default: "small"},
	}
	if diff := cmp.Diff(want, got.Variants[0].Parameters); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNarrow(t *testing.T) {
	const other = "templates: [{namespace: secret, name: hidden}]"
	const any = "parameters: [{name: X, anyValue: true}]"
	x := declared{{Name: "X", Value: "a"}}
	open, listed := subresources.AvailableParameter{Name: "X", Default: "a"}, subresources.AvailableParameter{Name: "X", Default: "a", Enum: []string{"a"}}
	variant := func(p subresources.AvailableParameter, approvals ...string) subresources.TemplateVariant {
		return subresources.TemplateVariant{Approvals: approvals, Parameters: []subresources.AvailableParameter{p}}
	}
	variants := func(v ...subresources.TemplateVariant) []subresources.TemplateVariant { return v }
	const deny, reference = v1alpha1.EnforcementDeny, "metadata.annotations[template.kubevirt.io/template-ref]"
	for _, tc := range []struct {
		name      string
		approvals []string
		declared  declared
		template  approval.Template
		objects   []approval.Object
		want      approval.Narrowing
	}{
		{name: "no approval selects the namespace", want: approval.Narrowing{Allowed: true, Variants: variants(variant(open))}},
		{name: "one approves it", approvals: []string{other, any}, want: approval.Narrowing{Allowed: true, Enforcement: deny, Variants: variants(variant(open, "b"))}},
		{
			name: "several do, in different ways", approvals: []string{any, "parameters: [{name: X, allowed: [a]}]", any},
			want: approval.Narrowing{Allowed: true, Enforcement: deny, Variants: variants(variant(open, "a", "c"), variant(listed, "b"))},
		},
		{
			name: "none does: other templates are not named", approvals: []string{other},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{{Approval: "a", Field: reference, Message: "it does not approve the template"}}},
		},
		{
			name: "none does, which is a warning", approvals: []string{other + "\nenforcement: Warn"},
			want: approval.Narrowing{Allowed: true, Enforcement: v1alpha1.EnforcementWarn, Variants: variants(variant(open)), Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "it does not approve the template"},
			}},
		},
		{
			name: "another content is approved", approvals: []string{"templates: [{namespace: golden, name: fedora, digest: 'sha256:" + strings.Repeat("0", 64) + "'}]"},
			template: approval.Template{Namespace: "golden", Name: "fedora", Digest: "sha256:1"},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "the template has another content than the one that is approved: its digest is sha256:1"},
			}},
		},
		{
			name: "it is invalid", approvals: []string{"parameters: [{name: X}]"},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{
				{Approval: "a", Field: reference, Message: "it is invalid and approves nothing until a cluster admin corrects it"},
			}},
		},
		{
			name: "it is for others", approvals: []string{"subjects: [{kind: User, name: bob}]"},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{{Approval: "a", Field: reference, Message: "it does not serve you"}}},
		},
		{
			name: "the user is exempt", approvals: []string{other + "\nexemptSubjects: [{kind: User, name: ada}]"},
			want: approval.Narrowing{Allowed: true, Enforcement: deny, Variants: variants(variant(open))},
		},
		{
			name: "no value is allowed by both", approvals: []string{other, "parameters: [{name: X, allowed: [z]}]"}, declared: declared{{Name: "X", Value: "a", Enum: []string{"a"}}},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{
				{Approval: "b", Field: "parameters[X]", Message: "no value satisfies both the template and the approval"},
			}},
		},
		{
			name: "bounds without a value between them", approvals: []string{"parameters: [{name: X, minimum: 9}]"}, declared: declared{{Name: "X", Type: "int", Value: "9", Maximum: ptr.To[int64](8)}},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{
				{Approval: "a", Field: "parameters[X]", Message: "no value satisfies both the template and the approval"},
			}},
		},
		{
			name: "a required one is closed", approvals: []string{"parameters: []"}, declared: declared{{Name: "X", Required: true}},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{{
				Approval: "a", Field: "parameters[X]", Reason: approval.ReasonClosedParameter,
				Message: "Required value: the template has no value for it and the approval does not list it, so no VirtualMachine of this template is approved; " +
					"ask a cluster admin to list the parameter, with the values that are allowed or with anyValue: true",
			}}},
		},
		{
			name: "its objects are not allowed", approvals: []string{any + "\nobjects: {policy: Deny}"}, objects: []approval.Object{{Field: "spec.objects[0]", Description: "Secret ${X}"}},
			want: approval.Narrowing{Enforcement: deny, Objections: []approval.Objection{{
				Approval: "a", Field: "spec.objects[0]", Reason: approval.ReasonObject,
				Message: "Secret ${X}: the approval allows no objects of templates; use another template, or ask a cluster admin to list the object in objects",
			}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.declared == nil {
				tc.declared = x
			}
			if tc.template.Name == "" {
				tc.template = fedora
			}
			q := approval.Question{User: authenticationv1.UserInfo{Username: "ada"}, Template: tc.template, Objects: tc.objects}
			if diff := cmp.Diff(tc.want, approval.Narrow(compiled(t, tc.approvals...), q, tc.declared), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNarrowingKey(t *testing.T) {
	ada, bob := authenticationv1.UserInfo{Username: "ada"}, authenticationv1.UserInfo{Username: "bob"}
	all, some := compiled(t, "{}"), compiled(t, "subjects: [{kind: User, name: bob}]")
	if approval.NarrowingKey(all, ada) != approval.NarrowingKey(all, bob) {
		t.Error("two users whom an approval serves have different keys")
	}
	if approval.NarrowingKey(some, ada) == approval.NarrowingKey(some, bob) {
		t.Error("users whom an approval serves, and does not serve, have the same key")
	}
	exempting := compiled(t, "exemptSubjects: [{kind: User, name: bob}]")
	if approval.NarrowingKey(exempting, ada) == approval.NarrowingKey(exempting, bob) {
		t.Error("users whom an approval exempts, and does not exempt, have the same key")
	}
	if undecided := approval.Undecided; approval.NarrowingKey([]*approval.Approval{undecided("x")}, ada) == approval.NarrowingKey([]*approval.Approval{undecided("y")}, ada) {
		t.Error("two reasons for which nothing is decided have the same key")
	}
	changed := object(t, "a", "{}")
	changed.Generation = 2
	later, err := approval.Compile(changed)
	if err != nil {
		t.Fatal(err)
	}
	if approval.NarrowingKey(all, ada) == approval.NarrowingKey([]*approval.Approval{later}, ada) || approval.NarrowingKey(nil, ada) != "" {
		t.Error("a changed approval has the key of the one before")
	}
}
