package policies_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
)

// An exempt controller has both a configured name and the permission: any user can name a service account, and administrators have every
// permission.
func TestExemptControllers(t *testing.T) {
	const has = "variables.exemptController"
	for name, policy := range all(t) {
		named := func(variable string) bool {
			return slices.ContainsFunc(policy.Spec.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == variable })
		}
		if named("exemptUsers") != named("exemptController") || named("exemptUsers") != named("exemptAccounts") {
			t.Errorf("%s has only some of the variables about exempt users", name)
		}
		if !named("exemptUsers") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			compiled := evaluate(t, name, map[string]string{"exemptAccounts": "['kubevirt-controller', 'system:serviceaccount:cdi:cdi-sa']"}, has)
			closed := evaluate(t, name, nil, has)
			permitted := bypasses{
				"system:serviceaccount:hco:kubevirt-controller", "system:serviceaccount:cdi:cdi-sa", "system:serviceaccount:other:cdi-sa", "system:serviceaccount:hco:other",
				"admin", "kubevirt-controller", "system:serviceaccount:kubevirt-controller",
				wildcard + "system:serviceaccount:evil:kubevirt-controller", wildcard + "system:serviceaccount:both:kubevirt-controller", "system:serviceaccount:both:kubevirt-controller",
			}
			for _, tc := range []struct {
				user string
				want bool
			}{
				{"system:serviceaccount:hco:kubevirt-controller", true},
				{"system:serviceaccount:cdi:cdi-sa", true},
				{"system:serviceaccount:kubevirt:kubevirt-controller", false},
				{"system:serviceaccount:other:cdi-sa", false},
				{"system:serviceaccount:evil:kubevirt-controller", false},
				{"system:serviceaccount:both:kubevirt-controller", false},
				{"system:serviceaccount:hco:other", false},
				{"admin", false},
				{"kubevirt-controller", false},
				{"", false},
			} {
				r := request{
					operation: admission.Create, user: &user.DefaultInfo{Name: tc.user}, bypasses: permitted, name: "vm",
					namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "vm"}},
				}
				for _, each := range []struct {
					policy evaluated
					want   bool
				}{{compiled, tc.want}, {closed, false}} {
					results, _, err := each.policy.run(t.Context(), each.policy.evaluator, r, celconfig.RuntimeCELCostBudget)
					if err != nil {
						t.Fatal(err)
					}
					if results[0].Error != nil {
						t.Errorf("%q: %v", tc.user, results[0].Error)
					} else if got := results[0].EvalResult.Value() == true; got != each.want {
						t.Errorf("%q is exempt: %v", tc.user, got)
					}
				}
			}
		})
	}
}
