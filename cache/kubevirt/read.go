package kubevirt

import (
	"maps"
	"slices"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
)

// Feature gates of KubeVirt. All are alpha, so they are off unless they are listed.
const (
	numaAwarePCI      = "PCINUMAAwareTopology"
	plugins           = "Plugins"
	crossArchitecture = "CrossArchitectureVirtualization"
)

// read returns the settings that defaults depend on.
func read(kubevirt *kubevirtv1.KubeVirt) defaulting.Cluster {
	configuration := &kubevirt.Spec.Configuration
	cluster := defaulting.Cluster{
		DefaultArchitecture: kubevirt.Status.DefaultArchitecture,
		MachineTypes:        machineTypes(configuration),
		HostDevices:         hostDevices(configuration.PermittedHostDevices),
	}
	cluster.KubeVirt, cluster.Target = versions(&kubevirt.Status)
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
		cluster.Plugins = slices.Contains(developer.FeatureGates, plugins)
		cluster.CrossArchitecture = slices.Contains(developer.FeatureGates, crossArchitecture)
	}
	_, cluster.VGAForEFI = kubevirt.Annotations[kubevirtv1.VGADisplayForEFIGuestsX86Annotation]
	return cluster
}

// versions returns the version that runs, and the one that KubeVirt is updated to, if any. virt-operator sets the target when it
// begins an installation or an update, and the observed version when that is complete.
func versions(status *kubevirtv1.KubeVirtStatus) (running, target string) {
	running, target = status.ObservedKubeVirtVersion, status.TargetKubeVirtVersion
	switch running {
	case "":
		return target, ""
	case target:
		return running, ""
	}
	return running, target
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
