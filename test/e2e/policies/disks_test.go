package policies_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

var (
	pvcs        = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	dataVolumes = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	crons       = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "dataimportcrons"}

	managesDisks = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Verbs: []string{"*"}, Resources: []string{"persistentvolumeclaims"}},
		{APIGroups: []string{"cdi.kubevirt.io"}, Verbs: []string{"*"}, Resources: []string{"*"}},
	}
)

const createdBy = "kubevirt.io/created-by"

// disk is a DataVolume, a claim or a DataImportCron.
func disk(resource schema.GroupVersionResource, name string, labels object) string {
	storage := object{"resources": object{"requests": object{"storage": "1Gi"}}}
	source := object{"registry": object{"url": "docker://registry.example/image"}}
	switch resource {
	case pvcs:
		return encode(object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"name": name, "labels": labels},
			"spec": object{"accessModes": []any{"ReadWriteOnce"}, "resources": storage["resources"]}})
	case crons:
		return encode(object{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataImportCron", "metadata": object{"name": name, "labels": labels},
			"spec": object{"managedDataSource": name, "schedule": "* * * * *", "template": object{"spec": object{"source": source, "storage": storage}}}})
	}
	return encode(object{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": object{"name": name, "labels": labels},
		"spec": object{"source": source, "storage": storage}})
}

func TestWhoseDiskItIsIsWrittenByKubeVirtAlone(t *testing.T) {
	t.Parallel()
	space, free := namespace(t), namespace(t)
	mine, none := object{createdBy: "11111111-2222-3333-4444-555555555555", "app": "web"}, object{"app": "web"}
	kinds := []schema.GroupVersionResource{pvcs, dataVolumes, crons}
	for _, space := range []string{space, free} {
		admin := acting(t, nil, space)
		for _, kind := range kinds {
			mustPass(t, admin.create(disk(kind, "own", mine)))
			mustPass(t, admin.create(disk(kind, "plain", none)))
		}
	}
	user := newOwner(t, "disks-user", managesDisks...)
	handyman := newOwner(t, "disks-handyman", managesDisks...)
	cdi := newOwner(t, "system:serviceaccount:cdi:cdi-sa", append(slices.Clone(managesDisks), install.Bypass())...)
	sets := newOwner(t, "system:serviceaccount:kube-system:statefulset-controller", managesDisks...)
	for _, rule := range managesDisks {
		harness.Grant(t, shared.Plane(t), controller, "", rule)
	}
	approve(t, "disks", object{"namespaces": []any{space}, "exemptSubjects": []any{object{"kind": "User", "name": handyman.Name}}})

	const deniedMessage = "label kubevirt.io/created-by records which VirtualMachine a disk was created for, and "
	created := denial{"disk-provenance", deniedMessage + "KubeVirt alone sets it in a namespace that TemplateApproval disks governs: leave it out"}
	changed := denial{"disk-provenance", deniedMessage + "cannot be added, changed or removed later in a namespace that TemplateApproval disks governs: leave it as it is stored"}
	late := denial{"disk-provenance", "CDI sets label kubevirt.io/created-by when it creates a claim, and cannot change it afterwards in a governed namespace: " +
		"import an image without KUBEVIRT_IO_CREATED_BY in its environment"}

	t.Run("creating", func(t *testing.T) {
		for _, kind := range kinds {
			for _, as := range []*controlplane.User{user, sets, nil} {
				created.check(t, dry(t, as, space).create(disk(kind, "new", mine)))
				denial{}.check(t, dry(t, as, space).create(disk(kind, "new", none)))
				denial{}.check(t, dry(t, as, free).create(disk(kind, "new", mine)))
			}
			for _, as := range []*controlplane.User{controller, cdi, handyman} {
				denial{}.check(t, dry(t, as, space).create(disk(kind, "new", mine)))
			}
		}
	})
	t.Run("changing", func(t *testing.T) {
		for name, tc := range map[string]struct {
			of    string
			value any
		}{
			"it is added":      {"plain", "11111111-2222-3333-4444-555555555555"},
			"it is changed":    {"own", "other"},
			"it is taken away": {"own", nil},
		} {
			t.Run(name, func(t *testing.T) {
				change := encode(metadata("labels", object{createdBy: tc.value}))
				for _, kind := range kinds {
					changed.check(t, dry(t, user, space).patch(kind, tc.of, change))
					changed.check(t, dry(t, sets, space).patch(kind, tc.of, change))
					changed.check(t, dry(t, nil, space).patch(kind, tc.of, change))
					late.check(t, dry(t, cdi, space).patch(kind, tc.of, change))
					denial{}.check(t, dry(t, controller, space).patch(kind, tc.of, change))
					denial{}.check(t, dry(t, handyman, space).patch(kind, tc.of, change))
					denial{}.check(t, dry(t, user, free).patch(kind, tc.of, change))
					denial{}.check(t, dry(t, cdi, free).patch(kind, tc.of, change))
				}
			})
		}
		changed.check(t, dry(t, nil, space).patch(pvcs, "plain", encode(metadata("labels", object{createdBy: "other"})), "status"))
	})
	t.Run("what stays permitted", func(t *testing.T) {
		for _, kind := range kinds {
			for _, as := range []*controlplane.User{user, cdi} {
				denial{}.check(t, dry(t, as, space).patch(kind, "own", encode(metadata("labels", object{"app": "db"}))))
				denial{}.check(t, dry(t, as, space).patch(kind, "own", encode(metadata("annotations", object{"note": "n"}))))
				denial{}.check(t, dry(t, as, space).delete(kind, "own"))
			}
		}
	})
	t.Run("an approval that exempts CDI", func(t *testing.T) {
		mustPass(t, acting(t, nil, "").patch(allApprovals, "disks", encode(object{"spec": object{"exemptSubjects": []any{
			object{"kind": "ServiceAccount", "namespace": "cdi", "name": "cdi-sa"},
		}}})))
		eventually(t, "CDI is exempt", func() string {
			return denial{}.complaint(dry(t, cdi, space).patch(pvcs, "plain", encode(metadata("labels", object{createdBy: "other"}))))
		})
	})
}
