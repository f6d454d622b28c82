package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	virtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/guest"
)

// CompareGuests starts a stored VM as KubeVirt would, and compares what the guest sees with what is stored.
func (r Release) CompareGuests(t *testing.T) {
	programs, err := guest.Find()
	if err != nil {
		t.Fatal(err)
	}
	o := r.newOracle(t)
	store := func(machine *virtv1.VirtualMachine) (*virtv1.VirtualMachine, error) {
		answer, err := o.answer(context.Background(), t, machine, sizes{})
		if err != nil {
			return nil, err
		}
		stored := &virtv1.VirtualMachine{}
		return stored, json.Unmarshal(answer.VM, stored)
	}
	run := func(stored *virtv1.VirtualMachine) (*guest.Seen, error) {
		started, err := o.started(t.Context(), stored)
		if err != nil {
			return nil, err
		}
		return programs.Run(t.Context(), started)
	}
	guests, differences, err := guest.Changes(store, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences {
		t.Error(difference)
	}
	fmt.Printf("%s with KubeVirt %s: 2 guests with %d and %d PCI devices, in %s\n", t.Name(), r.Version, len(guests[0].Before), len(guests[1].Before), time.Since(o.began).Round(time.Second))
}

// started returns the domain that KubeVirt starts of a stored VM.
func (o *oracle) started(ctx context.Context, stored *virtv1.VirtualMachine) (guest.Domain, error) {
	var made guest.Domain
	instance, err := o.kubeVirt.instance(stored, sizes{})
	if err != nil {
		return made, err
	}
	converted, err := o.kubeVirt.convert(instance)
	if err != nil {
		return made, err
	}
	for _, entry := range converted.SysInfo.System {
		switch entry.Name {
		case "uuid":
			made.UUID = entry.Value
		case "serial":
			made.Serial = entry.Value
		}
	}
	removeWhatMovesNothing(converted)
	made.Described, err = o.release.start(ctx, o.definer, instance, converted)
	return made, err
}
