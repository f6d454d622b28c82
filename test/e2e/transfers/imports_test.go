package transfers_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// template of appliance, with one disk.
const template = `apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: appliance, labels: {approved: "yes"}}
spec:
  parameters: [{name: NAME, required: true}]
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      dataVolumeTemplates:
      - metadata: {name: "${NAME}-root"}
        spec: {source: {pvc: {name: appliance-root}}, storage: {resources: {requests: {storage: 64Mi}}}}
      template:
        spec:
          domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
          volumes: [{name: root, dataVolume: {name: "${NAME}-root"}}]
`

// appliance packs an OVA with the command line, and returns its bytes and those of its disk.
func appliance(t *testing.T) (ova, disk []byte) {
	t.Helper()
	disk = content(9)
	return packed(t, disk), disk
}

// packed packs an OVA with a disk.
func packed(t *testing.T, disk []byte) (ova []byte) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string][]byte{"appliance.yaml": []byte(template), "appliance-root.raw": disk} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "appliance.ova")
	ran, err := stencilctl.Command{Binary: binary, Line: "ova convert", Arguments: []string{folder, "--output-file", path, "-p", "NAME=appliance"}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ran.Code != 0 {
		t.Fatal(ran.Problems)
	}
	if ova, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return ova
}

// TestAnImportThatFailsLeavesNothing tests sources that are not what they should be.
func TestAnImportThatFailsLeavesNothing(t *testing.T) {
	ova, _ := appliance(t)
	url := offer(t, "appliance.ova", ova)
	damaged, forged := bytes.Clone(ova), bytes.Clone(ova)
	damaged[len(ova)/2] ^= 1
	// The digest of the disk in the manifest.
	digit := bytes.Index(forged, []byte(".vmdk)= ")) + len(".vmdk)= ")
	forged[digit] = '0' + (forged[digit]+1)%2
	for name, tc := range map[string]struct{ spec, reason, message string }{
		"another checksum":  {`{"source": {"http": {"url": "` + url + `"}}, "checksum": "sha256:` + strings.Repeat("0", 64) + `"}`, "ChecksumMismatch", "sha256:0000"},
		"a changed byte":    {`{"source": {"http": {"url": "` + offer(t, "appliance.ova", damaged) + `"}}}`, "NotAPackage", "the checksum of the data is wrong"},
		"a changed digest":  {`{"source": {"http": {"url": "` + offer(t, "appliance.ova", forged) + `"}}}`, "ManifestMismatch", ""},
		"no file":           {`{"source": {"http": {"url": "` + url + `x"}}}`, "UnreachableSource", "404"},
		"no package":        {`{"source": {"http": {"url": "` + offer(t, "a.ova", []byte("hello")) + `"}}}`, "NotAPackage", ""},
		"no Secret":         {`{"source": {"s3": {"url": "https://10.1.2.3/a/b.ova", "secretRef": {"name": "bucket"}}}, "timeout": "20s"}`, "TimedOut", "20s"},
		"a private network": {`{"source": {"http": {"url": "http://10.1.2.3/a.ova"}}}`, "SourceDenied", "transfers.allowedNetworks"},
		"sizes of a template": {`{"source": {"http": {"url": "` + url + `"}}, "instancetype": "u1.medium"}`, "Unsupported",
			"spec.instancetype: the package has a template, which decides this itself: create an import without the field, and change the template afterwards"},
		"no claim": {`{"source": {"pvc": {"name": "nowhere", "path": "a.ova"}}, "timeout": "20s"}`, "TimedOut", "20s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.imports(t, "web", tc.spec)
			s.reaches(t, "vmti", "web", "{.status.phase}", "Failed")
			if got := s.condition(t, "vmti", "web"); !strings.HasPrefix(got, tc.reason+": ") || !strings.Contains(got, tc.message) {
				t.Errorf("got %s, want %s and %s", got, tc.reason, tc.message)
			}
			s.nothing(t, s.uid(t, "vmti", "web"))
		})
	}
}

// TestAPlanIsApprovedBeforeDisksAreRead tests that nothing but the description is read until a user has approved it.
func TestAPlanIsApprovedBeforeDisksAreRead(t *testing.T) {
	t.Parallel()
	s := open(t)
	ova, disk := appliance(t)
	s.imports(t, "web", `{"source": {"http": {"url": "`+offer(t, "appliance.ova", ova)+`"}}, "approval": "Manual", "templateLabels": {"os": "linux"}}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Waiting")
	if left := s.does(t, "", "get", "pvc", "-o", "name"); left != "" {
		t.Errorf("there are claims: %s", left)
	}
	refused := harness.Kubectl(t, stencil.Plane, s.owner, "", "patch", "vmti", "web", "-n", s.namespace, "--type=merge", "-p", `{"spec": {"source": {"http": {"url": "https://example.com/other.ova"}}}}`)
	if want := "spec.source cannot be changed, only spec.approvedPlan and spec.eulaAccepted can: create another import"; refused.Code == 0 || !strings.Contains(refused.Stderr, want) {
		t.Errorf("a change of the source: %s", refused.Stderr)
	}
	s.does(t, "", "patch", "vmti", "web", "--type=merge", "-p", `{"spec": {"approvedPlan": "sha256:`+strings.Repeat("0", 64)+`"}}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Waiting")
	if by := s.does(t, "", "get", "vmti", "web", "-o", "jsonpath={.status.plan.verifiedBy}"); by != "SHA-256" {
		t.Errorf("the content is verified by %q", by)
	}
	digest := s.does(t, "", "get", "vmti", "web", "-o", "jsonpath={.status.plan.digest}")
	s.does(t, "", "patch", "vmti", "web", "--type=merge", "-p", `{"spec": {"approvedPlan": "`+digest+`"}}`)
	s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
	// Labels of the package could make an approval select the template.
	if labels := s.does(t, "", "get", "vmt", "web", "-o", "jsonpath={.metadata.labels}"); strings.Contains(labels, "approved") || !strings.Contains(labels, `"os":"linux"`) {
		t.Errorf("the template has labels %s", labels)
	}
	if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
		t.Error("the disk of the VM has other bytes")
	}
	// The template is the owner of its disk.
	s.does(t, "", "delete", "vmti", "web")
	s.does(t, "", "delete", "vm", "web-1", "--wait=false")
	s.does(t, "", "get", "vmt", "web")
	s.does(t, "", "delete", "vmt", "web")
	harness.Within(t, "the disk of the template is gone", limit, func() error {
		return harness.Complaint(s.does(t, "", "get", "pvc", "-o", "name"))
	})
}

// slow serves content with ranges, after the first pieces so slowly that it does not end before it is released.
func slow(t *testing.T, content []byte) (url string, release func()) {
	t.Helper()
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(&throttled{ResponseWriter: w, request: r, released: released}, r, "appliance.ova", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/appliance.ova", func() { close(released) }
}

type throttled struct {
	http.ResponseWriter
	request  *http.Request
	released <-chan struct{}
	pieces   int
}

func (w *throttled) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		piece := p[written:]
		select {
		case <-w.released:
		case <-w.request.Context().Done():
			return written, w.request.Context().Err()
		case <-time.After(100 * time.Millisecond):
			if w.pieces++; w.pieces > 8 {
				piece = piece[:min(len(piece), 1<<10)]
			}
		}
		var n int
		n, err = w.ResponseWriter.Write(piece)
		written += n
	}
	return written, err
}

// TestAnImportSurvives tests what happens to the mover and around it while disks are written.
func TestAnImportSurvives(t *testing.T) {
	ova, disk := appliance(t)
	for name, disturb := range map[string]func(t *testing.T, s *shop, uid string){
		"a killed mover": func(t *testing.T, s *shop, uid string) {
			if err := stencil.Plane.Nodes().Kill(s.namespace, s.mover(t, uid)); err != nil {
				t.Fatal(err)
			}
		},
		"a deleted pod": func(t *testing.T, s *shop, uid string) {
			s.does(t, "", "delete", "pod", s.mover(t, uid), "--wait=false")
		},
		"a deleted Job": func(t *testing.T, s *shop, uid string) {
			s.does(t, "", "delete", "job", "transfer-"+uid, "--wait=false")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			url, release := slow(t, ova)
			s.imports(t, "web", `{"source": {"http": {"url": "`+url+`"}}}`)
			s.reaches(t, "vmti", "web", "{.status.phase}", "Transferring")
			disturb(t, s, s.uid(t, "vmti", "web"))
			release()
			s.reaches(t, "vmti", "web", "{.status.phase}", "Succeeded")
			if got := s.boots(t, "web", "web-1"); !bytes.Equal(got, disk) {
				t.Error("the disk of the VM has other bytes")
			}
		})
	}
	t.Run("not its deletion", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		url, release := slow(t, ova)
		defer release()
		s.imports(t, "web", `{"source": {"http": {"url": "`+url+`"}}}`)
		s.reaches(t, "vmti", "web", "{.status.phase}", "Transferring")
		uid := s.uid(t, "vmti", "web")
		s.does(t, "", "delete", "vmti", "web")
		s.nothing(t, uid)
	})
}

// mover returns the pod that moves the bytes of a transfer.
func (s *shop) mover(t *testing.T, uid string) string {
	t.Helper()
	return s.does(t, "", "get", "pod", "-l", "batch.kubernetes.io/job-name=transfer-"+uid, "-o", "jsonpath={.items[0].metadata.name}")
}

// TestRightsOfTransfers tests users with less than the role edit.
func TestRightsOfTransfers(t *testing.T) {
	t.Parallel()
	s := open(t)
	viewer := harness.User(t, stencil.Plane, s.namespace+"-viewer", gen.Role(s.namespace, "view"))
	const object = `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate%s", "metadata": {"name": "web"}, "spec": %s}`
	imports := fmt.Sprintf(object, "Import", `{"source": {"http": {"url": "https://example.com/a.ova"}}}`)
	exports := fmt.Sprintf(object, "Export", `{"templateRef": {"name": "golden"}, "sourceNamespaces": ["kube-system"]}`)
	for text, want := range map[string]string{imports: "cannot create resource", exports: "cannot create resource"} {
		if got := harness.Kubectl(t, stencil.Plane, viewer, text, "create", "-n", s.namespace, "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("a viewer: %s%s", got.Stdout, got.Stderr)
		}
	}
	got := harness.Kubectl(t, stencil.Plane, s.owner, exports, "create", "-n", s.namespace, "-f", "-")
	if want := "User is not allowed to copy volumes of namespace kube-system, which spec.sourceNamespaces names"; got.Code == 0 || !strings.Contains(got.Stderr, want) {
		t.Errorf("disks of another namespace: %s%s", got.Stdout, got.Stderr)
	}
}

// TestAnArchiveOfKubeVirtIsImported imports what the exporter of KubeVirt 1.9.0 writes for virtctl vmexport download --format=oci.
func TestAnArchiveOfKubeVirtIsImported(t *testing.T) {
	t.Parallel()
	root, err := product.Root()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(root, "oci", "testdata", "kubevirt-1.9.oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	s := open(t)
	s.imports(t, "fedora", `{"source": {"registry": {"image": "`+push(t, archive)+`", "insecure": true}}}`)
	s.reaches(t, "vmti", "fedora", "{.status.phase}", "Succeeded")
	want := make([]byte, 8<<20)
	copy(want, "first sector")
	copy(want[len(want)-512:], "last sector")
	if got := s.boots(t, "fedora", "web"); len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
		t.Errorf("the disk of the VM has other bytes, and %d", len(got))
	}
}
