package defaults

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/internal/pinned"
	"github.com/vmstencil/stencil/template/virtualmachine"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var vm map[string]any
	if err := yaml.Unmarshal([]byte(text), &vm); err != nil {
		t.Fatal(err)
	}
	return vm
}

// withRecord returns a VirtualMachine with a record; disk is added to the fields of its disk.
func withRecord(record, machineType, disk, more string) string {
	return `{metadata: {name: a, annotations: {defaults.template.kubevirt.io/applied: '` + record + `'}}, ` + more + `spec: {runStrategy: Halted, template: {spec: {domain: {machine: {type: ` + machineType +
		`}, devices: {disks: [{name: root, disk: {bus: virtio` + disk + `}}], interfaces: [{name: default, pciAddress: "0000:01:00.0"}]}}}}}}`
}

const wrote = `{"libvirt":"11.3.0","machine":"pc-q35-9.2","alias":"q35","addresses":{"disks/root":"0000:07:00.0","interfaces/default":"0000:01:00.0","disks/gone":"0000:09:00.0"}}`

func TestUnpinTakesOutWhatTheRecordSays(t *testing.T) {
	const address = `, pciAddress: "0000:07:00.0"`
	for name, tc := range map[string]struct {
		vm      string
		want    []pinned.Change
		wantErr error
		// wantText is in the error.
		wantText string
	}{
		"all of it": {
			vm: withRecord(wrote, "pc-q35-9.2", address, ""),
			want: []pinned.Change{
				{Field: "machine type", From: "pc-q35-9.2", To: "q35"}, {Field: "PCI address of disks/root", From: "0000:07:00.0", To: "left open"}, {Field: "PCI address of interfaces/default", From: "0000:01:00.0", To: "left open"},
			},
		},
		"but not what a person has changed since": {
			vm:   withRecord(wrote, "pc-q35-8.0", `, pciAddress: "0000:08:00.0"`, ""),
			want: []pinned.Change{{Field: "PCI address of interfaces/default", From: "0000:01:00.0", To: "left open"}},
		},
		"nor what a person wrote from the start":   {vm: withRecord(`{"machine":"pc-q35-9.2"}`, "pc-q35-9.2", address, ""), wantErr: errNothing},
		"nor anything without a record":            {vm: `{metadata: {name: a}, spec: {template: {spec: {domain: {machine: {type: pc-q35-9.2}}}}}}`, wantErr: errNothing},
		"nor for a machine type of another family": {vm: withRecord(`{"machine":"pc-q35-9.2","alias":"microvm"}`, "pc-q35-9.2", "", ""), wantErr: errNothing},
		"nor of a machine that runs":               {vm: withRecord(wrote, "pc-q35-9.2", address, "status: {created: true}, "), wantErr: errRuns},
		"nor of one that will":                     {vm: strings.Replace(withRecord(wrote, "pc-q35-9.2", address, ""), "Halted", "Always", 1), wantErr: errRuns},
		"nor where the record is none":             {vm: withRecord("odd", "pc-q35-9.2", address, ""), wantText: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			vm := decoded(t, tc.vm)
			got, err := unpin(vm)
			if !errors.Is(err, tc.wantErr) && tc.wantText == "" || tc.wantText != "" && (err == nil || !strings.Contains(err.Error(), tc.wantText)) {
				t.Fatalf("error %v, want %v%s", err, tc.wantErr, tc.wantText)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if err != nil {
				if diff := cmp.Diff(decoded(t, tc.vm), vm); diff != "" {
					t.Errorf("the machine was changed:\n%s", diff)
				}
				return
			}
			if text := fmt.Sprint(virtualmachine.MapAt(vm, "metadata", "annotations")); !skipped(vm) || !strings.Contains(text, `"unpinned":true`) || strings.Contains(text, "addresses") {
				t.Errorf("annotations: %s", text)
			}
			if again, err := unpin(vm); !errors.Is(err, errNothing) {
				t.Errorf("a second time: %v, %v", again, err)
			}
			if err := reopen(vm); err != nil || skipped(vm) {
				t.Errorf("it cannot be reopened: %v", err)
			}
		})
	}
}

func TestAMachineThatSomebodyElseWantsLeftAloneIsNotReopened(t *testing.T) {
	vm := decoded(t, `{metadata: {name: a, annotations: {defaults.template.kubevirt.io/skip: "true"}}, spec: {runStrategy: Halted}}`)
	if err := reopen(vm); !errors.Is(err, errLeft) || !skipped(vm) {
		t.Errorf("got %v", err)
	}
}
