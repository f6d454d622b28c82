package transfers_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vmstencil/stencil/test/harness"
)

// TestAnExportEnds tests exports that have no package any more, or never had one: nothing is left of them.
func TestAnExportEnds(t *testing.T) {
	t.Run("without a template", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "metadata": {"name": "out"}, "spec": {"templateRef": {"name": "golden"}}}`, "create", "-f", "-")
		s.reaches(t, "vmte", "out", "{.status.phase}", "Failed")
		if got, want := s.condition(t, "vmte", "out"), "TemplateUnusable: VirtualMachineTemplate "+s.namespace+"/golden does not exist"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.nothing(t, s.uid(t, "vmte", "out"))
	})
	t.Run("when it expires, and when its Job is deleted", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.machine(t, content(4))
		s.captured(t)
		s.export(t, "brief", `, "ttl": "1m"`)
		s.export(t, "lost", "")
		lost := s.uid(t, "vmte", "lost")
		s.does(t, "", "delete", "job", "transfer-"+lost, "--wait=false")
		s.reaches(t, "vmte", "lost", "{.status.phase} {.status.url}", "Failed ")
		if got, want := s.condition(t, "vmte", "lost"), "MoverFailed: the Job that served the package was deleted: create another export"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.nothing(t, lost)
		s.reaches(t, "vmte", "brief", "{.status.phase} {.status.url}", "Expired ")
		s.nothing(t, s.uid(t, "vmte", "brief"))
	})
}

// TestAnotherManagerContinues kills the manager while disks are written, as many as may be at a time, and one import waits for them.
//
//suite:long
func TestAnotherManagerContinues(t *testing.T) {
	ova, disk := appliance(t)
	url, release := slow(t, ova)
	source := `{"source": {"http": {"url": "` + url + `"}}}`
	var begun []*shop
	for range inProgress {
		s := open(t)
		s.imports(t, "web", source)
		s.reaches(t, "vmti", "web", "{.status.phase}", "Transferring")
		begun = append(begun, s)
	}
	last := open(t)
	last.imports(t, "web", source)
	const progressing = `{.status.conditions[?(@.type=="Progressing")]`
	last.reaches(t, "vmti", "web", progressing+`.reason}`, "Queued")
	last.reaches(t, "vmti", "web", progressing+`.message}`, fmt.Sprintf("waiting until others have ended: %d imports, exports and examinations of captures are in progress, which is the limit", inProgress))
	if err := stencil.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := stencil.StartManager(); err != nil {
		t.Fatal(err)
	}
	// It is newer than the one that waits, so that the manager has seen both when this one waits.
	newer := open(t)
	newer.imports(t, "web", source)
	newer.reaches(t, "vmti", "web", progressing+`.reason}`, "Queued")
	last.reaches(t, "vmti", "web", "{.status.phase}", "Pending")
	newer.does(t, "", "delete", "vmti", "web")
	release()
	for _, s := range append(begun, last) {
		s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
	}
	if got := last.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
		t.Error("the disk of the VM has other bytes")
	}
}

// TestAFileInAClaimIsImported tests a source that no network is needed for, and a licence.
func TestAFileInAClaimIsImported(t *testing.T) {
	t.Parallel()
	s := open(t)
	ova, disk := appliance(t)
	s.does(t, `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "drop"},
		"spec": {"storageClassName": "csi", "volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`, "create", "-f", "-")
	s.reaches(t, "pvc", "drop", "{.status.phase}", "Bound")
	volume, _, err := stencil.Plane.CSI().Path(t.Context(), s.namespace, "drop")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(volume, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volume, "images", "app.ova"), ova, 0o600); err != nil {
		t.Fatal(err)
	}
	s.imports(t, "web", `{"source": {"pvc": {"name": "drop", "path": "images/app.ova"}}, "storage": [{"disk": "*", "storageClassName": "csi", "volumeMode": "Block", "accessModes": ["ReadWriteMany"]}]}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
	if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
		t.Error("the disk of the VM has other bytes")
	}
	if modes := s.does(t, "", "get", "pvc", "-o", "jsonpath={.items[*].spec.volumeMode}"); !strings.Contains(modes, "Block") {
		t.Errorf("the disks have the volume modes %s", modes)
	}
	s.imports(t, "outside", `{"source": {"pvc": {"name": "drop", "path": "../../../etc/passwd"}}}`)
	s.reaches(t, "vmti", "outside", "{.status.phase}", "Failed")
	if got := harness.Must(t, stencil.Plane, nil, "", "get", "vmti", "outside", "-n", s.namespace, "-o", "jsonpath={.status}").Stdout; strings.Contains(got, "root:") {
		t.Errorf("the status has the content of a file outside of the volume: %s", got)
	}
}

// TestAnExportToARegistry writes the package to a registry with credentials, which a user needs to be permitted to read.
func TestAnExportToARegistry(t *testing.T) {
	t.Parallel()
	s := open(t)
	disk := content(7)
	s.machine(t, disk)
	s.captured(t)
	image := store(t, "ada", "hidden")
	s.does(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"}, "stringData": {"username": "ada", "password": "hidden"}}`, "create", "-f", "-")
	for name, tc := range map[string]struct{ spec, want string }{
		"an OVA":                 {`"format": "OVA", "target": {"registry": {"image": "` + image + `"}}`, "format must be OCI where target is a registry"},
		"a ttl":                  {`"format": "OCI", "ttl": "1h", "target": {"registry": {"image": "` + image + `"}}`, "ttl must not be set where target is a registry, which keeps the package"},
		"a digest":               {`"format": "OCI", "target": {"registry": {"image": "a/b@sha256:1"}}`, "must have a tag and no digest"},
		"an unknown compression": {`"compression": "Strong"`, `spec.compression: Unsupported value: "Strong": supported values: "Fast", "Best", "None"`},
	} {
		got := harness.Kubectl(t, stencil.Plane, s.owner, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "metadata": {"name": "no"},
			"spec": {"templateRef": {"name": "golden"}, `+tc.spec+`}}`, "create", "-f", "-", "-n", s.namespace)
		if got.Code == 0 || !strings.Contains(got.Stderr, tc.want) {
			t.Errorf("%s: %s, want %q", name, got.Stderr, tc.want)
		}
	}
	s.exports(t, "denied", `, "format": "OCI", "target": {"registry": {"image": "`+image+`", "insecure": true}}`)
	s.reaches(t, "vmte", "denied", "{.status.phase}", "Failed")
	if got, want := s.condition(t, "vmte", "denied"), "TargetDenied: the registry answers 401: check the image and the credentials of the target"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.nothing(t, s.uid(t, "vmte", "denied"))
	s.exports(t, "out", `, "format": "OCI", "target": {"registry": {"image": "`+image+`", "insecure": true, "secretRef": {"name": "registry"}}}`)
	s.reaches(t, "vmte", "out", "{.status.phase}", "Succeeded")
	s.nothing(t, s.uid(t, "vmte", "out"))
	pushed := s.does(t, "", "get", "vmte", "out", "-o", "jsonpath={.status.image}")
	if got, want := s.condition(t, "vmte", "out"), "Reconciled: the registry has "+pushed; got != want || !strings.HasPrefix(pushed, strings.TrimSuffix(image, ":v1")+"@sha256:") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.does(t, "", "delete", "vmt", "golden")
	s.does(t, "", "delete", "vmtr", "golden", "--ignore-not-found")
	harness.Within(t, "the disks of the template are gone", limit, func() error {
		return harness.Complaint(s.does(t, "", "get", "vmt,pvc", "-o", "name"))
	})
	s.imports(t, "again", `{"templateName": "golden", "source": {"registry": {"image": "`+pushed+`", "insecure": true, "secretRef": {"name": "registry"}}}}`)
	s.reaches(t, "vmti", "again", "{.status.phase}", "Succeeded")
	if got := s.boots(t, "golden", "web-2"); !bytes.Equal(got, disk) {
		t.Error("the disk of the new VM has other bytes")
	}
}

// store is a registry that needs a username and a password. It returns an image in it.
func store(t *testing.T, username, password string) string {
	t.Helper()
	stored := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != username || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="store"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		stored.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/templates/golden:v1"
}
