package diff

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

func TestDisksShowTheirImages(t *testing.T) {
	const (
		fromSource  = `{sourceRef: {kind: DataSource, namespace: golden, name: fedora}}`
		toOld       = `{spec: {source: {pvc: {namespace: golden, name: fedora-1}}}}`
		standsNew   = `{metadata: {annotations: {stencil.kubevirt.io/digest: "sha256:b"}}, spec: {source: {pvc: {namespace: golden, name: fedora-2}}}}`
		imported    = `{metadata: {annotations: {cdi.kubevirt.io/storage.import.endpoint: "docker://quay.io/fedora@sha256:a"}}}`
		kept        = "\n  the VM keeps the image that it was cloned from; a new VM gets the other one"
		disk        = "disk web-root\n  cloned from "
		clonedOld   = disk + "PersistentVolumeClaim golden/fedora-1"
		standsLines = "\n  DataSource golden/fedora now stands for PersistentVolumeClaim golden/fedora-"
	)
	for _, tc := range []struct {
		name    string
		from    string
		objects map[string]string
		denied  string
		want    string
	}{
		{
			name: "an older image", from: fromSource,
			objects: map[string]string{"datavolumes shop/web-root": toOld, "persistentvolumeclaims golden/fedora-1": imported, "datasources golden/fedora": standsNew},
			want:    clonedOld + " (sha256:a)" + standsLines + "2 (sha256:b)" + kept,
		},
		{
			name: "the same image", from: fromSource,
			objects: map[string]string{
				"datavolumes shop/web-root": toOld, "persistentvolumeclaims golden/fedora-1": `{}`,
				"datasources golden/fedora": `{metadata: {annotations: {stencil.kubevirt.io/digest: "sha256:a"}}, spec: {source: {pvc: {name: fedora-1}}}}`,
			},
			want: clonedOld + " (sha256:a)" + standsLines + "1 (sha256:a)",
		},
		{
			name: "the same digest in another claim", from: fromSource,
			objects: map[string]string{
				"datavolumes shop/web-root": toOld, "persistentvolumeclaims golden/fedora-1": `{metadata: {annotations: {stencil.kubevirt.io/digest: "sha256:b"}}}`, "datasources golden/fedora": standsNew,
			},
			want: clonedOld + " (sha256:b)" + standsLines + "2 (sha256:b)",
		},
		{
			name: "a DataSource that stands for another", from: fromSource,
			objects: map[string]string{
				"datavolumes shop/web-root": toOld, "persistentvolumeclaims golden/fedora-1": `{}`,
				"datasources golden/fedora": `{spec: {source: {dataSource: {name: fedora-amd64}}}}`, "datasources golden/fedora-amd64": standsNew,
			},
			want: clonedOld + standsLines + "2 (sha256:b)" + kept,
		},
		{
			name: "a DataVolume that CDI has deleted", from: fromSource,
			objects: map[string]string{
				"persistentvolumeclaims shop/web-root":   `{metadata: {annotations: {k8s.io/CloneRequest: golden/fedora-1}}}`,
				"persistentvolumeclaims golden/fedora-1": imported, "datasources golden/fedora": standsNew,
			},
			want: clonedOld + " (sha256:a)" + standsLines + "2 (sha256:b)" + kept,
		},
		{
			name: "objects that may not be read", from: fromSource, denied: "golden",
			objects: map[string]string{"datavolumes shop/web-root": toOld},
			want: clonedOld + "\n  DataSource golden/fedora now stands for unknown" +
				"\n  not read: PersistentVolumeClaim golden/fedora-1, which you may not get\n  not read: DataSource golden/fedora, which you may not get",
		},
		{
			name: "objects that do not exist", from: fromSource,
			want: disk + "unknown\n  DataSource golden/fedora now stands for unknown\n  not read: DataVolume shop/web-root, which does not exist" +
				"\n  not read: PersistentVolumeClaim shop/web-root, which does not exist\n  not read: DataSource golden/fedora, which does not exist",
		},
		{
			name: "a snapshot without a DataSource", from: `{source: {snapshot: {namespace: golden, name: daily}}}`,
			objects: map[string]string{"datavolumes shop/web-root": `{spec: {source: {snapshot: {namespace: golden, name: daily}}}}`, "volumesnapshots golden/daily": `{}`},
			want:    disk + "VolumeSnapshot golden/daily",
		},
		{
			name: "a digest that would control the terminal", from: fromSource,
			objects: map[string]string{
				"datavolumes shop/web-root": toOld, "persistentvolumeclaims golden/fedora-1": `{metadata: {annotations: {stencil.kubevirt.io/digest: "\e[2Jx"}}}`, "datasources golden/fedora": standsNew,
			},
			want: clonedOld + " (\uFFFD[2Jx)" + standsLines + "2 (sha256:b)" + kept,
		},
		{name: "an empty disk", from: `{source: {blank: {}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := object(t, `{metadata: {namespace: shop, name: web}, spec: {dataVolumeTemplates: [{metadata: {name: web-root}, spec: `+tc.from+`}]}}`)
			read, errs := machine.Read(vm)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			found, err := disks(t.Context(), func(_ context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
				if namespace == tc.denied {
					return nil, apierrors.NewForbidden(resource.GroupResource(), name, errors.New("no"))
				}
				if text, is := tc.objects[resource.Resource+" "+namespace+"/"+name]; is {
					return object(t, text), nil
				}
				return nil, nil
			}, read)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for i := range found {
				lines = append(lines, found[i].lines()...)
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var made map[string]any
	if err := yaml.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	return made
}
