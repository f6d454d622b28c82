package chart

import (
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// The account as which the manager keeps golden images fresh.
//
//suite:long
func TestTheAccountOfImagesWritesInTheListedNamespacesOnly(t *testing.T) {
	rights := rightsTo(map[string]string{
		"cdi.kubevirt.io/datasources":             "get create patch delete",
		"cdi.kubevirt.io/dataimportcrons":         "get create patch delete",
		"cdi.kubevirt.io/datavolumes":             "create list delete",
		"persistentvolumeclaims":                  "get list delete",
		"snapshot.storage.k8s.io/volumesnapshots": "list delete",
		"image.openshift.io/imagestreams":         "get",
	})
	readable := rightsTo(map[string]string{"secrets registry": "get", "configmaps authorities": "get"})
	for name, tc := range map[string]struct {
		values             map[string]any
		wantListed, wantNo []string
	}{
		"by default": {},
		"with listed namespaces": {values: map[string]any{
			"namespaces": []any{"default"},
			"readable": []any{
				map[string]any{"kind": "Secret", "namespace": "default", "name": "registry"},
				map[string]any{"kind": "ConfigMap", "namespace": "default", "name": "authorities"},
			},
		}, wantListed: slices.Sorted(slices.Values(append(slices.Clone(rights), readable...)))},
		"in all namespaces": {values: map[string]any{"namespaces": []any{"*"}}, wantListed: rights, wantNo: rights},
	} {
		t.Run(name, func(t *testing.T) {
			options := install.Options{}
			if tc.values != nil {
				options.Values = map[string]any{"goldenImages": tc.values}
			}
			plane := installed(t, options)
			manager, err := options.ManagerUser(plane)
			if err != nil {
				t.Fatal(err)
			}
			accountMay(t, plane, manager, "stencil-images", map[string][]string{"default": tc.wantListed, "kube-public": tc.wantNo})
		})
	}
}
