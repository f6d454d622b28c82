package kubevirt

import (
	"maps"
	"slices"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// numaAwarePCI is a feature gate of KubeVirt.
const numaAwarePCI = "PCINUMAAwareTopology"

// read returns the settings that defaults depend on.
func read(kubevirt *kubevirtv1.KubeVirt) defaulting.Cluster {
	configuration := &kubevirt.Spec.Configuration
	cluster := defaulting.Cluster{
		KubeVirt:            kubevirt.Status.ObservedKubeVirtVersion,
		DefaultArchitecture: kubevirt.Status.DefaultArchitecture,
		MachineTypes:        machineTypes(configuration),
		HostDevices:         hostDevices(configuration.PermittedHostDevices),
	}
	if architectures := configuration.ArchitectureConfiguration; architectures != nil && architectures.DefaultArchitecture != "" {
		cluster.DefaultArchitecture = architectures.DefaultArchitecture
	}
	if network := configuration.NetworkConfiguration; network != nil {
		cluster.NetworkInterface = network.NetworkInterface
		for _, name := range slices.Sorted(maps.Keys(network.Binding)) {
			// The sidecar of a binding may change the VM in any way; a tap device is attached by KubeVirt itself.
			if plugin := network.Binding[name]; plugin.SidecarImage == "" && plugin.DomainAttachmentType != "" {
				cluster.TapBindings = append(cluster.TapBindings, name)
			}
		}
	}
	if developer := configuration.DeveloperConfiguration; developer != nil {
		cluster.NUMAAwarePCI = slices.Contains(developer.FeatureGates, numaAwarePCI)
	}
	_, cluster.VGAForEFI = kubevirt.Annotations[kubevirtv1.VGADisplayForEFIGuestsX86Annotation]
	return cluster
}

// machineTypes returns the default machine types by architecture. The deprecated setting without architectures takes
// precedence, as in KubeVirt.
func machineTypes(configuration *kubevirtv1.KubeVirtConfiguration) map[string]string {
	types := map[string]string{}
	architectures := configuration.ArchitectureConfiguration
	if architectures == nil {
		architectures = &kubevirtv1.ArchConfiguration{}
	}
	for name, architecture := range map[string]*kubevirtv1.ArchSpecificConfiguration{
		"amd64": architectures.Amd64, "arm64": architectures.Arm64, "s390x": architectures.S390x,
	} {
		switch {
		case configuration.MachineType != "":
			types[name] = configuration.MachineType
		case architecture != nil && architecture.MachineType != "":
			types[name] = architecture.MachineType
		}
	}
	if len(types) == 0 {
		return nil
	}
	return types
}

func hostDevices(permitted *kubevirtv1.PermittedHostDevices) map[string]defaulting.HostDeviceKind {
	if permitted == nil {
		return nil
	}
	kinds := map[string]defaulting.HostDeviceKind{}
	for _, device := range permitted.PciHostDevices {
		kinds[device.ResourceName] = defaulting.HostDevicePCI
	}
	for _, device := range permitted.MediatedDevices {
		kinds[device.ResourceName] = defaulting.HostDeviceMDev
	}
	for _, device := range permitted.USB {
		kinds[device.ResourceName] = defaulting.HostDeviceUSB
	}
	if len(kinds) == 0 {
		return nil
	}
	return kinds
}
