package policies_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	onlyFromTemplates = "the API server of templates creates VirtualMachines from templates only, and for a user whose name is in annotation " +
		"template.kubevirt.io/created-by"
	withoutSpec = "the API server of templates sends VirtualMachines without spec, which the template makes: send a VirtualMachine with a spec as a " +
		"user who may create VirtualMachines"
	notForThem = "the API server of templates creates no VirtualMachines for users who are exempt from TemplateApprovals, " +
		"and for service accounts in the namespaces of such users: send the VirtualMachine itself, with annotation template.kubevirt.io/template-ref"
)

// The objects that can be created with the token of stencil-apiserver while no webhook is called. The entries of managedFields are
// those that a real API server writes, in test/e2e/policies.
func TestWhatTheServerCreates(t *testing.T) {
	policy := evaluate(t, "delegated-machines", map[string]string{
		"apiserverUser": "'apiserver'", "exemptUsers": "['system:serviceaccount:kube-system:namespace-controller', 'backup']",
		"exemptAccounts": "['kubevirt-controller', 'kubevirt-handler', 'cdi-sa', 'system:serviceaccount:other:a']",
	})
	entry := func(fields map[string]any) map[string]any {
		return map[string]any{"manager": "m", "operation": "Update", "apiVersion": "kubevirt.io/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	annotations := map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{".": map[string]any{}}}}
	spec := map[string]any{"f:spec": map[string]any{"f:runStrategy": map[string]any{}}}
	for _, tc := range []struct {
		name string
		// managed are the managedFields; nil stands for those of a request without spec.
		managed []any
		noRef   bool
		by      string // apiserver if empty
		person  string // ada if empty
		groups  []string
		dryRun  bool
		want    string
	}{
		{name: "a VM from a template"},
		{name: "a VM without a template", noRef: true, want: onlyFromTemplates},
		{name: "with a spec", managed: []any{entry(spec)}, want: withoutSpec},
		{name: "with a spec that another manager claims", managed: []any{entry(annotations), entry(spec)}, want: withoutSpec},
		{name: "with an empty spec", managed: []any{entry(map[string]any{"f:spec": map[string]any{}})}, want: withoutSpec},
		{name: "with a spec, in a dry run", managed: []any{entry(spec)}, dryRun: true, want: withoutSpec},
		{name: "if the API server could compute no fields", managed: []any{}, want: withoutSpec},
		{name: "with an entry without fields", managed: []any{map[string]any{"manager": "m"}}, want: withoutSpec},
		{name: "another user sends a spec", managed: []any{entry(spec)}, by: "dora"},
		{name: "for an exempt user", person: "backup", want: notForThem},
		{name: "for an exempt account of Kubernetes", person: "system:serviceaccount:kube-system:namespace-controller", want: notForThem},
		{name: "for another account of its namespace", person: "system:serviceaccount:kube-system:x", groups: []string{"system:serviceaccounts:kube-system"}, want: notForThem},
		{name: "for KubeVirt's controller", person: "system:serviceaccount:hco:kubevirt-controller", want: notForThem},
		{name: "for another account of its namespace", person: "system:serviceaccount:hco:x", groups: []string{"system:serviceaccounts", "system:serviceaccounts:hco"}, want: notForThem},
		{name: "for an account of CDI's namespace", person: "system:serviceaccount:storage:x", groups: []string{"system:serviceaccounts:storage"}, want: notForThem},
		{name: "for an account that has its name elsewhere", person: "system:serviceaccount:kubevirt:kubevirt-controller",
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:kubevirt"}},
		{name: "for an account with the permission and another name", person: "system:serviceaccount:hco:admin"},
		{name: "for a service account of another namespace", person: "system:serviceaccount:ci:x", groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci"}},
		{name: "for a member of system:masters", groups: []string{"team-a", "system:masters"}},
		{name: "for an exempt user, in a dry run", person: "backup", dryRun: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			person, by := tc.person, tc.by
			if person == "" {
				person = "ada"
			}
			info := &user.DefaultInfo{Name: by}
			annotated := map[string]any{"template.kubevirt.io/template-ref": "golden/fedora"}
			if by == "" {
				info = &user.DefaultInfo{Name: "apiserver", Extra: map[string][]string{delegatedUser: {person}}}
				if len(tc.groups) > 0 {
					info.Extra[delegatedGroup] = tc.groups
				}
				annotated["template.kubevirt.io/created-by"] = person
			}
			if tc.noRef {
				delete(annotated, "template.kubevirt.io/template-ref")
			}
			managed := tc.managed
			if managed == nil {
				managed = []any{entry(annotations)}
			}
			denial, _ := policy.decide(t, request{
				operation: admission.Create, user: info, bypasses: bypasses{
					"system:serviceaccount:hco:kubevirt-controller", "system:serviceaccount:hco:admin", "system:serviceaccount:storage:cdi-sa",
				}, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, name: "vm", dryRun: tc.dryRun,
				object: map[string]any{
					"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
					"metadata": map[string]any{"name": "vm", "annotations": annotated, "managedFields": managed},
					"spec":     map[string]any{"runStrategy": "Halted"},
				},
			})
			if denial != tc.want {
				t.Errorf("got  %s\nwant %s", denial, tc.want)
			}
		})
	}
}

// A service account is in one group of a namespace. A request with several such groups exceeds the cost limit of an expression, and is
// denied.
func TestGroupsOfSeveralNamespacesAreDenied(t *testing.T) {
	policy := evaluate(t, "delegated-machines", map[string]string{"apiserverUser": "'apiserver'", "exemptAccounts": "['kubevirt-controller']"})
	info := &user.DefaultInfo{Name: "apiserver", Extra: map[string][]string{
		delegatedUser: {"ada"}, delegatedGroup: {"system:serviceaccounts:a", "system:serviceaccounts:b", "system:serviceaccounts:hco"},
	}}
	results, _, err := policy.run(t.Context(), policy.validations, request{
		operation: admission.Create, user: info, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, name: "vm",
		object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{
			"name": "vm", "annotations": map[string]any{"template.kubevirt.io/template-ref": "golden/fedora", "template.kubevirt.io/created-by": "ada"},
		}},
		bypasses: bypasses{"system:serviceaccount:hco:kubevirt-controller"},
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	if results[2].Error == nil {
		t.Errorf("the result is %v, want an error", results[2].EvalResult)
	}
}
