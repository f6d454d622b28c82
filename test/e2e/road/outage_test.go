package road_test

import (
	"strings"
	"testing"
)

// TestWithoutAManagerOnlyTemplatedMachinesAreRefused stops the only manager, so
// it must not run beside another test of this package.
func TestWithoutAManagerOnlyTemplatedMachinesAreRefused(t *testing.T) {
	const plain = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"plain-sailing"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"memory":{"guest":"1Gi"},"devices":{}}}}}}`
	discard(t, "plain-sailing", "in-need", "stored-before")
	mustKubectl(t, ada, machine("stored-before", "golden/fedora", nil, ""), "create", "-f", "-")
	if err := stencil.StopManager(); err != nil {
		t.Fatal(err)
	}
	started := false
	start := func() {
		if !started {
			started = true
			if err := stencil.StartManager(); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer start()

	out := kubectl(t, ada, machine("in-need", "golden/fedora", nil, ""), "create", "-f", "-")
	if out.Code == 0 || !strings.Contains(out.Stderr, `failed calling webhook "render.template.kubevirt.io"`) {
		t.Errorf("a VM with a template-ref: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	mustKubectl(t, ada, plain, "create", "-f", "-")
	mustKubectl(t, ada, "", "label", "vm", "plain-sailing", "still=works")

	out = kubectl(t, ada, "", "label", "vm", "stored-before", "an=update")
	if out.Code == 0 || !strings.Contains(out.Stderr, `failed calling webhook "render.template.kubevirt.io"`) {
		t.Errorf("an update of a VM with a template-ref: exit %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	mustKubectl(t, ada, "", "delete", "vm", "stored-before")
	start()
	mustKubectl(t, ada, machine("in-need", "golden/fedora", nil, ""), "create", "-f", "-")
}
