package readiness_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// snapshot creates a halted VM of the user's own, and a snapshot of it with the same name.
func (l *loan) snapshot(t *testing.T, name string, modifiers ...gen.Modifier) {
	t.Helper()
	vm := gen.VM(name, append([]gen.Modifier{gen.Annotation("note", name), gen.RunStrategy("Halted"), gen.SmallSpec()}, modifiers...)...)
	harness.Must(t, l.Plane, l.user, gen.Manifest(vm), "create", "-n", l.team, "-f", "-")
	l.snapshotOf(t, name)
}

// snapshotOf creates a snapshot of a VM.
func (l *loan) snapshotOf(t *testing.T, name string) {
	t.Helper()
	harness.Must(t, l.Plane, l.user, "apiVersion: snapshot.kubevirt.io/v1beta1\nkind: VirtualMachineSnapshot\nmetadata: {name: "+name+"}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: "+name+"}}\n", "create", "-n", l.team, "-f", "-")
	l.eventually(t, "the snapshot is ready", func() error {
		if got := l.kubectl(t, nil, "", "get", "vmsnapshot", name, "-n", l.team, "-o", "jsonpath={.status.readyToUse}"); got.Stdout != "true" {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
}

// restore restores a snapshot into a new VM, with annotations of the contract, which are given without the prefix of their domain.
func (l *loan) restore(t *testing.T, name, snapshot string, annotations map[string]string) {
	t.Helper()
	// virt-api splits a patch at commas and colons, and rejects those of a record. It does not decode it.
	escaped := strings.NewReplacer(`"`, `\u0022`, `,`, `\u002c`, `:`, `\u003a`)
	var patches []string
	for key, value := range annotations {
		patches = append(patches, `{"op": "add", "path": "/metadata/annotations/template.kubevirt.io~1`+key+`", "value": "`+escaped.Replace(value)+`"}`)
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"target":                     map[string]any{"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name},
			"virtualMachineSnapshotName": snapshot, "patches": patches,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	harness.Must(t, l.Plane, l.user, string(manifest), "create", "-n", l.team, "-f", "-")
	l.eventually(t, "VM "+name+" is restored", func() error {
		if got := l.kubectl(t, nil, "", "get", "vm", name, "-n", l.team); got.Code != 0 {
			return errors.New(got.Stderr + l.kubectl(t, nil, "", "get", "vmrestore", name, "-n", l.team, "-o", "jsonpath={.status}").Stdout)
		}
		return nil
	})
}

// borrows adds a disk to a VM that is copied from the claim fedora of the golden namespace.
func (l *loan) borrows(t *testing.T, vm string) {
	t.Helper()
	harness.Must(t, l.Plane, l.user, "", "patch", "vm", vm, "-n", l.team, "--type=json", "-p", fmt.Sprintf(`[
		{"op": "add", "path": "/spec/dataVolumeTemplates", "value": [{"metadata": {"name": "%[1]s-root"}, "spec": {"sourceRef": {"kind": "DataSource", "namespace": %[2]q, "name": "fedora"}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}]},
		{"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "root", "dataVolume": {"name": "%[1]s-root"}}]},
		{"op": "add", "path": "/spec/template/spec/domain/devices/disks", "value": [{"name": "root", "disk": {"bus": "virtio"}}]}]`, vm, l.golden))
}

const renderedFor = `{.metadata.annotations.template\.kubevirt\.io/rendered-for}`

// TestACopyBorrowsNothing tries, as a user who may see a template that lends its disks and may not use it, to borrow them by what KubeVirt's controllers copy.
func TestACopyBorrowsNothing(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.publish(t, "golden", fromDataSource(l.golden, "fedora"))
	l.create(t, "web", "golden", gen.RunStrategy("Halted"))
	l.filled(t, l.team, "web-root")
	record := l.exists(t, "vm", "web", `{.metadata.annotations.template\.kubevirt\.io/rendered}`)
	grant := l.exists(t, "vm", "web", renderedFor)
	if !strings.Contains(grant, " "+l.user.Name+" ") {
		t.Errorf("the VM is rendered for %q", grant)
	}

	thief := *l
	var err error
	if thief.team, err = s.Plane.Namespace(t.Context(), "thief"); err != nil {
		t.Fatal(err)
	}
	if thief.user, err = gen.User(t.Context(), s.Plane, "thief-"+l.team, gen.Role(thief.team, "edit"), gen.Role(l.golden, "view")); err != nil {
		t.Fatal(err)
	}
	thief.snapshot(t, "own")
	forged := map[string]string{"template-ref": l.golden + "/golden", "rendered": record}
	t.Run("a restore with the record, and a disk that the user adds", func(t *testing.T) {
		thief.restore(t, "loot", "own", forged)
		thief.borrows(t, "loot")
		thief.notLent(t, "loot", "loot-root", "the user for whom the VirtualMachine was created or changed may not use VirtualMachineTemplate "+l.golden+"/golden")
		if got := thief.exists(t, "vm", "loot", renderedFor); !strings.Contains(got, " "+thief.user.Name+" ") {
			t.Errorf("the VM is changed for %q", got)
		}
	})
	t.Run("a restore with the grant of another VM", func(t *testing.T) {
		with := map[string]string{"rendered-for": grant}
		for key, value := range forged {
			with[key] = value
		}
		thief.restore(t, "replayed", "own", with)
		if got := thief.exists(t, "vm", "replayed", renderedFor); got != "" {
			t.Errorf("the grant is kept: %s", got)
		}
		thief.borrows(t, "replayed")
		thief.notLent(t, "replayed", "replayed-root", "may not use VirtualMachineTemplate")
	})
	t.Run("the grant, written by the user", func(t *testing.T) {
		thief.restore(t, "written", "own", forged)
		thief.borrows(t, "written")
		patched := thief.kubectl(t, thief.user, "", "annotate", "vm", "written", "-n", thief.team, "--overwrite", "template.kubevirt.io/rendered-for="+grant)
		if got := thief.exists(t, "vm", "written", renderedFor); got == grant {
			t.Errorf("it is stored: %s%s", patched.Stdout, patched.Stderr)
		}
		thief.notLent(t, "written", "written-root", "may not use VirtualMachineTemplate")
	})
	t.Run("a clone", func(t *testing.T) {
		thief.restore(t, "origin", "own", forged)
		harness.Must(t, s.Plane, thief.user, "apiVersion: clone.kubevirt.io/v1beta1\nkind: VirtualMachineClone\nmetadata: {name: cloned}\nspec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: origin}, target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: cloned}}\n", "create", "-n", thief.team, "-f", "-")
		thief.exists(t, "vm", "cloned", "{.metadata.name}")
		thief.borrows(t, "cloned")
		thief.notLent(t, "cloned", "cloned-root", "may not use VirtualMachineTemplate")
	})
	t.Run("a pool", func(t *testing.T) {
		pool := fmt.Sprintf(`{"apiVersion": "pool.kubevirt.io/v1beta1", "kind": "VirtualMachinePool", "metadata": {"name": "many"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"pool": "many"}},
			"virtualMachineTemplate": {"metadata": {"labels": {"pool": "many"}, "annotations": {"template.kubevirt.io/template-ref": "%s/golden", "template.kubevirt.io/rendered": %q, "template.kubevirt.io/rendered-for": %q}},
			"spec": {"runStrategy": "Halted", "template": {"metadata": {"labels": {"pool": "many"}}, "spec": {"domain": {"devices": {}}}}}}}}`, l.golden, record, grant)
		harness.Must(t, s.Plane, thief.user, pool, "create", "-n", thief.team, "-f", "-")
		thief.eventually(t, "KubeVirt's controller may not use the template", func() error {
			got := thief.kubectl(t, nil, "", "get", "events", "-n", thief.team, "-o", "jsonpath={.items[*].message}")
			if !strings.Contains(got.Stdout, "use") || !strings.Contains(got.Stdout, "golden") {
				return errors.New(got.Stdout)
			}
			return nil
		})
		if got := thief.kubectl(t, nil, "", "get", "datavolume", "-n", thief.team, "-o", "name"); got.Stdout != "" {
			t.Errorf("there are %s", got.Stdout)
		}
	})
}

// TestWhoseRightIsRevokedBorrowsNoMore takes verb use away from a user whose VM lacks its disk.
func TestWhoseRightIsRevokedBorrowsNoMore(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	l.publish(t, "golden", fromDataSource(l.golden, "fedora"))
	l.create(t, "web", "golden", gen.RunStrategy("Halted"))
	l.filled(t, l.team, "web-root")
	harness.Revoke(t, s.Plane, l.user, l.golden, "use", "virtualmachinetemplates.template.kubevirt.io/golden")
	s.must(t, "", "delete", "datavolume", "web-root", "-n", l.team)
	l.notLent(t, "web", "web-root", "the user for whom the VirtualMachine was created or changed may not use VirtualMachineTemplate "+l.golden+"/golden")
}
