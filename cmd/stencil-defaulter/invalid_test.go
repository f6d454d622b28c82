package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
)

func TestAddressesThatNoMachineCanHaveAreRefusedByName(t *testing.T) {
	e := startEngine(t)
	for _, tc := range []struct {
		name    string
		options []shapes.Option
		want    []string
	}{
		{"two disks at one address", []shapes.Option{shapes.DiskAt("0000:09:00.0"), shapes.DiskAt("0000:09:00.0")},
			[]string{"spec.template.spec.domain.devices.disks[1].disk.pciAddress", "disks[1] and the disk at spec.template.spec.domain.devices.disks[0] both have address 0000:09:00.0"}},
		{"a disk and an interface at one address", []shapes.Option{shapes.DiskAt("0000:09:00.0"), shapes.NICAt("0000:09:00.0")},
			[]string{"interfaces[0].pciAddress", "the interface at spec.template.spec.domain.devices.interfaces[0] and the disk at spec.template.spec.domain.devices.disks[0] both have address"}},
		{"a bus that does not exist", []shapes.Option{shapes.DiskAt("0000:e0:00.0")}, []string{"disks[0].disk.pciAddress", "buses 00 to 1f"}},
		{"a PCI domain that does not exist", []shapes.Option{shapes.DiskAt("0001:09:00.0")}, []string{"only the PCI domain 0000"}},
		{"a slot that does not exist", []shapes.Option{shapes.DiskAt("0000:00:3f.0")}, []string{"slots 00 to 1f"}},
		{"the host bridge", []shapes.Option{shapes.DiskAt("0000:00:00.0")}, []string{"host bridge"}},
		{"no address at all", []shapes.Option{shapes.DiskAt("first")}, []string{"has the form 0000:01:00.0"}},
		{"a slot behind a root port", []shapes.Option{shapes.DiskAt("0000:03:05.0")}, []string{"disks[0].disk.pciAddress", "libvirt: ", "0000:03:05.0"}},
		{"the place of the SATA controller", []shapes.Option{shapes.DiskAt("0000:00:1f.2")}, []string{"disks[0].disk.pciAddress", "belongs to a device that every VM has"}},
		{"more disks than the API allows", []shapes.Option{shapes.Disks(257, "virtio")}, []string{"devices.disks", "at most 256"}},
		{"a machine type with a quote", []shapes.Option{ofType("q35'/><x a='")}, []string{"machine.type", "letters, digits"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 { // The second time it is cached.
				_, err := e.Answer(context.Background(), &defaulting.Request{VM: encode(t, shapes.New(tc.options...))})
				var problem *defaulting.Problem
				if !errors.As(err, &problem) || problem.Status != http.StatusUnprocessableEntity {
					t.Fatalf("got %v, want 422", err)
				}
				for _, want := range tc.want {
					if !strings.Contains(problem.Error(), want) {
						t.Errorf("%q does not say %q", problem.Error(), want)
					}
				}
			}
		})
	}
}

func TestARefusalThatMayBeOursIsNoRefusal(t *testing.T) {
	e := startEngine(t)
	response := answer(t, e, encode(t, shapes.New(ofType("pc-q35-99.0"), shapes.Disks(1, "virtio"))))
	if len(response.Skipped) == 0 || !strings.Contains(response.Skipped[0].Reason, "libvirt rejects the VM") {
		t.Errorf("skipped: %v", response.Skipped)
	}
	for _, set := range response.Set {
		if strings.HasSuffix(set.Path, "pciAddress") || strings.HasSuffix(set.Path, "machine.type") {
			t.Errorf("%s is set although libvirt refused", set.Path)
		}
	}
}
