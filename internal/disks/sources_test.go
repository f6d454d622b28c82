package disks_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/disks"
)

const sha = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestSources(t *testing.T) {
	const (
		untagged    = "the image is not named by its digest, as in NAME@sha256:…"
		replaceable = "what it holds can be replaced at any time"
		volumes     = "spec.template.spec.volumes"
		templates   = "spec.dataVolumeTemplates"
	)
	filled := func(spec string) string {
		return fmt.Sprintf(`{"dataVolumeTemplates": [{"metadata": {"name": "web"}, "spec": %s}]}`, spec)
	}
	with := func(volume string) string {
		return fmt.Sprintf(`{"dataVolumeTemplates": [{"metadata": {"name": "web"}, "spec": {"source": {"blank": {}}}}], "template": {"spec": {"volumes": [%s]}}}`, volume)
	}
	for _, tc := range []struct {
		name, spec string
		want       []disks.Source
	}{
		{name: "no disk", spec: `{}`},
		{name: "a blank disk", spec: filled(`{"source": {"blank": {}}, "storage": {}}`)},
		{name: "a DataSource", spec: filled(`{"sourceRef": {"kind": "DataSource", "namespace": "golden", "name": "fedora"}}`), want: []disks.Source{
			{Field: templates + "[0].spec.sourceRef", Kind: "DataSource", Namespace: "golden", Name: "fedora"},
		}},
		{name: "a DataSource of the namespace", spec: filled(`{"sourceRef": {"kind": "DataSource", "name": "fedora"}}`), want: []disks.Source{
			{Field: templates + "[0].spec.sourceRef", Kind: "DataSource", Namespace: "team-a", Name: "fedora"},
		}},
		{name: "another reference", spec: filled(`{"sourceRef": {"kind": "Else", "name": "fedora"}}`), want: []disks.Source{
			{Field: templates + "[0].spec.sourceRef", Problem: `kind "Else" is not known`},
		}},
		{name: "a claim and a snapshot", spec: filled(`{"source": {"pvc": {"namespace": "golden", "name": "a"}, "snapshot": {"name": "b"}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.pvc", Kind: "PersistentVolumeClaim", Namespace: "golden", Name: "a"},
			{Field: templates + "[0].spec.source.snapshot", Kind: "VolumeSnapshot", Namespace: "team-a", Name: "b"},
		}},
		{name: "an image by its digest", spec: filled(`{"source": {"registry": {"url": "docker://images.example.com/fedora@` + sha + `"}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.registry.url", Digest: sha},
		}},
		{name: "an image by its tag", spec: filled(`{"source": {"registry": {"url": "docker://images.example.com/fedora:43"}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.registry.url", Problem: untagged},
		}},
		{name: "a digest that is cut off", spec: filled(`{"source": {"registry": {"url": "docker://images.example.com/fedora@sha256:0123"}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.registry.url", Problem: untagged},
		}},
		{name: "an image stream", spec: filled(`{"source": {"registry": {"imageStream": "fedora", "url": "docker://x@` + sha + `"}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.registry", Problem: replaceable},
		}},
		{name: "a file, an upload and what is not known", spec: filled(`{"source": {"http": {"url": "https://x"}, "upload": {}, "zebra": {}}}`), want: []disks.Source{
			{Field: templates + "[0].spec.source.http", Problem: replaceable}, {Field: templates + "[0].spec.source.upload", Problem: replaceable},
			{Field: templates + "[0].spec.source.zebra", Problem: replaceable},
		}},
		{name: "what the storage copies", spec: filled(`{"storage": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}, "pvc": {"dataSourceRef": {"kind": "VolumeCloneSource", "name": "b"}, "volumeName": "pv"}}`), want: []disks.Source{
			{Field: templates + "[0].spec.storage.dataSource", Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "a"},
			{Field: templates + "[0].spec.pvc.dataSourceRef", Problem: `kind "VolumeCloneSource" is not known`},
			{Field: templates + "[0].spec.pvc.volumeName", Problem: "it names a PersistentVolume"},
		}},
		{name: "volumes of the VM itself", spec: with(`{"name": "a", "dataVolume": {"name": "web"}}, {"name": "b", "persistentVolumeClaim": {"claimName": "web"}}, {"name": "c", "cloudInitNoCloud": {}}, {"name": "d", "emptyDisk": {}}`)},
		{name: "volumes that exist", spec: with(`{"name": "a", "dataVolume": {"name": "x"}}, {"name": "b", "persistentVolumeClaim": {"claimName": "y"}}, {"name": "c", "ephemeral": {"persistentVolumeClaim": {"claimName": "z"}}}`), want: []disks.Source{
			{Field: volumes + "[0].dataVolume.name", Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "x"},
			{Field: volumes + "[1].persistentVolumeClaim.claimName", Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "y"},
			{Field: volumes + "[2].ephemeral.persistentVolumeClaim.claimName", Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "z"},
		}},
		{name: "images of volumes", spec: with(`{"name": "a", "containerDisk": {"image": "images.example.com/x@` + sha + `"}}, {"name": "b", "containerDisk": {"image": "x"}}`), want: []disks.Source{
			{Field: volumes + "[0].containerDisk.image", Digest: sha}, {Field: volumes + "[1].containerDisk.image", Problem: untagged},
		}},
		{name: "a file of the node and what is not known", spec: with(`{"name": "a", "hostDisk": {"path": "/x"}}, {"name": "b", "zebra": {}}`), want: []disks.Source{
			{Field: volumes + "[0].hostDisk", Problem: replaceable}, {Field: volumes + "[1].zebra", Problem: replaceable},
		}},
		{name: "a kernel", spec: `{"template": {"spec": {"domain": {"firmware": {"kernelBoot": {"container": {"image": "k@` + sha + `"}}}}}}}`, want: []disks.Source{
			{Field: "spec.template.spec.domain.firmware.kernelBoot.container.image", Digest: sha},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, disks.Sources(decode(t, tc.spec), "team-a")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if a := (disks.Source{Field: "a", Name: "x"}); !a.Same(disks.Source{Field: "b", Name: "x"}) || a.Same(disks.Source{Field: "a", Name: "y"}) {
		t.Error("the field counts, or the name does not")
	}
}

func TestIdentity(t *testing.T) {
	answers := map[string]string{
		"datasources/fedora":  `{"pvc": {"name": "fedora-2"}}`,
		"datasources/latest":  `{"dataSource": {"namespace": "golden", "name": "fedora"}}`,
		"datasources/third":   `{"dataSource": {"namespace": "golden", "name": "latest"}}`,
		"datasources/lost":    `{"pvc": {"name": "lost"}}`,
		"datasources/empty":   `{}`,
		"datasources/both":    `{"pvc": {"name": "fedora-2"}, "snapshot": {"name": "s"}}`,
		"datasources/snapped": `{"snapshot": {"namespace": "other", "name": "s"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		path := strings.Split(r.URL.Path, "/")
		resource, name := path[len(path)-2], path[len(path)-1]
		source, found := answers[resource+"/"+name]
		switch {
		case name == "broken":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`)
		case name == "lost" && resource != "datasources" || resource == "datasources" && !found:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case found:
			_, _ = fmt.Fprintf(w, `{"kind":"DataSource","apiVersion":"cdi.kubevirt.io/v1beta1","metadata":{"name":%q},"spec":{"source":%s},"status":{"source":{"pvc":{"name":"older"}}}}`, name, source)
		default:
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"uid":"uid-of-%s-%s"}}`, name, resource, name)
		}
	}))
	defer server.Close()
	api, err := disks.NewAPIServer(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		kind, name               string
		uid, description, failed string
	}{
		{kind: "PersistentVolumeClaim", name: "a", uid: "uid-of-persistentvolumeclaims-a", description: "PersistentVolumeClaim golden/a with UID uid-of-persistentvolumeclaims-a"},
		{kind: "VolumeSnapshot", name: "s", uid: "uid-of-volumesnapshots-s", description: "VolumeSnapshot golden/s with UID uid-of-volumesnapshots-s"},
		{kind: "PersistentVolumeClaim", name: "lost", description: "PersistentVolumeClaim golden/lost does not exist"},
		{kind: "DataSource", name: "fedora", uid: "uid-of-persistentvolumeclaims-fedora-2", description: "PersistentVolumeClaim golden/fedora-2 with UID uid-of-persistentvolumeclaims-fedora-2"},
		{kind: "DataSource", name: "snapped", uid: "uid-of-volumesnapshots-s", description: "VolumeSnapshot other/s with UID uid-of-volumesnapshots-s"},
		{kind: "DataSource", name: "latest", uid: "uid-of-persistentvolumeclaims-fedora-2", description: "PersistentVolumeClaim golden/fedora-2 with UID uid-of-persistentvolumeclaims-fedora-2"},
		{kind: "DataSource", name: "third", description: "DataSource golden/fedora names another, and CDI follows one"},
		{kind: "DataSource", name: "lost", description: "PersistentVolumeClaim golden/lost does not exist"},
		{kind: "DataSource", name: "empty", description: "DataSource golden/empty names no source"},
		{kind: "DataSource", name: "both", description: "DataSource golden/both names several sources"},
		{kind: "DataSource", name: "gone", description: "DataSource golden/gone does not exist"},
		{kind: "DataSource", name: "broken", failed: "looking for DataSource golden/broken: no"},
		{kind: "PersistentVolumeClaim", name: "broken", failed: "looking for PersistentVolumeClaim golden/broken: no"},
	} {
		t.Run(tc.kind+" "+tc.name, func(t *testing.T) {
			uid, description, err := api.Identity(t.Context(), disks.Source{Kind: tc.kind, Namespace: "golden", Name: tc.name})
			failed := ""
			if err != nil {
				failed = err.Error()
			}
			if uid != tc.uid || description != tc.description || failed != tc.failed {
				t.Errorf("got %q, %q, %q; want %q, %q, %q", uid, description, failed, tc.uid, tc.description, tc.failed)
			}
		})
	}
}
