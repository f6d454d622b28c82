package domain_test

import (
	"testing"

	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

func TestReleaseOf(t *testing.T) {
	for version, want := range map[string]string{
		"v1.8.0": "v1.8.2", "v1.8.3": "v1.8.2", "v1.8.4": "v1.8.4", "v1.8.12": "v1.8.4", "1.9.0": "v1.9.0", "v1.9.2-5-gabcdef": "v1.9.0",
		"v1.7.9": "", "v1.10.0": "", "v2.8.0": "", "": "", "devel": "",
	} {
		release, ok := domain.ReleaseOf(version)
		if release.Version != want || ok != (want != "") {
			t.Errorf("%q is %q (%v), want %q", version, release.Version, ok, want)
		}
	}
}

func TestWhatReleasesDoDifferently(t *testing.T) {
	video, pvpanic := "bochs", kubevirtv1.Pvpanic
	preference := &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{
		PreferredVideoType: &video, PreferredPanicDeviceModel: &pvpanic,
	}}
	type result struct {
		video      string
		panics     int
		secureBoot bool
		hotplug    bool
	}
	for version, want := range map[string]result{
		"v1.8.2": {video: "virtio", panics: 0, secureBoot: true, hotplug: true},
		"v1.8.4": {video: "virtio", panics: 0, secureBoot: false, hotplug: false},
		"v1.9.0": {video: "bochs", panics: 1, secureBoot: false, hotplug: false},
	} {
		release, _ := domain.ReleaseOf(version)
		vm := &kubevirtv1.VirtualMachine{Spec: kubevirtv1.VirtualMachineSpec{Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{}}}
		spec := &vm.Spec.Template.Spec
		spec.Architecture = domain.ARM64
		spec.Domain.Machine = &kubevirtv1.Machine{Type: "pc"}
		spec.Domain.Firmware = &kubevirtv1.Firmware{Bootloader: &kubevirtv1.Bootloader{EFI: &kubevirtv1.EFI{}}}
		shape := domain.NewShape(domain.Prepare(vm, domain.Inputs{Preference: preference, Release: release}), defaulting.Cluster{})
		got := result{video: shape.Video, panics: len(shape.Panics), secureBoot: shape.SecureBoot, hotplug: !shape.NoHotplug}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", version, got, want)
		}
	}
}
