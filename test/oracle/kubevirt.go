package oracle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	virtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"kubevirt.io/kubevirt/pkg/defaults"
	"kubevirt.io/kubevirt/pkg/instancetype/apply"
	preferenceapply "kubevirt.io/kubevirt/pkg/instancetype/preference/apply"
	"kubevirt.io/kubevirt/pkg/network/domainspec"
	"kubevirt.io/kubevirt/pkg/network/vmispec"
	"kubevirt.io/kubevirt/pkg/testutils"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch/vm"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/arch"
	convertertypes "kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/types"
)

// sizes are an instance type and a preference; either may be nil.
type sizes struct {
	instancetype *instancetypev1beta1.VirtualMachineInstancetypeSpec
	preference   *instancetypev1beta1.VirtualMachinePreferenceSpec
}

// kubeVirt is KubeVirt's own code with a configuration in which nothing is set.
type kubeVirt struct {
	config  *virtconfig.ClusterConfig
	release Release
}

func newKubeVirt(release Release) kubeVirt {
	config, _, _ := testutils.NewFakeClusterConfigUsingKVConfig(&virtv1.KubeVirtConfiguration{})
	return kubeVirt{config, release}
}

// instance returns the instance that virt-api and virt-controller create for a VirtualMachine when it is started. The steps are KubeVirt's; their
// order of its webhook and of its controller, which cannot be called without a cluster.
func (k kubeVirt) instance(machine *virtv1.VirtualMachine, sizes sizes) (*virtv1.VirtualMachineInstance, error) {
	machine = machine.DeepCopy()
	spec := &machine.Spec.Template.Spec
	for i := range spec.Volumes {
		if spec.Volumes[i].VolumeSource == (virtv1.VolumeSource{}) {
			// KubeVirt rejects one without a source.
			spec.Volumes[i].DataVolume = &virtv1.DataVolumeSource{Name: spec.Volumes[i].Name}
		}
	}
	preferenceapply.ApplyArchitecturePreferences(sizes.preference, spec)
	if p := sizes.preference; p != nil && p.Machine != nil && (spec.Domain.Machine == nil || spec.Domain.Machine.Type == "") {
		spec.Domain.Machine = &virtv1.Machine{Type: p.Machine.PreferredMachineType}
	}
	defaults.SetVirtualMachineDefaults(machine, k.config, nil)

	instance := vm.SetupVMIFromVM(machine)
	if sizes.preference != nil {
		preferenceapply.ApplyAutoAttachPreferences(sizes.preference, &instance.Spec)
	}
	vm.AutoAttachInputDevice(instance)
	if err := vmispec.SetDefaultNetworkInterface(k.config, &instance.Spec); err != nil {
		return nil, fmt.Errorf("attaching the default network: %w", err)
	}
	conflicts := apply.NewVMIApplier().ApplyToVMI(field.NewPath("spec"), sizes.instancetype, sizes.preference, &instance.Spec, &instance.ObjectMeta)
	if len(conflicts) > 0 {
		return nil, fmt.Errorf("applying the instance type: %w", conflicts)
	}
	if err := defaults.SetDefaultVirtualMachineInstance(k.config, instance); err != nil {
		return nil, fmt.Errorf("setting the defaults of the instance: %w", err)
	}
	reportStatus(instance)
	return instance, nil
}

// reportStatus sets the status that virt-handler would have reported before the domain is created.
func reportStatus(instance *virtv1.VirtualMachineInstance) {
	for _, volume := range instance.Spec.Volumes {
		status := virtv1.VolumeStatus{Name: volume.Name}
		if data := volume.DataVolume; data != nil && data.Hotpluggable {
			status.HotplugVolume = &virtv1.HotplugVolumeStatus{}
		}
		instance.Status.VolumeStatus = append(instance.Status.VolumeStatus, status)
	}
	if attach := instance.Spec.Domain.Devices.AutoattachVSOCK; attach != nil && *attach {
		cid := uint32(3)
		instance.Status.VSOCKCID = &cid
	}
}

// domain returns the domain that virt-launcher's converter creates for an instance, without elements that are not PCI devices and that libvirt here rejects.
func (k kubeVirt) domain(instance *virtv1.VirtualMachineInstance) (*api.DomainSpec, error) {
	spec, err := k.convert(instance)
	if err != nil {
		return nil, err
	}
	removeWhatMovesNothing(spec)
	return spec, nil
}

// convert calls virt-launcher's converter.
func (k kubeVirt) convert(instance *virtv1.VirtualMachineInstance) (*api.DomainSpec, error) {
	architecture := arch.NewConverter(instance.Spec.Architecture)
	devices := instance.Spec.Domain.Devices
	context := &convertertypes.ConverterContext{
		Architecture: architecture,
		// There is no KVM here; the devices are the same.
		AllowEmulation:        true,
		VirtualMachine:        instance,
		IsBlockPVC:            map[string]bool{},
		IsBlockDV:             map[string]bool{},
		HotplugVolumes:        map[string]virtv1.VolumeStatus{},
		PermanentVolumes:      map[string]virtv1.VolumeStatus{},
		UseVirtioTransitional: devices.UseVirtioTransitional != nil && *devices.UseVirtioTransitional,
		BochsForEFIGuests:     !k.config.VGADisplayForEFIGuestsEnabled(),
		FreePageReporting:     true,
		SerialConsoleLog:      true,
		MemBalloonStatsPeriod: 10,
		HypervisorName:        virtv1.KvmHypervisorName,

		DomainAttachmentByInterfaceName: domainspec.DomainAttachmentByInterfaceName(devices.Interfaces, k.config.GetNetworkBindings()),
	}
	for _, status := range instance.Status.VolumeStatus {
		if status.HotplugVolume != nil {
			context.HotplugVolumes[status.Name] = status
		} else {
			context.PermanentVolumes[status.Name] = status
		}
	}
	for _, volume := range instance.Spec.Volumes {
		if disk := volume.DataVolume; disk != nil {
			// A lun has to be a block device.
			context.IsBlockDV[volume.Name] = isLUN(devices.Disks, volume.Name)
		}
	}
	if instance.IsBootloaderEFI() {
		secure := instance.Spec.Domain.Firmware.Bootloader.EFI.SecureBoot
		context.EFIConfiguration = &convertertypes.EFIConfiguration{
			EFICode: "/mock/efi", EFIVars: "/mock/vars", SecureLoader: secure == nil || *secure,
		}
	}
	if err := addHostDevices(context, instance); err != nil {
		return nil, err
	}
	made := &api.Domain{}
	if err := converter.Convert_v1_VirtualMachineInstance_To_api_Domain(instance, made, context); err != nil {
		return nil, fmt.Errorf("converting the instance: %w", err)
	}
	api.NewDefaulter(architecture.GetArchitecture()).SetObjectDefaults_Domain(made)
	return &made.Spec, nil
}

// removeWhatMovesNothing removes elements that are not PCI devices and that libvirt here rejects.
func removeWhatMovesNothing(spec *api.DomainSpec) {
	// A domain gets another UUID when it is defined, and libvirt compares it with the one of the firmware.
	spec.SysInfo, spec.OS.SMBios = nil, nil
	// libvirt 9.0 requires a number of memory slots with it, which KubeVirt's does not.
	spec.MaxMemory = nil
	// libvirt rejects a TPM where swtpm is not installed. It is not on PCI.
	spec.Devices.TPMs = nil
}

func isLUN(disks []virtv1.Disk, name string) bool {
	for i := range disks {
		if disks[i].Name == name {
			return disks[i].LUN != nil
		}
	}
	return false
}
