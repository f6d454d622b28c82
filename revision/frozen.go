package revision

import "k8s.io/apimachinery/pkg/api/resource"

// The types of this file and of frozen_domain.go are frozen: they are the JSON of kubevirt.io/api v1.6 (v1alpha1, v1alpha2) and
// v1.9 (v1beta1). They must not follow later changes of KubeVirt's types.

type instancetypeV1alpha struct {
	CPU             *cpuV1alpha     `json:"cpu"`
	Memory          *memoryV1alpha  `json:"memory"`
	GPUs            []gpu           `json:"gpus"`
	HostDevices     []hostDevice    `json:"hostDevices"`
	IOThreadsPolicy *string         `json:"ioThreadsPolicy"`
	LaunchSecurity  *launchSecurity `json:"launchSecurity"`
}

type cpuV1alpha struct {
	Guest                 uint32    `json:"guest"`
	Model                 string    `json:"model"`
	DedicatedCPUPlacement bool      `json:"dedicatedCPUPlacement"`
	NUMA                  *numa     `json:"numa"`
	IsolateEmulatorThread bool      `json:"isolateEmulatorThread"`
	Realtime              *realtime `json:"realtime"`
}

type memoryV1alpha struct {
	Guest     resource.Quantity `json:"guest"`
	Hugepages *hugepages        `json:"hugepages"`
}

type instancetypeV1beta1 struct {
	instancetypeV1alpha
	CPU           *cpuV1beta1       `json:"cpu"`
	Memory        *memoryV1beta1    `json:"memory"`
	NodeSelector  map[string]string `json:"nodeSelector"`
	SchedulerName string            `json:"schedulerName"`
	IOThreads     *ioThreads        `json:"ioThreads"`
	Annotations   map[string]string `json:"annotations"`
}

type cpuV1beta1 struct {
	cpuV1alpha
	MaxSockets *uint32 `json:"maxSockets"`
}

type memoryV1beta1 struct {
	memoryV1alpha
	OvercommitPercent int                `json:"overcommitPercent"`
	MaxGuest          *resource.Quantity `json:"maxGuest"`
}

type preferenceV1alpha1 struct {
	Clock    *clockPreferences   `json:"clock"`
	CPU      *cpuPreferences     `json:"cpu"`
	Devices  *devicePreferences  `json:"devices"`
	Features *featurePreferences `json:"features"`
	Firmware *firmwareV1alpha    `json:"firmware"`
	Machine  *machinePreferences `json:"machine"`
}

type preferenceV1alpha2 struct {
	preferenceV1alpha1
	Volumes *volumePreferences `json:"volumes"`
}

type preferenceV1beta1 struct {
	preferenceV1alpha2
	CPU                                    *cpuPreferencesV1beta1    `json:"cpu"`
	Devices                                *devicePreferencesV1beta1 `json:"devices"`
	Firmware                               *firmwareV1beta1          `json:"firmware"`
	PreferredSubdomain                     *string                   `json:"preferredSubdomain"`
	PreferredTerminationGracePeriodSeconds *int64                    `json:"preferredTerminationGracePeriodSeconds"`
	Requirements                           *requirements             `json:"requirements"`
	Annotations                            map[string]string         `json:"annotations"`
	PreferSpreadSocketToCoreRatio          uint32                    `json:"preferSpreadSocketToCoreRatio"`
	PreferredArchitecture                  *string                   `json:"preferredArchitecture"`
	PreferredLaunchSecurity                *launchSecurity           `json:"preferredLaunchSecurity"`
}

type cpuPreferences struct {
	PreferredCPUTopology string `json:"preferredCPUTopology"`
}

type cpuPreferencesV1beta1 struct {
	cpuPreferences
	SpreadOptions        *spreadOptions `json:"spreadOptions"`
	PreferredCPUFeatures []cpuFeature   `json:"preferredCPUFeatures"`
}

type spreadOptions struct {
	Across *string `json:"across"`
	Ratio  *uint32 `json:"ratio"`
}

type devicePreferences struct {
	PreferredAutoattachGraphicsDevice   *bool        `json:"preferredAutoattachGraphicsDevice"`
	PreferredAutoattachMemBalloon       *bool        `json:"preferredAutoattachMemBalloon"`
	PreferredAutoattachPodInterface     *bool        `json:"preferredAutoattachPodInterface"`
	PreferredAutoattachSerialConsole    *bool        `json:"preferredAutoattachSerialConsole"`
	PreferredAutoattachInputDevice      *bool        `json:"preferredAutoattachInputDevice"`
	PreferredDisableHotplug             *bool        `json:"preferredDisableHotplug"`
	PreferredVirtualGPUOptions          *vgpuOptions `json:"preferredVirtualGPUOptions"`
	PreferredSoundModel                 string       `json:"preferredSoundModel"`
	PreferredUseVirtioTransitional      *bool        `json:"preferredUseVirtioTransitional"`
	PreferredInputBus                   string       `json:"preferredInputBus"`
	PreferredInputType                  string       `json:"preferredInputType"`
	PreferredDiskBus                    string       `json:"preferredDiskBus"`
	PreferredLunBus                     string       `json:"preferredLunBus"`
	PreferredCdromBus                   string       `json:"preferredCdromBus"`
	PreferredDiskDedicatedIoThread      *bool        `json:"preferredDiskDedicatedIoThread"`
	PreferredDiskCache                  string       `json:"preferredDiskCache"`
	PreferredDiskIO                     string       `json:"preferredDiskIO"`
	PreferredDiskBlockSize              *blockSize   `json:"preferredDiskBlockSize"`
	PreferredInterfaceModel             string       `json:"preferredInterfaceModel"`
	PreferredRng                        *struct{}    `json:"preferredRng"`
	PreferredBlockMultiQueue            *bool        `json:"preferredBlockMultiQueue"`
	PreferredNetworkInterfaceMultiQueue *bool        `json:"preferredNetworkInterfaceMultiQueue"`
	PreferredTPM                        *tpm         `json:"preferredTPM"`
}

type devicePreferencesV1beta1 struct {
	devicePreferences
	PreferredInterfaceMasquerade *struct{} `json:"preferredInterfaceMasquerade"`
	PreferredPanicDeviceModel    *string   `json:"preferredPanicDeviceModel"`
	PreferredVideoType           *string   `json:"preferredVideoType"`
}

type featurePreferences struct {
	PreferredAcpi       *featureState `json:"preferredAcpi"`
	PreferredApic       *apic         `json:"preferredApic"`
	PreferredHyperv     *hyperv       `json:"preferredHyperv"`
	PreferredKvm        *kvm          `json:"preferredKvm"`
	PreferredPvspinlock *featureState `json:"preferredPvspinlock"`
	PreferredSmm        *featureState `json:"preferredSmm"`
}

type firmwareV1alpha struct {
	PreferredUseBios       *bool `json:"preferredUseBios"`
	PreferredUseBiosSerial *bool `json:"preferredUseBiosSerial"`
	PreferredUseEfi        *bool `json:"preferredUseEfi"`
	PreferredUseSecureBoot *bool `json:"preferredUseSecureBoot"`
}

type firmwareV1beta1 struct {
	firmwareV1alpha
	PreferredEfi *efi `json:"preferredEfi"`
}

type machinePreferences struct {
	PreferredMachineType string `json:"preferredMachineType"`
}

type volumePreferences struct {
	PreferredStorageClassName string `json:"preferredStorageClassName"`
}

type clockPreferences struct {
	PreferredClockOffset *clockOffset `json:"preferredClockOffset"`
	PreferredTimer       *timers      `json:"preferredTimer"`
}

type requirements struct {
	CPU          *cpuRequirement    `json:"cpu"`
	Memory       *memoryRequirement `json:"memory"`
	Architecture *string            `json:"architecture"`
}

type cpuRequirement struct {
	Guest uint32 `json:"guest"`
}

type memoryRequirement struct {
	Guest resource.Quantity `json:"guest"`
}
