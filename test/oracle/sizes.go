package oracle

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	virtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
)

// randomSizes gives a VM a preference, and often an instance type. It removes the fields that the instance type sets from the VM: KubeVirt rejects a
// VM with both.
func (r Release) randomSizes(random *rand.Rand, machine *virtv1.VirtualMachine) sizes {
	s := sizes{preference: randomPreference(random)}
	if r.Prefer != nil {
		r.Prefer(random, s.preference)
	}
	machine.Spec.Preference = &virtv1.PreferenceMatcher{Name: "some"}
	if random.IntN(2) == 0 {
		return s
	}
	machine.Spec.Instancetype = &virtv1.InstancetypeMatcher{Name: "some"}
	domain := &machine.Spec.Template.Spec.Domain
	domain.Memory, domain.CPU = nil, nil
	s.instancetype = &instancetypev1beta1.VirtualMachineInstancetypeSpec{
		CPU:    instancetypev1beta1.CPUInstancetype{Guest: 2},
		Memory: instancetypev1beta1.MemoryInstancetype{Guest: resource.MustParse(pick(random, "1Gi", "2Gi", "4Gi"))},
	}
	if len(domain.Devices.GPUs) == 0 && random.IntN(4) == 0 {
		s.instancetype.GPUs = []virtv1.GPU{{Name: "gpu-of-type", DeviceName: "vendor.com/gpu"}}
	}
	if _, said := machine.Spec.Template.ObjectMeta.Annotations[virtv1.PciInterfaceSlotCountAnnotation]; !said && random.IntN(8) == 0 {
		s.instancetype.Annotations = map[string]string{virtv1.PciInterfaceSlotCountAnnotation: "7"}
	}
	return s
}

func pick[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }

// randomPreference sets a few of the preferences that change the addresses of devices.
func randomPreference(random *rand.Rand) *instancetypev1beta1.VirtualMachinePreferenceSpec {
	yes, no := true, false
	p := &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{}}
	d := p.Devices
	maybe := func(of int, change func()) {
		if random.IntN(of) == 0 {
			change()
		}
	}
	maybe(2, func() { d.PreferredDiskBus = pick[virtv1.DiskBus](random, "virtio", "sata", "scsi") })
	maybe(3, func() { d.PreferredCdromBus = pick[virtv1.DiskBus](random, "sata", "scsi") })
	maybe(3, func() { d.PreferredLunBus = "scsi" })
	maybe(2, func() { d.PreferredInterfaceModel = pick(random, "virtio", "e1000e", "e1000") })
	maybe(4, func() { d.PreferredInterfaceMasquerade = &virtv1.InterfaceMasquerade{} })
	maybe(3, func() { d.PreferredRng = &virtv1.Rng{} })
	maybe(5, func() { d.PreferredPanicDeviceModel = pick(random, ptr.To(virtv1.Pvpanic), ptr.To(virtv1.Isa)) })
	maybe(4, func() { d.PreferredTPM = &virtv1.TPMDevice{} })
	maybe(4, func() { d.PreferredSoundModel = pick(random, "ac97", "ich9") })
	maybe(3, func() { d.PreferredInputBus = pick[virtv1.InputBus](random, "usb", "virtio") })
	maybe(4, func() { d.PreferredInputType = virtv1.InputTypeTablet })
	maybe(5, func() { d.PreferredDisableHotplug = pick(random, &yes, &no) })
	maybe(5, func() { d.PreferredAutoattachGraphicsDevice = pick(random, &yes, &no) })
	maybe(5, func() { d.PreferredAutoattachMemBalloon = pick(random, &yes, &no) })
	maybe(5, func() { d.PreferredAutoattachSerialConsole = pick(random, &yes, &no) })
	maybe(5, func() { d.PreferredAutoattachInputDevice = pick(random, &yes, &no) })
	maybe(5, func() { d.PreferredAutoattachPodInterface = pick(random, &yes, &no) })
	maybe(10, func() { d.PreferredUseVirtioTransitional = pick(random, &yes, &no) })
	maybe(4, func() {
		p.Firmware = pick(random,
			&instancetypev1beta1.FirmwarePreferences{PreferredEfi: &virtv1.EFI{SecureBoot: &no}},
			&instancetypev1beta1.FirmwarePreferences{PreferredUseBios: &yes},
			&instancetypev1beta1.FirmwarePreferences{DeprecatedPreferredUseEfi: &yes, DeprecatedPreferredUseSecureBoot: &no})
	})
	maybe(4, func() {
		p.Machine = &instancetypev1beta1.MachinePreferences{PreferredMachineType: pick(random, "q35", "pc-q35-6.2")}
	})
	maybe(6, func() { p.Annotations = map[string]string{virtv1.PciInterfaceSlotCountAnnotation: "6"} })
	return p
}
