package domain

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// Release is what differs between releases of KubeVirt in the defaults of a VirtualMachine and in the domain of its VM. The zero
// value is KubeVirt 1.8.0 to 1.8.3.
type Release struct {
	// Version is the version whose code was read and compared, such as v1.9.0.
	Version string
	// since is the first version that it applies to. It applies to later patch releases as well.
	since string
	// RequiresPCIe means that a VM whose machine type has no PCIe, such as pc-i440fx-9.2, has no
	// root ports for hotplugged devices. Earlier releases add them, which libvirt rejects.
	RequiresPCIe bool
	// ARMWithoutSecureBoot means that EFI on arm64 is without secure boot unless the
	// VirtualMachine requests it.
	ARMWithoutSecureBoot bool
	// VideoPreference means that a preference can set the type of the video device.
	VideoPreference bool
	// AddsPanicDevice means that a preferred panic device is added to a VM without one. Earlier
	// releases only complete the model of existing ones.
	AddsPanicDevice bool
}

// Releases are the releases that are reproduced, oldest first.
var Releases = []Release{
	{Version: "v1.8.2", since: "v1.8.0"},
	{Version: "v1.8.4", since: "v1.8.4", RequiresPCIe: true, ARMWithoutSecureBoot: true},
	{Version: "v1.9.0", since: "v1.9.0", RequiresPCIe: true, ARMWithoutSecureBoot: true, VideoPreference: true, AddsPanicDevice: true},
}

// ReleaseOf returns the release that applies to a version of KubeVirt, and false if its minor version is not reproduced.
func ReleaseOf(kubevirt string) (Release, bool) {
	found, ok := Release{}, false
	running, err := version.ParseGeneric(kubevirt)
	if err != nil {
		return found, false
	}
	for _, release := range Releases {
		since := version.MustParseGeneric(release.since)
		if since.Major() == running.Major() && since.Minor() == running.Minor() && running.AtLeast(since) {
			found, ok = release, true
		}
	}
	return found, ok
}

// hasPCIe reports whether a machine type has PCIe, by KubeVirt's rule.
func hasPCIe(machineType string) bool {
	return strings.Contains(machineType, "q35") || strings.HasPrefix(machineType, "virt")
}
