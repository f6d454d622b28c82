package policywebhook

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/exemption"
)

type change func(*v1alpha1.VirtualMachinePolicySpec)

// policy returns a policy that evaluates creations and updates of VirtualMachines, changed by changes.
func policy(changes ...change) *v1alpha1.VirtualMachinePolicySpec {
	spec := &v1alpha1.VirtualMachinePolicySpec{
		Match: v1alpha1.PolicyMatch{
			Operations: []v1alpha1.PolicyOperation{"CREATE", "UPDATE"},
			Kinds:      []v1alpha1.PolicyKind{"VirtualMachine"},
		},
		Enforcement: v1alpha1.EnforcementDeny,
		FailureMode: v1alpha1.FailureModeDeny,
	}
	for _, apply := range changes {
		apply(spec)
	}
	return spec
}

func on(operations ...v1alpha1.PolicyOperation) change {
	return func(s *v1alpha1.VirtualMachinePolicySpec) { s.Match.Operations = operations }
}

func about(kinds ...v1alpha1.PolicyKind) change {
	return func(s *v1alpha1.VirtualMachinePolicySpec) { s.Match.Kinds = kinds }
}

func enforced(e v1alpha1.Enforcement, f v1alpha1.FailureMode) change {
	return func(s *v1alpha1.VirtualMachinePolicySpec) { s.Enforcement, s.FailureMode = e, f }
}

func inNamespaces(label string) change {
	return func(s *v1alpha1.VirtualMachinePolicySpec) {
		s.Match.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{label: ""}}
	}
}

func ofTemplates(s *v1alpha1.VirtualMachinePolicySpec) {
	s.Match.Templates = []v1alpha1.TemplateMatch{{Namespace: "golden"}}
}

func ofObjects(label string) change {
	return func(s *v1alpha1.VirtualMachinePolicySpec) {
		s.Match.ObjectSelector = &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}}}
	}
}

// seen holds the parts of an entry that the cases compare.
type seen struct {
	Name, Failure, Namespaces, Objects string
	Conditions                         []string
}

// withInstances adds the entry for instances, ReplicaSets and pools after each for VirtualMachines without a template that are created or
// updated. It has no object selector: a pool does not have the labels of its VMs.
func withInstances(entries []seen) (all []seen) {
	for _, entry := range entries {
		all = append(all, entry)
		operation, vm := strings.CutSuffix(entry.Name, ".virtualmachine.policies.stencil.kubevirt.io")
		if !vm || operation == "delete" {
			continue
		}
		instance := seen{
			Name: operation + ".virtualmachineinstance.policies.stencil.kubevirt.io", Failure: entry.Failure, Namespaces: entry.Namespaces,
			Conditions: []string{"not-exempt"},
		}
		if operation == "update" {
			instance.Conditions = []string{"relevant-change", "not-ending", "not-exempt"}
		}
		all = append(all, instance)
	}
	slices.SortFunc(all, func(a, b seen) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func TestEntries(t *testing.T) {
	vm := func(operation, failure string, conditions ...string) seen {
		return seen{Name: operation + ".virtualmachine.policies.stencil.kubevirt.io", Failure: failure, Conditions: conditions}
	}
	createConditions := []string{"has-no-template-ref", "has-no-rules"}
	updateConditions := []string{"has-no-template-ref", "has-no-rules", "relevant-change", "not-ending", "not-exempt"}
	templated := func(operation, failure, namespaces string, conditions ...string) seen {
		return seen{Name: operation + ".templatedvirtualmachine.policies.stencil.kubevirt.io", Failure: failure, Namespaces: namespaces, Conditions: conditions}
	}
	const ungoverned = "stencil.kubevirt.io/governed in (audit,false)"
	cases := map[string]struct {
		policies []*v1alpha1.VirtualMachinePolicySpec
		// excluded are the governed labels of namespaces that the comparing webhook excludes.
		excluded []string
		want     []seen
	}{
		"machines of templates are sent where nobody compares them with it": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(inNamespaces("a"))},
			excluded: []string{"false", "audit"},
			want: []seen{
				templated("create", "Fail", "a=,"+ungoverned, "has-template-ref", "has-no-rules"),
				{Name: "create.virtualmachine.policies.stencil.kubevirt.io", Failure: "Fail", Namespaces: "a=", Conditions: createConditions},
				templated("update", "Fail", "a=,"+ungoverned, "has-template-ref", "has-no-rules", "relevant-change", "not-ending", "not-exempt"),
				{Name: "update.virtualmachine.policies.stencil.kubevirt.io", Failure: "Fail", Namespaces: "a=", Conditions: updateConditions},
			},
		},
		"those alone, when the policy is about no others": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE", "DELETE"), ofTemplates, enforced("Warn", "Allow"))},
			excluded: []string{"false", "audit"},
			want: []seen{
				templated("create", "Ignore", ungoverned, "has-template-ref", "has-no-rules"),
				vm("delete", "Ignore", "not-exempt"),
			},
		},
		"no policy needs nothing": {},
		"a policy that refuses fails closed": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy()},
			want:     []seen{vm("create", "Fail", createConditions...), vm("update", "Fail", updateConditions...)},
		},
		"one that does not refuse, or not when it cannot judge, blocks nobody": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{
				policy(on("CREATE"), enforced("Warn", "Deny")), policy(on("CREATE"), enforced("Audit", "Deny")), policy(on("CREATE"), enforced("Deny", "Allow")),
			},
			want: []seen{vm("create", "Ignore", createConditions...)},
		},
		"the strictest decides, at its own door": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(enforced("Warn", "Deny")), policy(on("UPDATE", "DELETE"))},
			want: []seen{
				vm("create", "Ignore", createConditions...), vm("delete", "Fail", "not-exempt"), vm("update", "Fail", updateConditions...),
			},
		},
		"each kind has doors of its own": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(about("VirtualMachineTemplate", "VirtualMachineTemplateRequest"), enforced("Warn", "Allow"))},
			want: []seen{
				{Name: "create.virtualmachinetemplate.policies.stencil.kubevirt.io", Failure: "Ignore"},
				{Name: "create.virtualmachinetemplaterequest.policies.stencil.kubevirt.io", Failure: "Ignore"},
				{Name: "update.virtualmachinetemplate.policies.stencil.kubevirt.io", Failure: "Ignore", Conditions: updateConditions[2:]},
				{Name: "update.virtualmachinetemplaterequest.policies.stencil.kubevirt.io", Failure: "Ignore", Conditions: updateConditions[2:]},
			},
		},
		"imports and exports too": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), about("VirtualMachineTemplateImport", "VirtualMachineTemplateExport"))},
			want: []seen{
				{Name: "create.virtualmachinetemplateexport.policies.stencil.kubevirt.io", Failure: "Fail"},
				{Name: "create.virtualmachinetemplateimport.policies.stencil.kubevirt.io", Failure: "Fail"},
			},
		},
		"a policy about machines of templates needs a door for deletions only": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE", "UPDATE", "DELETE"), ofTemplates)},
			want:     []seen{vm("delete", "Fail", "not-exempt")},
		},
		"and for other kinds": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), about("VirtualMachine", "VirtualMachineTemplate"), ofTemplates)},
			want:     []seen{{Name: "create.virtualmachinetemplate.policies.stencil.kubevirt.io", Failure: "Fail"}},
		},
		"selectors that all policies share limit the entry": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), inNamespaces("a"), ofObjects("b")), policy(on("CREATE"), inNamespaces("a"), ofObjects("b"))},
			want: []seen{{
				Name: "create.virtualmachine.policies.stencil.kubevirt.io", Failure: "Fail", Namespaces: "a=", Objects: "b", Conditions: createConditions,
			}},
		},
		"selectors that they do not share do not": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), inNamespaces("a"), ofObjects("b")), policy(on("CREATE"), inNamespaces("a"))},
			want: []seen{{
				Name: "create.virtualmachine.policies.stencil.kubevirt.io", Failure: "Fail", Namespaces: "a=", Conditions: createConditions,
			}},
		},
		"three selectors of which two are the same": {
			policies: []*v1alpha1.VirtualMachinePolicySpec{policy(on("CREATE"), inNamespaces("a")), policy(on("CREATE"), inNamespaces("b")), policy(on("CREATE"), inNamespaces("a"))},
			want:     []seen{vm("create", "Fail", createConditions...)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := &Settings{URL: "https://x", TimeoutSeconds: 7, Exempt: exemption.Parse([]string{"somebody"}, "")}
			var got []seen
			var excluded *metav1.LabelSelectorRequirement
			if tc.excluded != nil {
				excluded = &metav1.LabelSelectorRequirement{Key: v1alpha1.LabelGoverned, Operator: metav1.LabelSelectorOpIn, Values: tc.excluded}
			}
			for _, w := range desired(tc.policies, settings, excluded, func(string) []byte { return nil }) {
				one := seen{Name: w.Name, Failure: string(*w.FailurePolicy)}
				for _, pair := range []struct {
					selector *metav1.LabelSelector
					into     *string
				}{{w.NamespaceSelector, &one.Namespaces}, {w.ObjectSelector, &one.Objects}} {
					if selector, err := metav1.LabelSelectorAsSelector(pair.selector); err != nil {
						t.Fatal(err)
					} else {
						*pair.into = selector.String()
					}
				}
				for _, condition := range w.MatchConditions {
					one.Conditions = append(one.Conditions, condition.Name)
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(withInstances(tc.want), got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWholeEntry(t *testing.T) {
	settings := &Settings{
		Service:        admissionregistrationv1.ServiceReference{Namespace: "stencil-system", Name: "stencil-webhook"},
		TimeoutSeconds: 10, Exempt: exemption.Parse([]string{"kubevirt-handler", "system:serviceaccount:kube-system:b"}, ""),
	}
	got := desired([]*v1alpha1.VirtualMachinePolicySpec{policy(on("DELETE"))}, settings, nil, func(name string) []byte { return []byte("bundle of " + name) })
	want := []admissionregistrationv1.ValidatingWebhook{{
		Name: "delete.virtualmachine.policies.stencil.kubevirt.io",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{
				Namespace: "stencil-system", Name: "stencil-webhook", Path: ptr.To("/validate-policies"), Port: ptr.To[int32](443),
			},
			CABundle: []byte("bundle of delete.virtualmachine.policies.stencil.kubevirt.io"),
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"DELETE"},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"kubevirt.io"}, APIVersions: []string{"v1", "v1alpha3"}, Resources: []string{"virtualmachines"},
				Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		}},
		FailurePolicy:     ptr.To(admissionregistrationv1.Fail),
		MatchPolicy:       ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To[int32](10),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "not-exempt", Expression: `!(request.userInfo.username in ["system:serviceaccount:kube-system:b"] || ` +
				`request.userInfo.username.startsWith('system:serviceaccount:') && ` +
				`(request.userInfo.username in ["kubevirt-handler"] || request.userInfo.username.split(':')[3] in ["kubevirt-handler"]) && ` +
				`authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('bypass').allowed() && !authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('any-verb').allowed())`,
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
	settings.URL = "https://gateway.example.com/stencil/"
	got = desired([]*v1alpha1.VirtualMachinePolicySpec{policy(on("DELETE"))}, settings, nil, func(string) []byte { return nil })
	if diff := cmp.Diff(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://gateway.example.com/stencil/validate-policies")}, got[0].ClientConfig); diff != "" {
		t.Errorf("with a URL (-want +got):\n%s", diff)
	}
}
