// Package transfers_test imports templates from packages and exports them, as users with the role edit. KubeVirt's and CDI's own controllers run, storage with
// bytes and the node are simulated, and movers are processes of this machine that run the product's own program.
package transfers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/packages"
	"github.com/vmstencil/stencil/test/platform"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// limit bounds each wait for a transfer.
const limit = 3 * time.Minute

var stencil *platform.Platform

// inProgress is the limit of imports and exports at a time.
const inProgress = 3

// domain of URLs outside of the cluster.
const domain = "exports.example.com"

func TestMain(m *testing.M) {
	harness.Main(m, func(ctx context.Context) (stop func() error, err error) {
		if stencil, err = platform.Start(ctx, platform.Options{
			KubeVirt: true, ControllerManager: true, CDI: true, Transfers: true, Log: os.Stderr,
			Values: map[string]any{"transfers": map[string]any{"limit": inProgress, "ingress": map[string]any{
				"domain": domain, "annotations": map[string]any{"example.com/passthrough": "yes, please"},
			}}},
		}); err != nil {
			return nil, err
		}
		return stencil.Stop, nil
	})
}

// shop is a namespace with a user who has the role edit in it.
type shop struct {
	namespace string
	owner     *controlplane.User
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{namespace: harness.Namespace(t, stencil.Plane, "shop")}
	s.owner = harness.User(t, stencil.Plane, s.namespace+"-owner", gen.Role(s.namespace, "edit"))
	return s
}

// does runs kubectl as the owner in the namespace, requires success, and returns the standard output.
func (s *shop) does(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, stencil.Plane, s.owner, stdin, append(arguments, "-n", s.namespace)...).Stdout
}

// content of a disk of 256 MiB with data at a few places, so that most of it is a hole.
func content(seed uint64) []byte {
	disk := make([]byte, 64<<20)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	for _, at := range []int{0, 5 << 20, 33<<20 + 4096, 64<<20 - 512} {
		_, _ = random.Read(disk[at:min(at+1<<20, len(disk))])
	}
	return disk
}

// machine creates the VM web with a disk of this content, and returns when it is filled.
func (s *shop) machine(t *testing.T, disk []byte) {
	t.Helper()
	s.does(t, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"runStrategy": "Halted",
		"dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "64Mi"}}}}}],
		"template": {"spec": {
			"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
			"volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}]}}}}`, "create", "-f", "-")
	s.reaches(t, "datavolume", "web-root", "{.status.phase}", "Succeeded")
	if err := stencil.Plane.CSI().WriteDisk(t.Context(), s.namespace, "web-root", bytes.NewReader(disk)); err != nil {
		t.Fatal(err)
	}
}

// reaches waits until a field of an object has a value.
func (s *shop) reaches(t *testing.T, resource, name, path, want string) {
	t.Helper()
	harness.Within(t, fmt.Sprintf("%s %s has %s", resource, name, want), limit, func() error {
		got := harness.Kubectl(t, stencil.Plane, s.owner, "", "get", resource, name, "-n", s.namespace, "-o", "jsonpath="+path)
		if got.Code != 0 || got.Stdout != want {
			return harness.Complaint(got.Stdout + got.Stderr + "\n" + s.describe(t, resource, name))
		}
		return nil
	})
}

func (s *shop) describe(t *testing.T, resource, name string) string {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, nil, "", "get", resource, name, "-n", s.namespace, "-o", "jsonpath={.status}").Stdout
}

// captured makes the template golden of the VM, and deletes the VM with its disks.
func (s *shop) captured(t *testing.T) {
	t.Helper()
	s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"name": "golden"},
		"spec": {"virtualMachineRef": {"namespace": "`+s.namespace+`", "name": "web"}}}`, "create", "-f", "-")
	s.reaches(t, "vmtr", "golden", `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	s.does(t, "", "delete", "vm", "web", "--wait=false")
	s.gone(t, "pvc", "web-root")
}

func (s *shop) gone(t *testing.T, resource, name string) {
	t.Helper()
	harness.Within(t, fmt.Sprintf("%s %s is gone", resource, name), limit, func() error {
		if left := harness.Must(t, stencil.Plane, nil, "", "get", resource, name, "-n", s.namespace, "--ignore-not-found", "-o", "name").Stdout; left != "" {
			return harness.Complaint(left)
		}
		return nil
	})
}

// removed deletes the template golden, and returns when its disks are gone.
func (s *shop) removed(t *testing.T) {
	t.Helper()
	s.does(t, "", "delete", "vmt", "golden")
	s.does(t, "", "delete", "vmtr", "golden", "--ignore-not-found")
	harness.Within(t, "the disks of the template are gone", limit, func() error {
		return harness.Complaint(s.does(t, "", "get", "vmt,pvc", "-o", "name"))
	})
}

// exports creates an export of the template golden, with further fields of its spec.
func (s *shop) exports(t *testing.T, name, spec string) {
	t.Helper()
	s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "metadata": {"name": "`+name+`"},
		"spec": {"templateRef": {"name": "golden"}`+spec+`}}`, "create", "-f", "-")
}

// exported is the package of an export.
type exported struct{ *packages.Package }

// export exports the template golden, and returns what can be downloaded.
func (s *shop) export(t *testing.T, name, spec string) *exported {
	t.Helper()
	s.exports(t, name, spec)
	s.reaches(t, "vmte", name, "{.status.phase}", "Ready")
	offered, err := packages.Of(t.Context(), stencil.Plane, s.owner, s.namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return &exported{offered}
}

// get requests the package with a header.
func (e *exported) get(t *testing.T, header http.Header) *packages.Response {
	t.Helper()
	response, err := e.Get(t.Context(), header)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// authorized returns the header that permits a download, with more fields.
func (e *exported) authorized(more ...string) http.Header {
	header := e.Authorized()
	for i := 0; i+1 < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

// download downloads the package in two ranges, as a client whose connection was cut does, and verifies its digest.
func (e *exported) download(t *testing.T) []byte {
	t.Helper()
	half := e.Size / 2
	first := e.get(t, e.authorized("Range", fmt.Sprintf("bytes=0-%d", half-1)))
	second := e.get(t, e.authorized("Range", fmt.Sprintf("bytes=%d-", half), "If-Range", first.Header.Get("ETag")))
	if first.Code != http.StatusPartialContent || second.Code != http.StatusPartialContent {
		t.Fatalf("ranges: %d, %d", first.Code, second.Code)
	}
	whole := slices.Concat(first.Body, second.Body)
	if sum := sha256.Sum256(whole); e.Digest != "sha256:"+hex.EncodeToString(sum[:]) || int64(len(whole)) != e.Size {
		t.Fatalf("%d bytes with %s, and %d bytes with %s in the status", len(whole), hex.EncodeToString(sum[:]), e.Size, e.Digest)
	}
	return whole
}

// offer serves files of a folder, and returns the URL of it.
func offer(t *testing.T, name string, archive []byte) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), archive, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	return server.URL + "/" + url.PathEscape(name)
}

// push pushes an archive with the command line to a registry, and returns the image.
func push(t *testing.T, archive []byte) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "golden.oci.tar")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	image := strings.TrimPrefix(server.URL, "http://") + "/templates/golden:v1"
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran, err := stencilctl.Command{Binary: binary, Line: "oci push", Arguments: []string{path, "oci://" + image, "--plain-http"}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ran.Code != 0 {
		t.Fatal(ran.Problems)
	}
	return image
}

// imports creates an import with a spec.
func (s *shop) imports(t *testing.T, name, spec string) {
	t.Helper()
	s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateImport", "metadata": {"name": "`+name+`"}, "spec": `+spec+`}`, "create", "-f", "-")
}

// condition returns reason and message of the condition Ready.
func (s *shop) condition(t *testing.T, resource, name string) string {
	t.Helper()
	return s.does(t, "", "get", resource, name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
}

// boots creates a VM from a template, and returns the bytes of its disk.
func (s *shop) boots(t *testing.T, template, name string) []byte {
	t.Helper()
	s.does(t, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "`+name+`", "annotations": {"template.kubevirt.io/template-ref": "`+template+`"}},
		"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}`, "create", "-f", "-")
	volume := s.does(t, "", "get", "vm", name, "-o", "jsonpath={.spec.template.spec.volumes[0].dataVolume.name}")
	s.reaches(t, "datavolume", volume, "{.status.phase}", "Succeeded")
	path, err := stencil.Plane.CSI().DiskPath(t.Context(), s.namespace, volume)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return disk
}

// nothing requires that no object of a transfer is left but those that are named.
func (s *shop) nothing(t *testing.T, uid string) {
	t.Helper()
	harness.Within(t, "nothing of the transfer is left", limit, func() error {
		left := harness.Must(t, stencil.Plane, nil, "", "get", "jobs,pods,secrets,services,ingresses,networkpolicies,pvc,datavolumes,vmt", "-n", s.namespace,
			"-l", "template.kubevirt.io/transfer="+uid, "-o", "name").Stdout
		return harness.Complaint(left)
	})
}

func (s *shop) uid(t *testing.T, resource, name string) string {
	t.Helper()
	return s.does(t, "", "get", resource, name, "-o", "jsonpath={.metadata.uid}")
}
