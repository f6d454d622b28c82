package domain

import (
	"reflect"

	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/defaulting"
)

// A preference fills empty fields only, with two exceptions: disableHotplug and features.acpi.
// KubeVirt cannot distinguish their zero values from unset ones and overwrites them, and so
// does this package.

type (
	vmSpec     = kubevirtv1.VirtualMachineInstanceSpec
	preference = instancetypev1beta1.VirtualMachinePreferenceSpec
)

func preferArchitecture(n *notes, spec *vmSpec, p *preference) {
	if p != nil && p.PreferredArchitecture != nil {
		fill(n, &spec.Architecture, *p.PreferredArchitecture, defaulting.FromPreference, In("architecture"))
	}
}

func preferMachineType(spec *vmSpec, p *preference) {
	if p == nil || p.Machine == nil || spec.Domain.Machine != nil && spec.Domain.Machine.Type != "" {
		return
	}
	spec.Domain.Machine = &kubevirtv1.Machine{Type: p.Machine.PreferredMachineType}
}

func preferAttachments(n *notes, spec *vmSpec, p *preference) {
	if p == nil || p.Devices == nil {
		return
	}
	devices := &spec.Domain.Devices
	for _, attachment := range []struct {
		field     **bool
		preferred *bool
		name      string
	}{
		{&devices.AutoattachGraphicsDevice, p.Devices.PreferredAutoattachGraphicsDevice, "autoattachGraphicsDevice"},
		{&devices.AutoattachMemBalloon, p.Devices.PreferredAutoattachMemBalloon, "autoattachMemBalloon"},
		{&devices.AutoattachPodInterface, p.Devices.PreferredAutoattachPodInterface, "autoattachPodInterface"},
		{&devices.AutoattachSerialConsole, p.Devices.PreferredAutoattachSerialConsole, "autoattachSerialConsole"},
		{&devices.AutoattachInputDevice, p.Devices.PreferredAutoattachInputDevice, "autoattachInputDevice"},
	} {
		fillPointer(n, attachment.field, attachment.preferred, defaulting.FromPreference, devicesPath.Then(attachment.name))
	}
}

func preferDevices(n *notes, spec *vmSpec, p *preference, release Release) {
	if p == nil || p.Devices == nil {
		return
	}
	devices, preferred := &spec.Domain.Devices, p.Devices
	fillPointer(n, &devices.UseVirtioTransitional, preferred.PreferredUseVirtioTransitional, defaulting.FromPreference, devicesPath.Then("useVirtioTransitional"))
	if preferred.PreferredDisableHotplug != nil && devices.DisableHotplug != *preferred.PreferredDisableHotplug {
		devices.DisableHotplug = *preferred.PreferredDisableHotplug
		n.add(devicesPath.Then("disableHotplug"), devices.DisableHotplug, defaulting.FromPreference)
	}
	if devices.Sound != nil {
		fill(n, &devices.Sound.Model, preferred.PreferredSoundModel, defaulting.FromPreference, devicesPath.Then("sound", "model"))
	}
	if preferred.PreferredRng != nil && devices.Rng == nil {
		devices.Rng = preferred.PreferredRng.DeepCopy()
		n.add(devicesPath.Then("rng"), devices.Rng, defaulting.FromPreference)
	}
	if preferred.PreferredTPM != nil && devices.TPM == nil {
		devices.TPM = preferred.PreferredTPM.DeepCopy()
		n.add(devicesPath.Then("tpm"), devices.TPM, defaulting.FromPreference)
	}
	preferDisks(n, spec, preferred)
	preferInterfaces(n, spec, preferred)
	for i := range devices.Inputs {
		path := inputsPath.Then(item(i))
		fill(n, &devices.Inputs[i].Bus, preferred.PreferredInputBus, defaulting.FromPreference, path.Then("bus"))
		fill(n, &devices.Inputs[i].Type, preferred.PreferredInputType, defaulting.FromPreference, path.Then("type"))
	}
	// KubeVirt admits both fields of a VirtualMachine only behind a feature gate, so they are not written.
	if release.VideoPreference {
		preferVideo(devices, preferred)
	}
	if release.AddsPanicDevice && preferred.PreferredPanicDeviceModel != nil && len(devices.PanicDevices) == 0 {
		devices.PanicDevices = []kubevirtv1.PanicDevice{{Model: preferred.PreferredPanicDeviceModel}}
	}
	for i := range devices.PanicDevices {
		fillPointer(n, &devices.PanicDevices[i].Model, preferred.PreferredPanicDeviceModel, defaulting.FromPreference, devicesPath.Then("panicDevices", item(i), "model"))
	}
}

// preferVideo reads the preference by name: the API of KubeVirt 1.8, with which test/oracle compiles this package as well, does not have it.
func preferVideo(devices *kubevirtv1.Devices, preferred *instancetypev1beta1.DevicePreferences) {
	field := reflect.ValueOf(preferred).Elem().FieldByName("PreferredVideoType")
	if !field.IsValid() || field.IsNil() || devices.Video != nil && devices.Video.Type != "" {
		return
	}
	devices.Video = &kubevirtv1.VideoDevice{Type: field.Elem().String()}
}

func preferDisks(n *notes, spec *vmSpec, preferred *instancetypev1beta1.DevicePreferences) {
	for i := range spec.Domain.Devices.Disks {
		disk := &spec.Domain.Devices.Disks[i]
		path := disksPath.Then(item(i))
		setDiskKind(n, disk, path)
		bus := preferred.PreferredDiskBus
		switch {
		case disk.CDRom != nil:
			bus = preferred.PreferredCdromBus
		case disk.LUN != nil:
			bus = preferred.PreferredLunBus
		}
		field, busPath := busOf(disk, path)
		fill(n, field, bus, defaulting.FromPreference, busPath)
	}
}

func preferInterfaces(n *notes, spec *vmSpec, preferred *instancetypev1beta1.DevicePreferences) {
	onPodNetwork := map[string]bool{}
	for _, network := range spec.Networks {
		onPodNetwork[network.Name] = network.Pod != nil
	}
	for i := range spec.Domain.Devices.Interfaces {
		nic := &spec.Domain.Devices.Interfaces[i]
		path := interfacesPath.Then(item(i))
		fill(n, &nic.Model, preferred.PreferredInterfaceModel, defaulting.FromPreference, path.Then("model"))
		unbound := reflect.ValueOf(nic.InterfaceBindingMethod).IsZero() && nic.Binding == nil
		if preferred.PreferredInterfaceMasquerade != nil && unbound && onPodNetwork[nic.Name] {
			nic.Masquerade = preferred.PreferredInterfaceMasquerade.DeepCopy()
			n.add(path.Then("masquerade"), nic.Masquerade, defaulting.FromPreference)
		}
	}
}

func preferFeatures(n *notes, spec *vmSpec, p *preference) {
	if p == nil || p.Features == nil {
		return
	}
	if spec.Domain.Features == nil {
		spec.Domain.Features = &kubevirtv1.Features{}
	}
	features := spec.Domain.Features
	if smm := p.Features.PreferredSmm; smm != nil && features.SMM == nil {
		features.SMM = smm.DeepCopy()
	}
	if p.Features.PreferredAcpi == nil {
		return
	}
	before := features.ACPI.Enabled
	features.ACPI = *p.Features.PreferredAcpi.DeepCopy()
	if after := features.ACPI.Enabled; before == nil && after != nil {
		n.add(In("domain", "features", "acpi", "enabled"), *after, defaulting.FromPreference)
	}
}

func preferFirmware(n *notes, spec *vmSpec, p *preference) {
	if p == nil || p.Firmware == nil {
		return
	}
	if spec.Domain.Firmware == nil {
		spec.Domain.Firmware = &kubevirtv1.Firmware{}
	}
	if spec.Domain.Firmware.Bootloader == nil {
		spec.Domain.Firmware.Bootloader = &kubevirtv1.Bootloader{}
	}
	preferred, loader := p.Firmware, spec.Domain.Firmware.Bootloader
	path := firmwarePath.Then("bootloader")
	is := func(value *bool) bool { return value != nil && *value }
	undecided := func() bool { return loader.BIOS == nil && loader.EFI == nil }

	if is(preferred.PreferredUseBios) && undecided() {
		loader.BIOS = &kubevirtv1.BIOS{}
		n.add(path.Then("bios"), map[string]any{}, defaulting.FromPreference)
	}
	if loader.BIOS != nil {
		fillPointer(n, &loader.BIOS.UseSerial, preferred.PreferredUseBiosSerial, defaulting.FromPreference, path.Then("bios", "useSerial"))
	}
	if undecided() && preferred.PreferredEfi != nil {
		loader.EFI = preferred.PreferredEfi.DeepCopy()
		n.add(path.Then("efi"), loader.EFI, defaulting.FromPreference)
		return
	}
	if is(preferred.DeprecatedPreferredUseEfi) && undecided() {
		loader.EFI = &kubevirtv1.EFI{}
		n.add(path.Then("efi"), map[string]any{}, defaulting.FromPreference)
	}
	if loader.EFI != nil {
		fillPointer(n, &loader.EFI.SecureBoot, preferred.DeprecatedPreferredUseSecureBoot, defaulting.FromPreference, path.Then("efi", "secureBoot"))
	}
}

func preferAnnotations(m *PreparedVM, p *preference) {
	if p != nil {
		addAnnotations(m, p.Annotations)
	}
}
