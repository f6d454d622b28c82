package takeover_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// TestStencilWasInstalledFirst upgrades KubeVirt below an installed Stencil.
func TestStencilWasInstalledFirst(t *testing.T) {
	c := start(t, controlplane.KubeVirt18)
	c.stencil(install.Options{})
	c.templates(3)
	before := c.identities()

	ran := c.run("install check")
	if want := "before an upgrade to 1.9 or later, which switches it on: kubectl patch kubevirt kubevirt"; ran.Code != 0 || !strings.Contains(ran.Output, want) {
		t.Errorf("before the upgrade: exit code %d, no %q:\n%s", ran.Code, want, ran.Output)
	}
	c.operator(controlplane.KubeVirt19)
	c.reports("already exists")
	ran = c.run("install check")
	if want := "KubeVirt's rollout stops at it with AlreadyExists"; ran.Code != 1 || !strings.Contains(ran.Output, want) {
		t.Errorf("after the upgrade: exit code %d, no %q:\n%s", ran.Code, want, ran.Output)
	}
	c.component(false)
	c.settled(controlplane.KubeVirt19)
	if now := c.identities(); !maps.Equal(now, before) {
		t.Errorf("UIDs before %v, after %v", before, now)
	}
	if ran := c.run("install check"); ran.Code != 0 {
		t.Errorf("in the end: exit code %d:\n%s", ran.Code, ran.Output)
	}
}

// TestTakeover takes templates over from KubeVirt 1.9, installs Stencil, uninstalls it, and goes back.
func TestTakeover(t *testing.T) {
	c := start(t, controlplane.KubeVirt19)
	if got := c.owners(); got != "virt-operator" {
		t.Fatalf("the owners are %q", got)
	}
	c.admits("virt-template-webhook-service", "kubevirt-virt-template-webhook-certs")
	c.templates(3)
	before := c.identities()
	saved := file(t)

	ran := c.run("install takeover --dry-run --file " + saved)
	if want := "to do   take the definitions from virt-operator: another owner has "; ran.Code != 0 || !strings.Contains(ran.Output, want) {
		t.Errorf("dry run: exit code %d, no %q:\n%s%s", ran.Code, want, ran.Output, ran.Problems)
	}
	t.Logf("dry run:\n%s", ran.Output)
	if got := c.owners(); got != "virt-operator" {
		t.Fatalf("after the dry run the owners are %q", got)
	}
	// Interrupted when virt-operator has noticed, and back.
	c.interrupted(4, "install takeover --file "+file(t))
	c.reports("already exists")
	ran = c.run("install release --file " + file(t))
	if ran.Code != 0 {
		t.Fatalf("going back: exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	if got, now := c.owners(), c.identities(); got != "virt-operator" || !maps.Equal(now, before) {
		t.Fatalf("after going back the owners are %q, and UIDs before %v, after %v", got, before, now)
	}

	// Interrupted after each step, and on.
	for lines := 1; lines < 8; lines++ {
		c.interrupted(lines, "install takeover --file "+saved)
	}
	ran = c.run("install takeover --file " + saved)
	if ran.Code != 0 {
		t.Fatalf("exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	if got := c.owners(); got != "Helm" {
		t.Errorf("the owners are %q", got)
	}
	if got := size(t, saved); got != 3 {
		t.Errorf("%d templates were saved", got)
	}
	_, stop := c.stencil(install.Options{ForceConflicts: true})
	c.settled(controlplane.KubeVirt19)
	if now := c.identities(); !maps.Equal(now, before) {
		t.Errorf("UIDs before %v, after %v", before, now)
	}
	if ran := c.run("install takeover --file " + saved); ran.Code != 0 || strings.Contains(ran.Output, "did ") {
		t.Errorf("again: exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	if ran := c.run("install check"); ran.Code != 0 {
		t.Errorf("check: exit code %d:\n%s", ran.Code, ran.Output)
	}
	if ran := c.run("install migrate-storage"); ran.Code != 0 {
		t.Errorf("migrate-storage: exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	for _, name := range definitions {
		if versions := c.must("", "get", "crd", name, "-o", "jsonpath={.status.storedVersions}"); versions != `["v1beta1"]` {
			t.Errorf("%s has stored versions %s", name, versions)
		}
	}
	if now := c.identities(); !maps.Equal(now, before) {
		t.Errorf("UIDs before the migration %v, after %v", before, now)
	}

	// The way back.
	back := file(t)
	ran = c.run("install release --dry-run --file " + back)
	if want := "to do   switch KubeVirt's template component on: spec.configuration.virtTemplateDeployment.enabled is false"; ran.Code != 0 || !strings.Contains(ran.Output, want) {
		t.Errorf("exit code %d, no %q: %s%s", ran.Code, want, ran.Output, ran.Problems)
	}
	stop()
	c.uninstall()
	ran = c.run("install release --file " + back)
	if ran.Code != 0 {
		t.Fatalf("exit code %d:\n%s%s", ran.Code, ran.Output, ran.Problems)
	}
	if got := c.owners(); got != "virt-operator" {
		t.Errorf("the owners are %q", got)
	}
	c.settled(controlplane.KubeVirt19)
	if now := c.identities(); !maps.Equal(now, before) {
		t.Errorf("UIDs before %v, after %v", before, now)
	}

	// Interrupted, and the administrator switches the component off: the policy keeps the definitions, and virt-operator deletes the APIServices.
	again := file(t)
	c.interrupted(2, "install takeover --file "+again)
	c.component(false)
	c.reports("all templates of the cluster are deleted with this definition")
	ran = c.run("install check")
	if want := "its component is off, and Stencil's policy keeps virt-operator from deleting it, so that KubeVirt does not settle: kubectl label crd " + definitions[0]; ran.Code != 1 || !strings.Contains(ran.Output, want) {
		t.Errorf("check: exit code %d, no %q:\n%s", ran.Code, want, ran.Output)
	}

	ran = c.run("install takeover --file " + again)
	if want := "note: APIService v1beta1.subresources.template.kubevirt.io"; ran.Code != 0 || !strings.Contains(ran.Problems, want) {
		t.Errorf("exit code %d, no %q: %s%s", ran.Code, want, ran.Output, ran.Problems)
	}
	t.Logf("takeover:\n%s%s", ran.Output, ran.Problems)
	now := c.identities()
	for name, uid := range before {
		if !strings.HasPrefix(name, "APIService/") && now[name] != uid {
			t.Errorf("%s: UID before %s, after %s", name, uid, now[name])
		}
	}
}
