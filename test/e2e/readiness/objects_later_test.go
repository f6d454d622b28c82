package readiness_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// TestDiffShowsWhatBecameOfTheObjects changes and deletes objects of a VM, and compares them with the template, as the user.
func TestDiffShowsWhatBecameOfTheObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	binary, err := stencilctl.Binary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", withObjects(gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInitSecret("cloudinit", "${NAME}-login")))...)))
	l.create(t, "web", "complete")
	l.released(t, "web")
	compare := func(user *controlplane.User, code int, want ...string) {
		t.Helper()
		got, err := stencilctl.Command{Binary: binary, Kubeconfig: user.Kubeconfig, Line: "diff web -n " + l.team}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if output := got.Output + got.Problems; got.Code != code || output != strings.Join(want, "\n")+"\n" {
			t.Errorf("exit code %d:\n%s\nwant %d:\n%s", got.Code, output, code, strings.Join(want, "\n"))
		}
	}
	// A user with the role edit has no permission to read a template that it may use.
	reader, err := gen.User(t.Context(), s.Plane, "reader-"+l.team, gen.Role(l.team, "edit"), gen.Role(l.golden, "view"))
	if err != nil {
		t.Fatal(err)
	}
	viewer, err := gen.User(t.Context(), s.Plane, "viewer-"+l.team, gen.Role(l.team, "view"), gen.Role(l.golden, "view"))
	if err != nil {
		t.Fatal(err)
	}
	of := "VirtualMachine " + l.team + "/web and template " + l.golden + "/complete: "
	compare(reader, 0, of+"0 differences")
	compare(viewer, 0, of+"0 differences", "  not compared: Secret web-login, which you may not get")

	harness.Must(t, s.Plane, l.user, "", "patch", "secret", "web-login", "-n", l.team, "-p", `{"stringData": {"userdata": "password: mine"}}`)
	harness.Must(t, s.Plane, l.user, "", "patch", "service", "web", "-n", l.team, "-p", `{"spec": {"selector": {"vm.kubevirt.io/name": "db"}}}`)
	secret := []string{"objects[0].stringData.userdata (Secret web-login)", "  template (sensitive)", "  object   (sensitive)"}
	compare(reader, 1, append(append([]string{of + "2 differences"}, secret...),
		`objects[1].spec.selector["vm.kubevirt.io/name"] (Service web)`, `  template "web"`, `  object   "db"`)...)

	harness.Must(t, s.Plane, l.user, "", "delete", "service", "web", "-n", l.team)
	compare(reader, 1, append(append([]string{of + "2 differences"}, secret...), "objects[1] (Service web)", "  template an object", "  object   nothing")...)

	harness.Must(t, s.Plane, l.user, "", "create", "service", "clusterip", "web", "-n", l.team, "--tcp=22")
	compare(reader, 1, append([]string{of + "1 difference", "  not compared: Service web, which was not created for this VM"}, secret...)...)
}

// TestEachVMOfAPoolHasObjectsOfItsOwn creates a pool whose VMs refer to a template. KubeVirt's controller creates them, so it needs the permissions.
func TestEachVMOfAPoolHasObjectsOfItsOwn(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	if _, err := gen.User(t.Context(), s.Plane, controlplane.VirtController, gen.UsesTemplates(l.golden), gen.Permits(l.team,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "services"}, Verbs: []string{"create"}})); err != nil {
		t.Fatal(err)
	}
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", withObjects(gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInitSecret("cloudinit", "${NAME}-login")))...)))
	pool := `
apiVersion: pool.kubevirt.io/v1beta1
kind: VirtualMachinePool
metadata: {name: workers}
spec:
  replicas: 2
  selector: {matchLabels: {pool: workers}}
  virtualMachineTemplate:
    metadata: {labels: {pool: workers}, annotations: {template.kubevirt.io/template-ref: ` + l.golden + `/complete}}
    spec: {runStrategy: Always, template: {metadata: {labels: {pool: workers}}, spec: {domain: {devices: {}}}}}
`
	l.eventually(t, "the pool is created", func() error {
		if got := l.kubectl(t, l.user, pool, "create", "-n", l.team, "-f", "-"); got.Code != 0 {
			return errors.New(got.Stderr)
		}
		return nil
	})
	passwords := map[string]bool{}
	for _, vm := range []string{"workers-0", "workers-1"} {
		owner := l.exists(t, "vm", vm, "{.metadata.uid}")
		l.released(t, vm)
		if got := l.exists(t, "secret", vm+"-login", "{.metadata.ownerReferences[*].uid}"); got != owner {
			t.Errorf("the owner of the Secret of %s is %q, want %q", vm, got, owner)
		}
		if got := l.exists(t, "vm", vm, "{.spec.template.spec.volumes[*].cloudInitNoCloud.secretRef.name}"); got != vm+"-login" {
			t.Errorf("VM %s refers to Secret %q", vm, got)
		}
		passwords[l.exists(t, "secret", vm+"-login", "{.data.userdata}")] = true
	}
	if len(passwords) != 2 {
		t.Error("two VMs have the same password")
	}
	harness.Must(t, s.Plane, l.user, "", "delete", "virtualmachinepool", "workers", "-n", l.team)
	l.eventually(t, "nothing of the pool is left", func() error {
		if got := s.must(t, "", "get", "vm,vmi,pods,secrets,services", "-n", l.team, "-o", "name"); got != "" {
			return errors.New(got)
		}
		return nil
	})
}
