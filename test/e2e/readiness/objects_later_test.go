package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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

// controllerMayUse lets KubeVirt's controller use the templates of the namespace.
func (l *loan) controllerMayUse(t *testing.T) {
	t.Helper()
	if _, err := gen.User(t.Context(), l.Plane, controlplane.VirtController, gen.UsesTemplates(l.golden)); err != nil {
		t.Fatal(err)
	}
}

// attended makes copies of a VM until one has a Secret of its own, and returns its name: the webhook caches the denials of the controller for a moment.
func (l *loan) attended(t *testing.T, prefix string, copied func(name string)) (name string) {
	t.Helper()
	attempts := 0
	l.eventually(t, "a copy has objects of its own", func() error {
		attempts++
		name = fmt.Sprintf("%s-%d", prefix, attempts)
		copied(name)
		l.exists(t, "vm", name, "{.metadata.name}")
		l.released(t, name)
		if got := l.kubectl(t, nil, "", "get", "secret", name+"-login", "-n", l.team); got.Code != 0 {
			return errors.New(got.Stderr)
		}
		return nil
	})
	return name
}

// TestEachVMOfAPoolHasObjectsOfItsOwn creates a pool whose VMs refer to a template. KubeVirt's controller creates them, so it needs verb use. It
// may create Secrets and Services by its own role.
func TestEachVMOfAPoolHasObjectsOfItsOwn(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", withObjects(gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInitSecret("cloudinit", "${NAME}-login")))...)))
	l.controllerMayUse(t)
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
	l.nothingLeft(t)
}

// TestACopyOfAVMHasObjectsOfItsOwn has KubeVirt's controllers clone a VM with objects, and restore it into a new one, before and after they may use
// the template.
func TestACopyOfAVMHasObjectsOfItsOwn(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", withObjects(gen.Declares("NAME"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", blank), gen.CloudInitSecret("cloudinit", "${NAME}-login"), gen.Spec("template: {spec: {hostname: '${NAME}'}}")))...)))
	l.create(t, "web", "complete", gen.RunStrategy("Halted"))
	l.released(t, "web")
	clone := func(name string) {
		t.Helper()
		harness.Must(t, s.Plane, l.user, `
apiVersion: clone.kubevirt.io/v1beta1
kind: VirtualMachineClone
metadata: {name: `+name+`}
spec:
  source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}
  target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: `+name+`}
`, "create", "-n", l.team, "-f", "-")
	}
	const refers = "{.spec.template.spec.volumes[?(@.name=='cloudinit')].cloudInitNoCloud.secretRef.name} {.spec.template.spec.hostname}"
	clone("shares")
	if got := l.exists(t, "vm", "shares", refers); got != "web-login web" {
		t.Errorf("without the permission, a clone refers to %s", got)
	}
	l.released(t, "shares")

	harness.Must(t, s.Plane, l.user, "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineSnapshot\nmetadata: {name: before}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}\n", "create", "-n", l.team, "-f", "-")
	l.eventually(t, "the snapshot is ready", func() error {
		if got := l.kubectl(t, nil, "", "get", "vmsnapshot", "before", "-n", l.team, "-o", "jsonpath={.status.readyToUse}"); got.Stdout != "true" {
			return errors.New(l.kubectl(t, nil, "", "get", "vmsnapshot", "before", "-n", l.team, "-o", "yaml").Stdout)
		}
		return nil
	})
	l.controllerMayUse(t)
	restore := func(name string) {
		t.Helper()
		harness.Must(t, s.Plane, l.user, "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineRestore\nmetadata: {name: "+name+"}\nspec: {target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: "+name+"}, virtualMachineSnapshotName: before}\n", "create", "-n", l.team, "-f", "-")
	}
	twin, phoenix := l.attended(t, "twin", clone), l.attended(t, "phoenix", restore)
	passwords := map[string]bool{l.exists(t, "secret", "web-login", "{.data.userdata}"): true}
	for _, name := range []string{twin, phoenix} {
		owner := l.exists(t, "vm", name, "{.metadata.uid}")
		for kind, object := range map[string]string{"secret": name + "-login", "service": name} {
			if got := l.exists(t, kind, object, "{.metadata.ownerReferences[*].uid}"); got != owner {
				t.Errorf("the owner of %s %s is %q, want %q", kind, object, got, owner)
			}
		}
		if got, want := l.exists(t, "vm", name, refers), name+"-login "+name; got != want {
			t.Errorf("%s refers to %s, want %s", name, got, want)
		}
		l.released(t, name)
		passwords[l.exists(t, "secret", name+"-login", "{.data.userdata}")] = true
	}
	if len(passwords) != 3 {
		t.Errorf("3 VMs have %d passwords", len(passwords))
	}
	harness.Must(t, s.Plane, l.user, "", "delete", "vm", "web", "-n", l.team)
	l.eventually(t, "the objects of the original VM are deleted", func() error {
		if got := s.must(t, "", "get", "secrets,services", "-n", l.team, "-o", "name"); strings.Contains(got, "web") {
			return errors.New(got)
		}
		return nil
	})
	harness.Must(t, s.Plane, l.user, "", "patch", "vm", twin, "-n", l.team, "--type=merge", "-p", `{"spec": {"runStrategy": "Always"}}`)
	l.exists(t, "vmi", twin, "{.metadata.uid}")
	l.exists(t, "secret", twin+"-login", "{.metadata.uid}")
}

// TestAForgedRecordGivesNoObjects restores a VM without a template as a copy of one that was rendered from a template that the user may not use: the
// patches of a VirtualMachineRestore write the record. It succeeds when KubeVirt's controller may use the template, so the test would see it.
func TestAForgedRecordGivesNoObjects(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.apply(t, l.golden, gen.Manifest(gen.Template("complete", withObjects(gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.CloudInitSecret("cloudinit", "${NAME}-login")))...)))
	l.create(t, "web", "complete", gen.RunStrategy("Halted"))
	l.released(t, "web")
	record := l.exists(t, "vm", "web", `{.metadata.annotations.template\.kubevirt\.io/rendered}`)

	thief := *l
	var err error
	if thief.team, err = s.Plane.Namespace(t.Context(), "thief"); err != nil {
		t.Fatal(err)
	}
	if thief.user, err = gen.User(t.Context(), s.Plane, "thief-"+l.team, gen.Role(thief.team, "edit")); err != nil {
		t.Fatal(err)
	}
	thief.snapshot(t, "own", gen.CloudInitSecret("cloudinit", "own-login"))
	restore := func(name string) {
		t.Helper()
		thief.restore(t, name, "own", map[string]string{"template-ref": l.golden + "/complete", "rendered": record})
		if got := thief.exists(t, "vm", name, `{.metadata.annotations.template\.kubevirt\.io/rendered}`); got != record {
			t.Fatalf("the record of %s is %s", name, got)
		}
	}
	restore("loot")
	if got := thief.exists(t, "vm", "loot", pendingAt+heldAt); got != "" {
		t.Errorf("a user who may not use the template gets its objects: %s", got)
	}
	l.controllerMayUse(t)
	thief.attended(t, "copy", restore)
}
