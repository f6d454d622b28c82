package main

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
)

// TestGuestsSeeWhatIsStored starts the domains that the defaulter lays out. That they are those of KubeVirt is what test/oracle shows, which starts
// KubeVirt's own as well.
func TestGuestsSeeWhatIsStored(t *testing.T) {
	programs, err := guest.Find()
	if err != nil {
		t.Fatal(err)
	}
	e := startEngine(t)
	var last *kubevirtv1.VirtualMachine
	store := func(machine *kubevirtv1.VirtualMachine) (*kubevirtv1.VirtualMachine, error) {
		stored := &kubevirtv1.VirtualMachine{}
		last = stored
		return stored, json.Unmarshal(answer(t, e, encode(t, machine)).VM, stored)
	}
	run := func(stored *kubevirtv1.VirtualMachine) (*guest.Seen, error) {
		return programs.Run(t.Context(), guest.Domain{VM: stored})
	}
	guests, differences, err := guest.Changes(store, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences {
		t.Error(difference)
	}
	for what, change := range map[string]func(*kubevirtv1.VirtualMachine){
		"identity":   func(vm *kubevirtv1.VirtualMachine) { vm.Spec.Template.Spec.Domain.Firmware.Serial = "another" },
		"processors": func(vm *kubevirtv1.VirtualMachine) { vm.Spec.Template.Spec.Domain.CPU.Cores++ },
		"memory": func(vm *kubevirtv1.VirtualMachine) {
			vm.Spec.Template.Spec.Domain.Memory.Guest.Add(resource.MustParse("4Mi"))
		},
		"addresses": func(vm *kubevirtv1.VirtualMachine) {
			nics := vm.Spec.Template.Spec.Domain.Devices.Interfaces
			nics[0].PciAddress, nics[len(nics)-1].PciAddress = nics[len(nics)-1].PciAddress, nics[0].PciAddress
		},
	} {
		changed := last.DeepCopy()
		change(changed)
		if len(guests[1].Differences(changed)) == 0 {
			t.Errorf("no difference when the stored %s are not those of the guest", what)
		}
	}
	t.Logf("2 guests with %d and %d PCI devices", len(guests[0].Before), len(guests[1].Before))
}
