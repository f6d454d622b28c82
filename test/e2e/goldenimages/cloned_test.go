package goldenimages_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestDisksAreClonedFromTheCurrentImage creates VMs from a template of another namespace, as a user who has permission to use it and no other
// permission there.
func TestDisksAreClonedFromTheCurrentImage(t *testing.T) {
	own, team := namespace(t), harness.Namespace(t, stage.Plane, "team")
	user := harness.User(t, stage.Plane, "user-"+team, gen.Role(team, "edit"), gen.Role(own, "stencil-template-user"))
	first := push(t, "cloned/fedora", "latest")
	must(t, own, manifest("fedora", "cloned/fedora", ", staleAfter: 1000h"), "create", "-f", "-")
	standsFor(t, own, "fedora", first)
	must(t, own, gen.Manifest(gen.Template("box", gen.Label("stencil.kubevirt.io/disk-access", "Lend"), gen.Declares("NAME"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", "sourceRef: {kind: DataSource, name: fedora, namespace: "+own+"}")))), "create", "-f", "-")
	shows := func(digest string) {
		t.Helper()
		eventually(t, "the template shows "+digest, func() error {
			got := kubectl(t, own, "", "get", "virtualmachinetemplate", "box", "-o", "jsonpath={.status.conditions}")
			if !strings.Contains(got.Stdout, "fedora") || !strings.Contains(got.Stdout, digest) {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
	}
	// clones creates a VM, and returns the UID of its disk when that is filled from the image with this digest.
	clones := func(vm, digest string) (claim string) {
		t.Helper()
		object := gen.Manifest(gen.VM(vm, gen.FromTemplate(own+"/box")))
		eventually(t, "VM "+vm+" is created", func() error {
			if got := harness.Kubectl(t, stage.Plane, user, object, "create", "-n", team, "-f", "-"); got.Code != 0 {
				return errors.New(got.Stderr)
			}
			return nil
		})
		eventually(t, "the disk of "+vm+" is cloned from "+digest, func() error {
			got := harness.Kubectl(t, stage.Plane, user, "", "get", "dv", vm+"-root", "-n", team, "-o", "jsonpath={.status.phase} {.spec.source}")
			if !strings.HasPrefix(got.Stdout, "Succeeded ") || !strings.Contains(got.Stdout, `"`+volume("fedora", digest)+`"`) {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
		return harness.Must(t, stage.Plane, user, "", "get", "pvc", vm+"-root", "-n", team, "-o", "jsonpath={.metadata.uid}").Stdout
	}
	shows(first)
	claim := clones("old", first)

	second := push(t, "cloned/fedora", "latest")
	refresh(t, own, "fedora", "1")
	standsFor(t, own, "fedora", second)
	shows(second)
	clones("new", second)
	has(t, own, "gimg/fedora", "{.status.usage.templates} {.status.usage.virtualMachines}", "1 2")
	after := harness.Must(t, stage.Plane, user, "", "get", "pvc/old-root", "dv/old-root", "-n", team, "-o", "jsonpath={range .items[*]}{.metadata.uid} {.spec.source}{end}").Stdout
	if !strings.HasPrefix(after, claim+" ") || !strings.Contains(after, volume("fedora", first)) {
		t.Errorf("the disk of the older VM changed: %s", after)
	}
}
