package approval_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

func TestCompileRejects(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string // fields, each with a part of its message
	}{
		{name: "nowhere", spec: "namespaces: []", want: []string{"spec.namespaces: namespaces or namespaceSelector must say"}},
		{name: "a system namespace", spec: "namespaces: [team-a, kube-system]", want: []string{"spec.namespaces[1]: never selected"}},
		{name: "a namespace twice", spec: "namespaces: [a, a]", want: []string{"spec.namespaces[1]: Duplicate"}},
		{name: "a namespace that cannot be", spec: "namespaces: ['a*']", want: []string{"spec.namespaces[0]: RFC 1123"}},
		{name: "no templates", spec: "templates: []", want: []string{"spec.templates: at least one"}},
		{name: "a template with two ways to choose it", spec: "templates: [{namespace: golden, name: a, selector: {}}]", want: []string{"spec.templates[0]: exactly one"}},
		{name: "a template with none", spec: "templates: [{namespace: golden}]", want: []string{"spec.templates[0]: exactly one"}},
		{name: "a template without a namespace", spec: "templates: [{name: a}]", want: []string{"spec.templates[0].namespace: RFC 1123"}},
		{name: "a template name that cannot be", spec: "templates: [{namespace: golden, name: '../a'}]", want: []string{"spec.templates[0].name: RFC 1123"}},
		{name: "a digest that is none", spec: "templates: [{namespace: golden, name: a, digest: 'sha256:00'}]", want: []string{"spec.templates[0].digest: 64 hexadecimal digits"}},
		{
			name: "a selector that cannot be read",
			spec: "namespaceSelector: {matchLabels: {a b: 'c d'}, matchExpressions: [{key: a, operator: Is}, {key: a, operator: In}, {key: a, operator: Exists, values: [b]}, {key: -, operator: NotIn, values: ['!']}]}",
			want: []string{
				"spec.namespaceSelector.matchLabels[a b]: name part", "spec.namespaceSelector.matchLabels[a b]: a valid label",
				`spec.namespaceSelector.matchExpressions[0].operator: supported values: "In", "NotIn", "Exists", "DoesNotExist"`,
				"spec.namespaceSelector.matchExpressions[1].values: needs values", "spec.namespaceSelector.matchExpressions[2].values: takes no values",
				"spec.namespaceSelector.matchExpressions[3].key: name part", "spec.namespaceSelector.matchExpressions[3].values[0]: a valid label",
			},
		},
		{
			name: "a selector that follows from itself",
			spec: "namespaceSelector: {matchLabels: {stencil.kubevirt.io/governed: 'true'}, matchExpressions: [{key: a, operator: Exists}, {key: stencil.kubevirt.io/governed, operator: DoesNotExist}]}",
			want: []string{
				"spec.namespaceSelector.matchLabels[stencil.kubevirt.io/governed]: an approval cannot select namespaces by it",
				"spec.namespaceSelector.matchExpressions[1].key: an approval cannot select namespaces by it",
			},
		},
		{name: "a template selector that cannot be read", spec: "templates: [{namespace: golden, selector: {matchExpressions: [{key: a, operator: is}]}}]", want: []string{"spec.templates[0].selector.matchExpressions[0].operator: supported"}},
		{
			name: "parameters of which nothing or too much is said",
			spec: "parameters: [{name: A}, {name: 'b c', minimum: 1}, {name: A, minimum: 2, maximum: 1}, {name: D, maximum: 1, message: x}]",
			want: []string{"spec.parameters[0]: Required value: at least one of anyValue, allowed, pattern, minimum, maximum and expression must be given", "spec.parameters[1].name: letters, digits", "spec.parameters[2].name: Duplicate", "spec.parameters[2].minimum: not be above maximum, which is 1", "spec.parameters[3].message: not set"},
		},
		{
			name: "any value together with something else",
			spec: "parameters: [{name: A, anyValue: true, allowed: [x]}, {name: B, anyValue: true, pattern: x}, {name: C, anyValue: true, minimum: 0}, {name: D, anyValue: true, maximum: 0}, {name: E, anyValue: true, expression: 'true'}, {name: F, anyValue: false}]",
			want: []string{
				"spec.parameters[0].anyValue: Forbidden: must not be combined with allowed, pattern, minimum, maximum and expression", "spec.parameters[1].anyValue: must not be combined",
				"spec.parameters[2].anyValue: must not be combined", "spec.parameters[3].anyValue: must not be combined", "spec.parameters[4].anyValue: must not be combined",
				"spec.parameters[5]: at least one of anyValue, allowed",
			},
		},
		{
			name: "patterns that do not compile",
			spec: "parameters: [{name: A, pattern: 'a('}, {name: B, pattern: 'a)|(b'}, {name: C, pattern: '((a{100}){100}){100}'}, {name: D, pattern: '\\Qabc'}]",
			want: []string{"spec.parameters[0].pattern: missing closing )", "spec.parameters[1].pattern: unexpected )", "spec.parameters[2].pattern: RE2", "spec.parameters[3].pattern: missing closing )"},
		},
		{name: "a pattern that is too large", spec: "parameters: [{name: A, pattern: '((abc){100}){9}x{1000}[a-z]{1000}y{1000}(abcde){1000}(?:fghij){1000}'}]", want: []string{"spec.parameters[0].pattern: more than 10000 instructions"}},
		{
			name: "expressions that do not compile",
			spec: "parameters: [{name: A, expression: 'value ='}, {name: B, expression: 'value'}, {name: C, expression: 'valu == 1'}, {name: D, expression: 'value > 1'}, {name: E, expression: 'object.spec == 1'}]",
			want: []string{"spec.parameters[0].expression: Syntax error", "spec.parameters[1].expression: must be a bool, not string", "spec.parameters[2].expression: undeclared reference to 'valu'", "spec.parameters[3].expression: no matching overload", "spec.parameters[4].expression: undeclared reference to 'object'"},
		},
		{name: "an expression that is too long", spec: "parameters: [{name: A, expression: '" + strings.Repeat(" ", 2048) + "true'}]", want: []string{"spec.parameters[0].expression: 2048"}},
		{name: "overrides that are none", spec: "overrides: [spec.a, 'spec.', metadata.name]", want: []string{"spec.overrides[1]: column 6: expected a field or *", "spec.overrides[2]: column 10: of metadata"}},
		{
			name: "subjects that are none",
			spec: "{subjects: [{kind: Robot, name: a}, {kind: User}, {kind: Group, name: g, namespace: n}], exemptSubjects: [{kind: ServiceAccount, name: 'a:b', namespace: 'c d'}, {kind: ServiceAccount, name: a}]}",
			want: []string{
				`spec.subjects[0].kind: supported values: "User", "Group", "ServiceAccount"`, "spec.subjects[1].name: Required", "spec.subjects[2].namespace: only a ServiceAccount",
				"spec.exemptSubjects[0].namespace: RFC 1123", "spec.exemptSubjects[0].name: RFC 1123", "spec.exemptSubjects[1].namespace: needs a namespace",
			},
		},
		{name: "a policy for existing disks that there is not", spec: "existingDisks: {policy: allow}", want: []string{`spec.existingDisks.policy: supported values: "Deny", "Allow"`}},
		{name: "existing disks that are selected and not allowed", spec: "existingDisks: {selector: {}}", want: []string{"spec.existingDisks.selector: Forbidden: selector limits what policy Allow permits, so it needs policy Allow"}},
		{
			name: "a selector of existing disks that cannot be read", spec: "existingDisks: {policy: Allow, selector: {matchExpressions: [{key: a, operator: is}]}}",
			want: []string{"spec.existingDisks.selector.matchExpressions[0].operator: supported"},
		},
		{name: "a policy for objects that there is not", spec: "objects: {policy: allow}", want: []string{`spec.objects.policy: supported values: "Allow", "Deny"`}},
		{name: "rights to objects that there are not", spec: "objects: {allowed: [{kinds: [Secret], rights: template}]}", want: []string{`spec.objects.allowed[0].rights: supported values: "User", "Template"`}},
		{name: "objects that are listed and denied", spec: "objects: {policy: Deny, allowed: [{kinds: [Secret]}]}", want: []string{"spec.objects.allowed: Forbidden: allowed limits what policy Allow permits, so it needs policy Allow"}},
		{
			name: "objects that cannot be", spec: "objects: {allowed: [{}, {kinds: [secrets, Secret., 'Secret.a b', NetworkPolicy.networking.k8s.io], names: ['a?', '[a]', '', 'a/b', '\\*', '*']}]}",
			want: []string{
				"spec.objects.allowed[0].kinds: Required value: an entry lists at least one kind", "spec.objects.allowed[1].kinds[0]: must be KIND, or KIND.GROUP", "spec.objects.allowed[1].kinds[1]: must be KIND",
				"spec.objects.allowed[1].kinds[2]: must be KIND", "spec.objects.allowed[1].names[0]: must have only letters", "spec.objects.allowed[1].names[1]: must have only letters",
				"spec.objects.allowed[1].names[2]: must have only letters", "spec.objects.allowed[1].names[3]: must have only letters", "spec.objects.allowed[1].names[4]: must have only letters",
			},
		},
		{name: "a choice of generated values that there is not", spec: "generatedValues: Forbid", want: []string{`spec.generatedValues: supported values: "Allow", "Deny"`}},
		{name: "a choice about labels that there is not", spec: "templateLabels: 'true'", want: []string{`spec.templateLabels: supported values: "Ignore", "Accept"`}},
		{name: "an enforcement that there is not", spec: "enforcement: deny", want: []string{`spec.enforcement: supported values: "Deny", "Warn", "Audit"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := object(t, "a", tc.spec)
			compiled, err := approval.Compile(o)
			var invalid *approval.InvalidError
			if compiled != nil || !errors.As(err, &invalid) {
				t.Fatalf("got %v, %v", compiled, err)
			}
			for i, cause := range invalid.Causes {
				if i >= len(tc.want) {
					t.Errorf("more than wanted: %v", cause)
					continue
				}
				field, text, _ := strings.Cut(tc.want[i], ": ")
				if cause.Field != field || !strings.Contains(cause.Error(), text) {
					t.Errorf("got %v, want %s", cause, tc.want[i])
				}
			}
			if len(invalid.Causes) < len(tc.want) {
				t.Errorf("got %v, want %v", invalid.Causes, tc.want)
			}
		})
	}
}

func TestWhatACompiledApprovalSaysOfItself(t *testing.T) {
	o := object(t, "team-a", "{parameters: [{name: CPU, minimum: 1}], templates: [{namespace: b, name: x}, {namespace: a, selector: {}}, {namespace: b, name: y}]}")
	o.UID, o.Generation = "uid", 3
	a, err := approval.Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	if a.Name() != "team-a" || a.UID() != "uid" || a.Generation() != 3 || a.Err() != nil || a.Enforcement() != v1alpha1.EnforcementDeny || a.SelectsByLabels() {
		t.Errorf("got %v", a)
	}
	if diff := cmp.Diff([]string{"a", "b"}, a.TemplateNamespaces()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CPU"}, a.ConstrainedParameters()); diff != "" {
		t.Error(diff)
	}
	o.Spec.Namespaces[0] = "elsewhere"
	o.Spec.Templates[0].Name = "other"
	if approved, _ := a.Approves(approval.Template{Namespace: "b", Name: "x"}); !approved || !a.SelectsNamespace("team-a", nil) {
		t.Error("it changes with the object")
	}
}

func TestAClosedApprovalCoversAndApprovesNothing(t *testing.T) {
	o := object(t, "broken", "{namespaceSelector: {matchLabels: {tier: gold}}, overrides: ['spec.'], exemptSubjects: [{kind: User, name: root}], enforcement: Warn, subjects: [{kind: User, name: ada}]}")
	_, reason := approval.Compile(o)
	a := approval.Closed(o, reason)
	if !a.SelectsNamespace("team-b", map[string]string{"tier": "gold"}) || a.SelectsNamespace("team-b", nil) || !a.SelectsByLabels() {
		t.Error("it covers other namespaces than it says")
	}
	if a.SelectsNamespace("kube-system", map[string]string{"tier": "gold"}) {
		t.Error("it covers kube-system")
	}
	if !a.Exempts(authenticationv1.UserInfo{Username: "root"}) || a.Exempts(authenticationv1.UserInfo{Username: "ada"}) {
		t.Error("it exempts others than it says")
	}
	if a.Enforcement() != v1alpha1.EnforcementWarn {
		t.Errorf("enforcement is %s", a.Enforcement())
	}
	if approved, why := a.Approves(approval.Template{Namespace: "golden", Name: "fedora"}); approved || why == "" {
		t.Errorf("it approves a template: %v %s", approved, why)
	}
	if a.Overridable(approval.Path{approval.Field("spec")}) {
		t.Error("it has overrides")
	}
	if !errors.Is(a.Err(), reason) {
		t.Errorf("its error is %v", a.Err())
	}
	if got := approval.Closed(o, nil); got.Err() == nil {
		t.Error("without a reason it is open")
	}
	unknown := object(t, "x", "enforcement: Off")
	if got := approval.Closed(unknown, reason).Enforcement(); got != v1alpha1.EnforcementDeny {
		t.Errorf("an unknown enforcement counts as %s", got)
	}
}

func TestSelectsNamespace(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		namespace  string
		labels     map[string]string
		want       bool
	}{
		{name: "a namespace by its name", spec: "namespaces: [team-a, team-b]", namespace: "team-b", want: true},
		{name: "another namespace", spec: "namespaces: [team-a]", namespace: "team-b", want: false},
		{name: "no selector selects nothing", spec: "namespaces: [team-a]", namespace: "team-b", labels: map[string]string{"a": "b"}, want: false},
		{name: "an empty selector selects everything", spec: "namespaceSelector: {}", namespace: "team-b", want: true},
		{name: "an empty selector does not select kube-system", spec: "namespaceSelector: {}", namespace: "kube-system", want: false},
		{name: "an empty selector does not select kube-public", spec: "namespaceSelector: {}", namespace: "kube-public", want: false},
		{name: "an empty selector does not select kube-node-lease", spec: "namespaceSelector: {}", namespace: "kube-node-lease", want: false},
		{name: "an empty selector does not select Stencil's own", spec: "namespaceSelector: {}", namespace: "stencil-system", want: false},
		{name: "a list does not cover Stencil's own", spec: "namespaces: [stencil-system]", namespace: "stencil-system", want: false},
		{name: "a name or a label is enough", spec: "{namespaces: [team-a], namespaceSelector: {matchLabels: {tier: gold}}}", namespace: "team-b", labels: map[string]string{"tier": "gold"}, want: true},
		{name: "a label of another value", spec: "namespaceSelector: {matchLabels: {tier: gold}}", namespace: "n", labels: map[string]string{"tier": "silver"}, want: false},
		{name: "one of two labels", spec: "namespaceSelector: {matchLabels: {tier: gold, zone: a}}", namespace: "n", labels: map[string]string{"tier": "gold"}, want: false},
		{name: "an empty value is not a missing label", spec: "namespaceSelector: {matchLabels: {tier: ''}}", namespace: "n", want: false},
		{name: "In, one of the values", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x, z]}]}", namespace: "n", labels: map[string]string{"a": "z"}, want: true},
		{name: "In, without the label", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: In, values: ['']}]}", namespace: "n", want: false},
		{name: "NotIn, one of the values", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", namespace: "n", labels: map[string]string{"a": "x"}, want: false},
		{name: "NotIn, without the label", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", namespace: "n", want: true},
		{name: "Exists", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: Exists}]}", namespace: "n", labels: map[string]string{"a": ""}, want: true},
		{name: "Exists, without the label", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: Exists}]}", namespace: "n", want: false},
		{name: "DoesNotExist", spec: "namespaceSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}", namespace: "n", labels: map[string]string{"a": ""}, want: false},
		{name: "all requirements must hold", spec: "namespaceSelector: {matchLabels: {a: x}, matchExpressions: [{key: b, operator: DoesNotExist}]}", namespace: "n", labels: map[string]string{"a": "x", "b": "y"}, want: false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := approval.Compile(object(t, "a", tc.spec), approval.Excluding("stencil-system"))
			if err != nil {
				t.Fatal(err)
			}
			if got := a.SelectsNamespace(tc.namespace, tc.labels); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("an operator that there is not narrows nothing", func(t *testing.T) {
		o := object(t, "a", "namespaceSelector: {}")
		o.Spec.NamespaceSelector.MatchExpressions = []v1alpha1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOperator("Near")}}
		if !approval.Closed(o, errors.New("it does not compile")).SelectsNamespace("n", nil) {
			t.Error("it covers nothing")
		}
	})
}

func TestSubjects(t *testing.T) {
	a := compile(t, "a", "subjects: [{kind: User, name: ada}, {kind: Group, name: team-a}, {kind: ServiceAccount, namespace: ci, name: runner}]")
	for _, tc := range []struct {
		name string
		user authenticationv1.UserInfo
		want bool
	}{
		{"a user", authenticationv1.UserInfo{Username: "ada"}, true},
		{"another user", authenticationv1.UserInfo{Username: "bob", Groups: []string{"team-b"}}, false},
		{"a user in another case", authenticationv1.UserInfo{Username: "Ada"}, false},
		{"a member of a group", authenticationv1.UserInfo{Username: "bob", Groups: []string{"team-b", "team-a"}}, true},
		{"a user called like a group", authenticationv1.UserInfo{Username: "team-a"}, false},
		{"a group called like a user", authenticationv1.UserInfo{Username: "eve", Groups: []string{"ada"}}, false},
		{"a service account", authenticationv1.UserInfo{Username: "system:serviceaccount:ci:runner"}, true},
		{"a service account of that name elsewhere", authenticationv1.UserInfo{Username: "system:serviceaccount:dev:runner"}, false},
		{"a user called like the service account", authenticationv1.UserInfo{Username: "runner"}, false},
		{"nobody", authenticationv1.UserInfo{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := a.Serves(tc.user); got != tc.want {
				t.Errorf("got %v", got)
			}
			if a.Exempts(tc.user) {
				t.Error("whom it serves it exempts")
			}
		})
	}
	if everyone := compile(t, "b", "{}"); !everyone.Serves(authenticationv1.UserInfo{}) || everyone.Exempts(authenticationv1.UserInfo{}) {
		t.Error("without subjects it serves everyone and exempts nobody")
	}
}

func TestApproves(t *testing.T) {
	const digest, other = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	gold := map[string]string{"tier": "gold"}
	for _, tc := range []struct {
		name, templates string
		template        approval.Template
		want            string // the reason against it; empty when it is approved
	}{
		{name: "by its name", templates: "[{namespace: golden, name: fedora}]", template: approval.Template{Namespace: "golden", Name: "fedora"}},
		{name: "of another namespace", templates: "[{namespace: golden, name: fedora}]", template: approval.Template{Namespace: "team-a", Name: "fedora"}, want: "it does not approve template team-a/fedora"},
		{name: "of another name", templates: "[{namespace: golden, name: fedora}, {namespace: golden, name: fedora2}]", template: approval.Template{Namespace: "golden", Name: "fedor"}, want: "it does not approve template golden/fedor"},
		{name: "none at all", templates: "[{namespace: golden, name: fedora}]", template: approval.Template{}, want: "the VirtualMachine names no template"},
		{name: "none at all, where all of a namespace are approved", templates: "[{namespace: golden, selector: {}}]", template: approval.Template{Namespace: "golden"}, want: "the VirtualMachine names no template"},
		{name: "by its labels", templates: "[{namespace: golden, selector: {matchLabels: {tier: gold}}}]", template: approval.Template{Namespace: "golden", Name: "x", Labels: gold}},
		{
			name: "of other labels", templates: "[{namespace: golden, selector: {matchLabels: {tier: gold}, matchExpressions: [{key: a, operator: In, values: [x, z]}, {key: b, operator: NotIn, values: [z]}, {key: c, operator: Exists}, {key: d, operator: DoesNotExist}]}}]",
			template: approval.Template{Namespace: "golden", Name: "x", Labels: gold},
			want:     "it does not approve template golden/x",
		},
		{name: "those labels in another namespace", templates: "[{namespace: golden, selector: {matchLabels: {tier: gold}}}]", template: approval.Template{Namespace: "x", Name: "x", Labels: gold}, want: "does not approve"},
		{name: "all of a namespace", templates: "[{namespace: golden, selector: {}}]", template: approval.Template{Namespace: "golden", Name: "x"}},
		{name: "one that is gone, by its name", templates: "[{namespace: golden, name: x}]", template: approval.Template{Namespace: "golden", Name: "x", Deleted: true}},
		{name: "one that is gone, by labels that nobody knows", templates: "[{namespace: golden, selector: {}}]", template: approval.Template{Namespace: "golden", Name: "x", Labels: gold, Deleted: true}, want: "does not approve"},
		{name: "with the content that is pinned", templates: "[{namespace: golden, name: x, digest: '" + digest + "'}]", template: approval.Template{Namespace: "golden", Name: "x", Digest: digest}},
		{name: "with another content", templates: "[{namespace: golden, name: x, digest: '" + digest + "'}]", template: approval.Template{Namespace: "golden", Name: "x", Digest: other}, want: "has another content than the one that is approved: its digest is " + other + ", approved is " + digest},
		{name: "with content that nobody knows", templates: "[{namespace: golden, name: x, digest: '" + digest + "'}]", template: approval.Template{Namespace: "golden", Name: "x"}, want: "another content"},
		{name: "with one of two pinned contents", templates: "[{namespace: golden, name: x, digest: '" + digest + "'}, {namespace: golden, name: x, digest: '" + other + "'}]", template: approval.Template{Namespace: "golden", Name: "x", Digest: other}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := compile(t, "a", "templates: "+tc.templates)
			approved, why := a.Approves(tc.template)
			if approved != (tc.want == "") || !strings.Contains(why, tc.want) {
				t.Errorf("got %v, %s; want %s", approved, why, tc.want)
			}
			if listed := a.ListsTemplate(tc.template); tc.template.Name != "" && listed != (approved || strings.Contains(tc.want, "another content")) {
				t.Errorf("listed: %v", listed)
			}
		})
	}
}
