package readiness

import (
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// dependencies are the objects that a VM depends on.
type dependencies struct {
	volumes []volume
	// instancetypes and preferences have several elements if the user chooses one.
	instancetypes, preferences []reference
	networks                   []network
}

// add adds what another VM of the template depends on.
func (d *dependencies) add(other dependencies) {
	d.volumes = united(d.volumes, other.volumes)
	d.instancetypes = united(d.instancetypes, other.instancetypes)
	d.preferences = united(d.preferences, other.preferences)
	d.networks = united(d.networks, other.networks)
}

// united appends the elements of another list that a list lacks.
func united[T comparable](all, more []T) []T {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// volume is a volume and the source of its content.
type volume struct {
	name string
	reference
}

// reference is an object that a VM refers to.
type reference struct {
	sources.Key
	// state is the state of objects that are not read; empty for those that are.
	state v1beta1.SourceStatus
	// relative is set if VMs of other namespaces refer to another object, of their own namespace.
	relative bool
}

type network struct {
	name string
	sources.Key
}

// sourceKind is a source of DataVolumes, by its field.
type sourceKind struct {
	field string
	kind  sources.Kind
}

var (
	// localKinds are the sources that are objects, remoteKinds those that are outside the cluster.
	localKinds  = []sourceKind{{"pvc", sources.Claim}, {"snapshot", sources.Snapshot}}
	remoteKinds = []sourceKind{
		{"registry", "Registry"}, {"http", "HTTP"}, {"s3", "S3"}, {"gcs", "GCS"}, {"imageio", "Imageio"}, {"vddk", "VDDK"},
	}
)

// find returns the dependencies of a VM in a namespace. Fields of the wrong type are ignored: the condition Valid reports them.
func find(object map[string]any, namespace string) dependencies {
	var found dependencies
	spec := machine.MapAt(object, "spec")
	templated := map[string]bool{}
	for _, one := range machine.MapsAt(spec, "dataVolumeTemplates") {
		name := machine.StringAt(machine.MapAt(one, "metadata"), "name")
		templated[name] = true
		from := machine.MapAt(one, "spec")
		found.volumes = append(found.volumes, volume{name, filledFrom(from, namespace)})
		for _, needed := range importSecrets(machine.MapAt(from, "source"), namespace) {
			found.volumes = append(found.volumes, volume{name, needed})
		}
	}
	pod := machine.MapAt(machine.MapAt(spec, "template"), "spec")
	for _, one := range machine.MapsAt(pod, "volumes") {
		for _, from := range volumeReferences(one, namespace) {
			// The claim of a DataVolume has the same name, and KubeVirt permits a volume to refer to either.
			if from.Kind != sources.DataVolume && from.Kind != sources.Claim || !templated[from.Name] {
				found.volumes = append(found.volumes, volume{machine.StringAt(one, "name"), from})
			}
		}
	}
	found.volumes = append(found.volumes, credentials(pod, namespace)...)
	found.instancetypes = sizing(machine.MapAt(spec, "instancetype"), namespace, sources.ClusterInstancetype, sources.Instancetype)
	found.preferences = sizing(machine.MapAt(spec, "preference"), namespace, sources.ClusterPreference, sources.Preference)
	for _, one := range machine.MapsAt(pod, "networks") {
		if name := machine.StringAt(machine.MapAt(one, "multus"), "networkName"); name != "" {
			key := sources.Key{Kind: sources.Network, Namespace: namespace, Name: name}
			if space, rest, qualified := strings.Cut(name, "/"); qualified {
				key.Namespace, key.Name = space, rest
			}
			found.networks = append(found.networks, network{machine.StringAt(one, "name"), key})
		}
	}
	return found
}

// filledFrom returns the source of a DataVolume.
func filledFrom(spec map[string]any, namespace string) reference {
	if from := machine.MapAt(spec, "sourceRef"); from != nil {
		return reference{
			Key:      keyIn(sources.Kind(machine.StringAt(from, "kind")), from, namespace),
			relative: machine.StringAt(from, "namespace") == "",
		}
	}
	source := machine.MapAt(spec, "source")
	for _, local := range localKinds {
		if from := machine.MapAt(source, local.field); from != nil {
			return reference{Key: keyIn(local.kind, from, namespace)}
		}
	}
	for _, elsewhere := range remoteKinds {
		if _, is := source[elsewhere.field]; is {
			return reference{Key: sources.Key{Kind: elsewhere.kind}, state: remote}
		}
	}
	for _, claim := range []string{"storage", "pvc"} {
		for _, field := range []string{"dataSourceRef", "dataSource"} {
			if from := machine.MapAt(machine.MapAt(spec, claim), field); from != nil {
				return populatedFrom(from, namespace)
			}
		}
	}
	if _, is := source["upload"]; is {
		return reference{Key: sources.Key{Kind: "Upload"}, state: v1beta1.SourceStatus{State: v1beta1.SourceReady}}
	}
	return reference{Key: sources.Key{Kind: "Blank"}, state: v1beta1.SourceStatus{State: v1beta1.SourceReady}}
}

var remote = v1beta1.SourceStatus{State: v1beta1.SourceRemote}

// populatedFrom returns the source from which the storage or a volume populator fills a claim.
func populatedFrom(from map[string]any, namespace string) reference {
	group, kind := machine.StringAt(from, "apiGroup"), sources.Kind(machine.StringAt(from, "kind"))
	switch {
	case group == "", kind == sources.Snapshot && group == sources.SnapshotGroup:
		return reference{Key: keyIn(kind, from, namespace)}
	default:
		return reference{Key: keyIn(sources.KindIn(group, string(kind)), from, namespace)}
	}
}

// volumeReferences returns the sources of a volume of a VM: none for volumes that are created with the VM.
func volumeReferences(one map[string]any, namespace string) []reference {
	switch {
	case one["containerDisk"] != nil:
		image := reference{Key: sources.Key{Kind: "ContainerDisk"}, state: remote}
		return append([]reference{image}, hidden("Secret", machine.MapAt(one, "containerDisk"), "imagePullSecret", namespace)...)
	case one["dataVolume"] != nil:
		return named(sources.DataVolume, machine.MapAt(one, "dataVolume"), "name", namespace)
	case one["persistentVolumeClaim"] != nil:
		return named(sources.Claim, machine.MapAt(one, "persistentVolumeClaim"), "claimName", namespace)
	case one["ephemeral"] != nil:
		return named(sources.Claim, machine.MapAt(machine.MapAt(one, "ephemeral"), "persistentVolumeClaim"), "claimName", namespace)
	default:
		return hiddenReferences(one, namespace)
	}
}

// named returns a reference to an object by a field, or none if the field is empty.
func named(kind sources.Kind, in map[string]any, field, namespace string) []reference {
	name := machine.StringAt(in, field)
	if name == "" {
		return nil
	}
	return []reference{{Key: sources.Key{Kind: kind, Namespace: namespace, Name: name}}}
}

// sizing returns the instance type or the preference that a matcher names; nil if it is empty.
func sizing(matcher map[string]any, namespace string, clusterWide, namespaced sources.Kind) []reference {
	if len(matcher) == 0 {
		return nil
	}
	found := reference{Key: sources.Key{Kind: clusterWide, Name: machine.StringAt(matcher, "name")}}
	// KubeVirt accepts kinds in any case, in singular and plural.
	if strings.EqualFold(strings.TrimSuffix(strings.ToLower(machine.StringAt(matcher, "kind")), "s"), string(namespaced)) {
		found.Kind, found.Namespace = namespaced, namespace
	}
	if found.Name == "" {
		found.state = v1beta1.SourceStatus{State: v1beta1.SourceUnknown, Reason: reasonInferred, Message: "KubeVirt infers it from a volume when the VirtualMachine is created"}
	}
	return []reference{found}
}

// keyIn returns the key of an object; its namespace is optional.
func keyIn(kind sources.Kind, from map[string]any, namespace string) sources.Key {
	if kind == "" {
		kind = sources.DataSource
	}
	if own := machine.StringAt(from, "namespace"); own != "" {
		namespace = own
	}
	return sources.Key{Kind: kind, Namespace: namespace, Name: machine.StringAt(from, "name")}
}
