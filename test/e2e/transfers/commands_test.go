package transfers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/packages"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// readsExports are the permissions to follow an export and to read its token.
var readsExports = []rbacv1.PolicyRule{
	{APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplateexports"}, Verbs: []string{"get"}},
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
}

// runs runs stencilctl in a folder as a user, in the namespace.
func (s *shop) runs(t *testing.T, kubeconfig, folder, line string, environment ...string) stencilctl.Result {
	t.Helper()
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran, err := stencilctl.Command{Binary: binary, Kubeconfig: kubeconfig, Line: line + " -n " + s.namespace, Folder: folder, Environment: environment}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

// offers lets the API server reach the only export of the namespace when it is ready.
func (s *shop) offers(t *testing.T) {
	t.Helper()
	harness.Within(t, "an export is offered", limit, func() error {
		name := strings.TrimSpace(s.does(t, "", "get", "vmte", "-o", "jsonpath={.items[*].metadata.name}"))
		of, err := packages.Of(t.Context(), stencil.Plane, nil, s.namespace, name)
		if err != nil {
			return err
		}
		return packages.Offer(t.Context(), stencil.Plane, s.namespace, of)
	})
}

// receives lets the API server reach the only import of the namespace that waits for its package, and returns its name.
func (s *shop) receives(t *testing.T) (name string) {
	t.Helper()
	harness.Within(t, "an import waits for its package", limit, func() error {
		name = strings.TrimSpace(s.does(t, "", "get", "vmti", "-o", `jsonpath={.items[?(@.status.phase=="Uploading")].metadata.name}`))
		to, err := packages.For(t.Context(), stencil.Plane, s.owner, s.namespace, name)
		if err != nil {
			return err
		}
		return packages.Offer(t.Context(), stencil.Plane, s.namespace, to)
	})
	return name
}

// TestCommandsExportAndImport downloads a template through the API server with the command line, deletes it, and imports it again.
func TestCommandsExportAndImport(t *testing.T) {
	t.Parallel()
	s := open(t)
	disk := content(11)
	s.machine(t, disk)
	s.captured(t)

	folder := t.TempDir()
	exported := make(chan stencilctl.Result, 1)
	go func() {
		exported <- s.runs(t, s.owner.Kubeconfig, folder, "ova export golden golden.ova --keep --poll-interval 200ms --through-api-server")
	}()
	s.offers(t)
	if ran := <-exported; ran.Code != 0 || !strings.HasPrefix(ran.Output, "golden.ova written: ") {
		t.Fatalf("%+v", ran)
	}
	export := s.does(t, "", "get", "vmte", "-o", "jsonpath={.items[*].metadata.name}")
	uid := s.uid(t, "vmte", export)

	// A user who may read the export and its Secret only: the API server passes nothing on for them.
	reader := harness.User(t, stencil.Plane, s.namespace+"-reader", gen.Permits(s.namespace, readsExports...))
	denied := s.runs(t, reader.Kubeconfig, folder, "ova export --export "+export+" other.ova --through-api-server")
	if denied.Code != 3 || !strings.Contains(denied.Problems, `cannot get resource "services/proxy"`) {
		t.Errorf("without the permission: %+v", denied)
	}

	if again := s.runs(t, s.owner.Kubeconfig, folder, "ova export --export "+export+" again.ova --through-api-server"); again.Code != 0 {
		t.Errorf("the same export: %+v", again)
	}
	s.gone(t, "vmte", export)
	s.nothing(t, uid)
	whole, err := os.ReadFile(filepath.Join(folder, "golden.ova"))
	if err != nil {
		t.Fatal(err)
	}
	if same, err := os.ReadFile(filepath.Join(folder, "again.ova")); err != nil || !bytes.Equal(whole, same) {
		t.Errorf("the second download differs: %v", err)
	}

	s.removed(t)
	url := offer(t, "golden.ova", whole)
	wrong := s.runs(t, s.owner.Kubeconfig, folder, "ova import "+url+" --poll-interval 200ms --checksum sha256:"+strings.Repeat("0", 64))
	if wrong.Code != 1 || !strings.Contains(wrong.Problems, "Ready False (ChecksumMismatch)") {
		t.Errorf("another checksum: %+v", wrong)
	}
	imported := make(chan stencilctl.Result, 1)
	go func() {
		imported <- s.runs(t, s.owner.Kubeconfig, folder, "ova import golden.ova --poll-interval 200ms --verification Require --through-api-server")
	}()
	name := s.receives(t)
	made := <-imported
	if made.Code != 0 || made.Output != "virtualmachinetemplate.template.kubevirt.io "+s.namespace+"/golden ready\n" {
		t.Fatalf("%+v", made)
	}
	if got := s.boots(t, "golden", "web-2"); !bytes.Equal(got, disk) {
		t.Error("the disk of the new VM has other bytes")
	}
	s.leaves(t, name)
}

// leaves requires that nothing is left of an import that has succeeded but the template and its disks.
func (s *shop) leaves(t *testing.T, name string) {
	t.Helper()
	uid := s.uid(t, "vmti", name)
	harness.Within(t, "only the template and its disk are left", limit, func() error {
		got := harness.Must(t, stencil.Plane, nil, "", "get", "vmt,pvc,job,pod,secret,service,ingress,networkpolicy", "-n", s.namespace, "-l", "template.kubevirt.io/transfer="+uid, "-o", "name").Stdout
		if lines := strings.Fields(got); len(lines) != 2 || !strings.HasPrefix(lines[0], "virtualmachinetemplate.") || !strings.HasPrefix(lines[1], "persistentvolumeclaim/") || strings.Contains(got, "-package") {
			return harness.Complaint(got)
		}
		return nil
	})
}
