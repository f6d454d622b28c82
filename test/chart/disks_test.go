package chart

import (
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// The account as which the manager creates disks that templates lend, and the manager without it.
//
//suite:long
func TestTheAccountOfDisksCopiesFromTheListedNamespacesOnly(t *testing.T) {
	create := rightsTo(map[string]string{"cdi.kubevirt.io/datavolumes": "create"})
	source := rightsTo(map[string]string{"cdi.kubevirt.io/datavolumes/source": "create"})
	for name, tc := range map[string]struct {
		values             map[string]any
		wantListed, wantNo []string
		impersonates       bool
	}{
		"by default":                     {wantListed: append(slices.Clone(create), source...), wantNo: append(slices.Clone(create), source...), impersonates: true},
		"with listed namespaces":         {values: map[string]any{"sourceNamespaces": []any{"default"}}, wantListed: append(slices.Clone(create), source...), wantNo: create, impersonates: true},
		"where no disks are lent":        {values: map[string]any{"mode": "None"}},
		"with no namespace to lend from": {values: map[string]any{"sourceNamespaces": []any{}}, wantListed: create, wantNo: create, impersonates: true},
	} {
		t.Run(name, func(t *testing.T) {
			options := install.Options{}
			if tc.values != nil {
				options.Values = map[string]any{"diskAccess": tc.values}
			}
			plane := installed(t, options)
			manager, err := options.ManagerUser(plane)
			if err != nil {
				t.Fatal(err)
			}
			accountMay(t, plane, manager, "stencil-disks", map[string][]string{"default": tc.wantListed, "kube-public": tc.wantNo})
			eventually(t, "the manager acts as the account, or may not", func() string {
				got := slices.Contains(rightsOf(t, manager, install.Namespace), "impersonate serviceaccounts stencil-disks")
				if got != tc.impersonates || slices.Contains(options.ManagerArgs(), "--disk-account=system:serviceaccount:"+install.Namespace+":stencil-disks") != tc.impersonates {
					return "it may, or its flag names the account, unlike wanted"
				}
				return ""
			})
		})
	}
}
