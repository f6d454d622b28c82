package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// stencilctl runs stencilctl as the owner of the namespaces.
func (s *stage) stencilctl(t *testing.T, arguments ...string) stencilctl.Result {
	t.Helper()
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := stencilctl.Command{Binary: binary, Kubeconfig: s.owner.Kubeconfig, Arguments: arguments}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAVMKeepsItsImage(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	older, newer := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	stands := func(claim, digest string) {
		t.Helper()
		s.apply(t, own, dataSource(own, "fedora", claim))
		s.must(t, "", "annotate", "--overwrite", "datasource", "fedora", "-n", own, "stencil.kubevirt.io/digest="+digest)
	}
	s.apply(t, own, image("disk-1"))
	s.apply(t, own, image("disk-2"))
	stands("disk-1", older)
	s.apply(t, own, template("box", fedora))
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	s.must(t, gen.Manifest(gen.VM("web-1", gen.FromTemplate("box"))), "create", "-n", own, "-f", "-")
	s.eventually(t, "KubeVirt creates the DataVolume", func() error {
		got := s.kubectl(t, s.owner, "", "get", "datavolume", "web-1-root", "-n", own, "-o", "jsonpath={.spec.source.pvc.name}")
		if got.Stdout != "disk-1" {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
	const disk = "disk web-1-root\n  cloned from PersistentVolumeClaim %[1]s/disk-1%[2]s\n  DataSource %[1]s/fedora now stands for PersistentVolumeClaim %[1]s/disk-%[3]s\n"
	if got, want := s.stencilctl(t, "diff", "web-1", "-n", own), fmt.Sprintf(disk, own, " ("+older+")", "1 ("+older+")"); got.Code != 0 || !strings.HasSuffix(got.Output, want) {
		t.Errorf("exit code %d, want 0 with:\n%s\ngot:\n%s%s", got.Code, want, got.Output, got.Problems)
	}
	stands("disk-2", newer)
	want := fmt.Sprintf(disk, own, "", "2 ("+newer+")") + "  the VM keeps the image that it was cloned from; a new VM gets the other one\n"
	if got := s.stencilctl(t, "diff", "web-1", "-n", own); got.Code != 0 || !strings.HasSuffix(got.Output, want) {
		t.Errorf("exit code %d, want 0 with:\n%s\ngot:\n%s%s", got.Code, want, got.Output, got.Problems)
	}
}

func TestStoredTemplatesGetDataSources(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	copies := func(claim string) string {
		return fmt.Sprintf("source: {pvc: {namespace: %s, name: %s}}", own, claim)
	}
	s.apply(t, own, image("disk"))
	s.apply(t, own, dataSource(own, "taken", "disk"))
	s.apply(t, own, template("box", copies("disk")))
	s.apply(t, own, template("conflict", copies("taken")))
	s.apply(t, own, template("empty", blank))
	sources := func(name string) string {
		return s.must(t, "", "get", "vmt", name, "-n", own, "-o", "jsonpath={.spec.virtualMachine.spec.dataVolumeTemplates[0].spec}")
	}
	unchanged := func() {
		t.Helper()
		if got := sources("box"); !strings.Contains(got, `"source":{"pvc"`) {
			t.Errorf("the template was changed: %s", got)
		}
		if got := s.must(t, "", "get", "datasources", "-n", own, "-o", "name"); got != "datasource.cdi.kubevirt.io/taken\n" {
			t.Errorf("DataSources %s", got)
		}
	}

	conflict := fmt.Sprintf("nothing was changed: DataSource %[1]s/taken exists and stands for PersistentVolumeClaim %[1]s/disk, not for PersistentVolumeClaim %[1]s/taken", own)
	if got := s.stencilctl(t, "convert", "--sources", "--stored", "-n", own); got.Code == 0 || !strings.Contains(got.Problems, conflict) || got.Output != "" {
		t.Errorf("exit code %d: %s%s", got.Code, got.Output, got.Problems)
	}
	unchanged()

	done := fmt.Sprintf("DataSource %[1]s/disk created%%[1]s\ntemplate %[1]s/box converted%%[1]s\n", own)
	if got, want := s.stencilctl(t, "convert", "--sources", "--stored", "-n", own, "box", "empty", "--dry-run"), fmt.Sprintf(done, " (server dry run)"); got.Code != 0 || got.Output != want {
		t.Errorf("exit code %d: got %q, want %q: %s", got.Code, got.Output, want, got.Problems)
	}
	unchanged()

	if got, want := s.stencilctl(t, "convert", "--sources", "--stored", "-n", own, "box", "empty"), fmt.Sprintf(done, ""); got.Code != 0 || got.Output != want {
		t.Errorf("exit code %d: got %q, want %q: %s", got.Code, got.Output, want, got.Problems)
	}
	if got := sources("box"); !strings.Contains(got, `"sourceRef":{"kind":"DataSource","name":"disk","namespace":"`+own+`"}`) || strings.Contains(got, `"pvc"`) {
		t.Errorf("the template has %s", got)
	}
	s.becomes(t, own, "box", ".status.volumes[0]", `"kind":"DataSource"`, `"state":"Ready"`)
	if got := s.stencilctl(t, "convert", "--sources", "--stored", "-n", own, "box"); got.Code != 0 || got.Output != "" || !strings.Contains(got.Problems, "nothing to convert") {
		t.Errorf("a second run: exit code %d: %s%s", got.Code, got.Output, got.Problems)
	}
}
