package domain

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubevirtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"

	"github.com/vmstencil/stencil/defaulting"
)

// Inputs are what defaults depend on in addition to the VirtualMachine.
type Inputs struct {
	Instancetype *instancetypev1beta1.VirtualMachineInstancetypeSpec
	Preference   *instancetypev1beta1.VirtualMachinePreferenceSpec
	Cluster      defaulting.Cluster
	// Release is the release of KubeVirt that starts the VM.
	Release Release
}

// PreparedVM is a VirtualMachine as KubeVirt would start it.
type PreparedVM struct {
	// Spec has all of KubeVirt's defaults, including those that are not written.
	Spec kubevirtv1.VirtualMachineInstanceSpec
	// Annotations are the annotations of the VirtualMachineInstance.
	Annotations map[string]string
	// Sets are the filled fields, in KubeVirt's order.
	Sets []Set
	// Release of the Inputs.
	Release Release
}

// The architectures by KubeVirt's names.
const (
	AMD64 = "amd64"
	ARM64 = "arm64"
	S390X = "s390x"
)

// defaultMachineTypes are KubeVirt's default machine types by architecture.
var defaultMachineTypes = map[string]string{AMD64: "q35", ARM64: "virt", S390X: "s390-ccw-virtio"}

// Prepare applies KubeVirt's defaults to a copy of the VirtualMachine's template in KubeVirt's
// order: virt-api when the VirtualMachine is stored, virt-controller when it is started,
// virt-api again when the instance is created. The VirtualMachine must have a template.
func Prepare(vm *kubevirtv1.VirtualMachine, in Inputs) *PreparedVM {
	m := &PreparedVM{
		Spec:        *vm.Spec.Template.Spec.DeepCopy(),
		Annotations: maps.Clone(vm.Spec.Template.ObjectMeta.Annotations),
		Release:     in.Release,
	}
	n := &notes{}
	spec := &m.Spec

	// When the VirtualMachine is stored.
	preferArchitecture(n, spec, in.Preference)
	preferMachineType(spec, in.Preference)
	setArchitecture(n, spec, in.Cluster)
	setMachineType(spec, in.Cluster)

	// When it is started.
	setVolumeDisks(n, spec)
	preferAttachments(n, spec, in.Preference)
	setInputDevice(n, spec)
	setNetwork(n, spec, in.Cluster)
	applyInstancetype(m, in.Instancetype)
	preferDevices(n, spec, in.Preference, in.Release)
	preferFeatures(n, spec, in.Preference)
	preferFirmware(n, spec, in.Preference)
	preferAnnotations(m, in.Preference)

	// When the instance is created.
	setMemory(n, spec, vm.Spec.Instancetype != nil)
	setTopology(n, spec, vm.Spec.Instancetype != nil)
	setDeviceDefaults(n, spec)
	setArchitectureDefaults(n, spec, in.Release)

	// When its domain is created.
	setModels(n, spec)

	m.Sets = n.sets
	return m
}

func setArchitecture(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, cluster defaulting.Cluster) {
	architecture := cluster.DefaultArchitecture
	if architecture == "" {
		architecture = AMD64
	}
	fill(n, &spec.Architecture, architecture, defaulting.FromKubeVirt, In("architecture"))
}

// setMachineType does not record the field: the value that is written is the version that
// libvirt resolves the machine type to.
func setMachineType(spec *kubevirtv1.VirtualMachineInstanceSpec, cluster defaulting.Cluster) {
	if spec.Domain.Machine == nil {
		spec.Domain.Machine = &kubevirtv1.Machine{}
	}
	if spec.Domain.Machine.Type != "" {
		return
	}
	machineType := cluster.MachineTypes[spec.Architecture]
	if machineType == "" {
		machineType = defaultMachineTypes[spec.Architecture]
	}
	spec.Domain.Machine.Type = machineType
}

// setVolumeDisks adds a disk for each volume that neither a disk nor a file system uses.
func setVolumeDisks(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	devices := &spec.Domain.Devices
	used := map[string]bool{}
	for _, disk := range devices.Disks {
		used[disk.Name] = true
	}
	for _, filesystem := range devices.Filesystems {
		used[filesystem.Name] = true
	}
	for _, volume := range spec.Volumes {
		if used[volume.Name] {
			continue
		}
		devices.Disks = append(devices.Disks, kubevirtv1.Disk{Name: volume.Name})
		n.add(disksPath.Then(item(len(devices.Disks)-1)), map[string]any{"name": volume.Name}, defaulting.FromKubeVirt)
	}
}

func setInputDevice(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec) {
	devices := &spec.Domain.Devices
	if attach := devices.AutoattachInputDevice; attach == nil || !*attach || len(devices.Inputs) > 0 {
		return
	}
	devices.Inputs = []kubevirtv1.Input{{Name: "default-0"}}
	n.add(inputsPath, []any{map[string]any{"name": "default-0"}}, defaulting.FromKubeVirt)
}

// setNetwork attaches the pod network if the spec has no networks and no interfaces.
func setNetwork(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, cluster defaulting.Cluster) {
	devices := &spec.Domain.Devices
	if attach := devices.AutoattachPodInterface; attach != nil && !*attach {
		return
	}
	if len(spec.Networks) != 0 || len(devices.Interfaces) != 0 {
		return
	}
	binding := "masquerade"
	if cluster.NetworkInterface == "bridge" {
		binding = "bridge"
		devices.Interfaces = []kubevirtv1.Interface{*kubevirtv1.DefaultBridgeNetworkInterface()}
	} else {
		devices.Interfaces = []kubevirtv1.Interface{*kubevirtv1.DefaultMasqueradeNetworkInterface()}
	}
	spec.Networks = []kubevirtv1.Network{*kubevirtv1.DefaultPodNetwork()}
	n.add(interfacesPath, []any{map[string]any{"name": "default", binding: map[string]any{}}}, defaulting.FromKubeVirt)
	n.add(In("networks"), []any{map[string]any{"name": "default", "pod": map[string]any{}}}, defaulting.FromKubeVirt)
}

// applyInstancetype applies the fields that addresses depend on. They are never written:
// KubeVirt rejects a VirtualMachine that also sets them.
func applyInstancetype(m *PreparedVM, instancetype *instancetypev1beta1.VirtualMachineInstancetypeSpec) {
	if instancetype == nil {
		return
	}
	guest := instancetype.Memory.Guest.DeepCopy()
	if m.Spec.Domain.Memory == nil {
		m.Spec.Domain.Memory = &kubevirtv1.Memory{}
	}
	if m.Spec.Domain.Memory.Guest == nil {
		m.Spec.Domain.Memory.Guest = &guest
	}
	devices := &m.Spec.Domain.Devices
	if len(devices.GPUs) == 0 {
		devices.GPUs = instancetype.GPUs
	}
	if len(devices.HostDevices) == 0 {
		devices.HostDevices = instancetype.HostDevices
	}
	addAnnotations(m, instancetype.Annotations)
}

func addAnnotations(m *PreparedVM, annotations map[string]string) {
	for key, value := range annotations {
		if _, ok := m.Annotations[key]; ok {
			continue
		}
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[key] = value
	}
}

func setMemory(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, instancetype bool) {
	if spec.Domain.Memory != nil && spec.Domain.Memory.Guest != nil || instancetype {
		return
	}
	if spec.Domain.Memory == nil {
		spec.Domain.Memory = &kubevirtv1.Memory{}
	}
	resources := spec.Domain.Resources
	var guest resource.Quantity
	switch {
	case !resources.Requests.Memory().IsZero():
		guest = *resources.Requests.Memory()
	case !resources.Limits.Memory().IsZero():
		guest = *resources.Limits.Memory()
	case spec.Domain.Memory.Hugepages != nil:
		size, err := resource.ParseQuantity(spec.Domain.Memory.Hugepages.PageSize)
		if err != nil {
			return
		}
		guest = size
	default:
		return
	}
	spec.Domain.Memory.Guest = &guest
	n.add(In("domain", "memory", "guest"), guest.String(), defaulting.FromKubeVirt)
}

func setTopology(n *notes, spec *kubevirtv1.VirtualMachineInstanceSpec, instancetype bool) {
	if cpu := spec.Domain.CPU; instancetype || cpu != nil && (cpu.Cores != 0 || cpu.Sockets != 0 || cpu.Threads != 0) {
		return
	}
	if spec.Domain.CPU == nil {
		spec.Domain.CPU = &kubevirtv1.CPU{}
	}
	sockets := int64(1)
	if limit, ok := spec.Domain.Resources.Limits[corev1.ResourceCPU]; ok {
		sockets = limit.Value()
	} else if request, ok := spec.Domain.Resources.Requests[corev1.ResourceCPU]; ok {
		sockets = request.Value()
	}
	path := In("domain", "cpu")
	fill(n, &spec.Domain.CPU.Sockets, uint32(sockets), defaulting.FromKubeVirt, path.Then("sockets"))
	fill(n, &spec.Domain.CPU.Cores, 1, defaulting.FromKubeVirt, path.Then("cores"))
	fill(n, &spec.Domain.CPU.Threads, 1, defaulting.FromKubeVirt, path.Then("threads"))
}
