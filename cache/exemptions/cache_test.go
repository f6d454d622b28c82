package exemptions

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/internal/exemption"
)

func TestCache(t *testing.T) {
	const (
		controller = "system:serviceaccount:kubevirt-hyperconverged:kubevirt-controller"
		handler    = "system:serviceaccount:kubevirt:kubevirt-handler"
		collector  = "system:serviceaccount:kube-system:generic-garbage-collector"
	)
	c, err := New(Options{Names: exemption.Parse([]string{"kubevirt-controller", handler, collector}, "")})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Synced() {
		t.Error("without a binding there is nothing to wait for")
	}
	c = newCache(Options{Names: c.names})
	check := func(when string, synced bool, exempt map[string]bool, in map[string]bool) {
		t.Helper()
		if c.Synced() != synced {
			t.Errorf("%s: synced is %v", when, !synced)
		}
		for user, want := range exempt {
			if c.Exempt(user) != want {
				t.Errorf("%s: exempt(%s) is %v", when, user, !want)
			}
		}
		for namespace, want := range in {
			if c.ExemptIn(namespace) != want {
				t.Errorf("%s: exemptIn(%s) is %v", when, namespace, !want)
			}
		}
	}
	check("before the list", false, map[string]bool{controller: false, handler: false, collector: true, "ada": false},
		map[string]bool{"kube-system": true, "kubevirt-hyperconverged": false})

	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	binding := &rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{
		account("kubevirt-hyperconverged", "kubevirt-controller"),
		// Names that are configured otherwise, or not at all, and subjects that are no service accounts.
		account("other", "kubevirt-handler"), account("kubevirt-hyperconverged", "default"),
		{Kind: rbacv1.UserKind, Name: handler}, {Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:kubevirt"},
	}}
	s := c.bindings
	if err := s.Replace([]any{binding}, "7"); err != nil {
		t.Fatal(err)
	}
	check("with a binding", true, map[string]bool{
		controller: true, handler: false, collector: true,
		"system:serviceaccount:other:kubevirt-handler":          false,
		"system:serviceaccount:kubevirt-hyperconverged:default": false,
		"system:serviceaccount:kubevirt:kubevirt-controller":    false,
		"kubevirt-controller":                                   false,
	}, map[string]bool{"kubevirt-hyperconverged": true, "other": false, "kubevirt": false})

	if err := s.Update(&rbacv1.ClusterRoleBinding{Subjects: []rbacv1.Subject{account("kubevirt", "kubevirt-handler")}}); err != nil {
		t.Fatal(err)
	}
	check("with another binding", true, map[string]bool{controller: false, handler: true}, map[string]bool{"kubevirt-hyperconverged": false, "kubevirt": true})
	if err := s.Delete(binding); err != nil {
		t.Fatal(err)
	}
	check("without one", true, map[string]bool{handler: false, collector: true}, map[string]bool{"kubevirt": false})
	if err := s.Replace(nil, "8"); err != nil {
		t.Fatal(err)
	}
	if err := s.Add("text"); err == nil || err.Error() != "the watch of ClusterRoleBindings received a string" {
		t.Errorf("of a string: %v", err)
	}
}
