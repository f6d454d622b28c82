package domain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// vmOf returns a VirtualMachine with a template of the given spec.
func vmOf(t *testing.T, spec string) *kubevirtv1.VirtualMachine {
	t.Helper()
	vm := &kubevirtv1.VirtualMachine{Spec: kubevirtv1.VirtualMachineSpec{Template: &kubevirtv1.VirtualMachineInstanceTemplateSpec{}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &vm.Spec.Template.Spec); err != nil {
		t.Fatal(err)
	}
	return vm
}

func TestDefaultsInKubeVirtsOrder(t *testing.T) {
	const minimal = `{architecture: amd64, domain: {memory: {guest: 1Gi}, cpu: {cores: 1}, features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false`
	yes, no := true, false
	for _, tc := range []struct {
		name       string
		spec       string
		preference *instancetypev1beta1.VirtualMachinePreferenceSpec
		change     func(*kubevirtv1.VirtualMachine)
		cluster    defaulting.Cluster
		want       []string
	}{
		{name: "a machine that says everything is given nothing", spec: minimal + `}}}`},
		{name: "a disk without bus is on SATA", spec: minimal + `, disks: [{name: a, disk: {}}]}}}`,
			want: []string{"disks[0].disk.bus=sata by kubevirt"}},
		{name: "a preferred bus comes before it", spec: minimal + `, disks: [{name: a, disk: {}}, {name: b, disk: {bus: scsi}}]}}}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredDiskBus: "virtio"}},
			want:       []string{"disks[0].disk.bus=virtio by preference"}},
		{name: "a preference for cdroms is none for disks", spec: minimal + `, disks: [{name: a, disk: {}}, {name: b, cdrom: {readonly: true, tray: open}}]}}}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredCdromBus: "scsi"}},
			want:       []string{"disks[1].cdrom.bus=scsi by preference", "disks[0].disk.bus=sata by kubevirt"}},
		{name: "a volume without disk is given one, and the preferred bus", spec: minimal + `}}, volumes: [{name: a}]}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredDiskBus: "virtio"}},
			want:       []string{"disks[0]=map[name:a] by kubevirt", "disks[0].disk=map[] by kubevirt", "disks[0].disk.bus=virtio by preference"}},
		{name: "a file system's volume is given no disk", spec: minimal + `, filesystems: [{name: a, virtiofs: {}}]}}, volumes: [{name: a}]}`},
		{name: "a preference against the pod network comes before the default interface",
			spec:       `{architecture: amd64, domain: {memory: {guest: 1Gi}, cpu: {cores: 1}, features: {acpi: {enabled: true}}, devices: {}}}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredAutoattachPodInterface: &no}},
			want:       []string{"autoattachPodInterface=false by preference"}},
		{name: "the default interface is bound as the cluster says, and gets the preferred model",
			spec:       `{architecture: amd64, domain: {memory: {guest: 1Gi}, cpu: {cores: 1}, features: {acpi: {enabled: true}}, devices: {}}}`,
			cluster:    defaulting.Cluster{NetworkInterface: "bridge"},
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredInterfaceModel: "e1000e"}},
			want: []string{
				"interfaces=[map[bridge:map[] name:default]] by kubevirt", "networks=[map[name:default pod:map[]]] by kubevirt",
				"interfaces[0].model=e1000e by preference",
			}},
		{name: "an automatic input device gets the preferred bus", spec: minimal + `, autoattachInputDevice: true}}}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Devices: &instancetypev1beta1.DevicePreferences{PreferredInputBus: "virtio"}},
			want:       []string{"inputs=[map[name:default-0]] by kubevirt", "inputs[0].bus=virtio by preference", "inputs[0].type=tablet by kubevirt"}},
		{name: "memory and topology follow requests", spec: `{architecture: amd64, domain: {resources: {requests: {memory: 3Gi, cpu: "2"}}, features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false}}}`,
			want: []string{"memory.guest=3Gi by kubevirt", "cpu.sockets=2 by kubevirt", "cpu.cores=1 by kubevirt", "cpu.threads=1 by kubevirt"}},
		{name: "and are left alone with an instance type", spec: `{architecture: amd64, domain: {features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false}}}`,
			change: func(vm *kubevirtv1.VirtualMachine) {
				vm.Spec.Instancetype = &kubevirtv1.InstancetypeMatcher{Name: "u1.large"}
			}},
		{name: "arm64 boots from EFI and has its disks on virtio", spec: `{architecture: arm64, domain: {memory: {guest: 1Gi}, cpu: {cores: 1}, features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false, disks: [{name: a, disk: {}}]}}}`,
			want: []string{"firmware.bootloader.efi=map[secureBoot:false] by kubevirt", "disks[0].disk.bus=virtio by kubevirt"}},
		{name: "a preferred firmware leaves a chosen one alone", spec: `{architecture: amd64, domain: {firmware: {bootloader: {bios: {}}}, memory: {guest: 1Gi}, cpu: {cores: 1}, features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false}}}`,
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{Firmware: &instancetypev1beta1.FirmwarePreferences{
				PreferredEfi: &kubevirtv1.EFI{SecureBoot: &yes},
			}}},
		{name: "the cluster's architecture comes after the preferred one", spec: `{domain: {memory: {guest: 1Gi}, cpu: {cores: 1}, firmware: {bootloader: {efi: {}}}, features: {acpi: {enabled: true}}, devices: {autoattachPodInterface: false}}}`,
			cluster:    defaulting.Cluster{DefaultArchitecture: "amd64"},
			preference: &instancetypev1beta1.VirtualMachinePreferenceSpec{PreferredArchitecture: new("arm64")},
			want:       []string{"architecture=arm64 by preference"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vm := vmOf(t, tc.spec)
			if tc.change != nil {
				tc.change(vm)
			}
			before := vm.DeepCopy()
			prepared := domain.Prepare(vm, domain.Inputs{Preference: tc.preference, Cluster: tc.cluster})
			var got []string
			for _, set := range prepared.Sets {
				got = append(got, describe(set))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields that were filled (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, vm); diff != "" {
				t.Errorf("the VirtualMachine itself was changed:\n%s", diff)
			}
		})
	}
}
