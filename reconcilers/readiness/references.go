package readiness

import (
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/machine"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// dependencies are what a machine depends on.
type dependencies struct {
	volumes                  []volume
	instancetype, preference *reference
	networks                 []network
}

// volume is a volume and what its content comes from.
type volume struct {
	name string
	reference
}

// reference is something that a machine names.
type reference struct {
	sources.Key
	// known is the state of what is not looked for; empty for objects that are.
	known v1beta1.SourceStatus
}

type network struct {
	name string
	sources.Key
}

// remoteKinds are the sources of DataVolumes that are outside the cluster, by their field.
var remoteKinds = map[string]sources.Kind{
	"registry": "Registry", "http": "HTTP", "s3": "S3", "gcs": "GCS", "imageio": "Imageio", "vddk": "VDDK",
}

// find returns what a machine in a namespace depends on. What is not shaped like a VirtualMachine is passed over: that is said by the
// condition Valid.
func find(object map[string]any, namespace string) dependencies {
	var found dependencies
	spec := mapAt(object, "spec")
	templated := map[string]bool{}
	for _, one := range mapsAt(spec, "dataVolumeTemplates") {
		name := machine.StringAt(mapAt(one, "metadata"), "name")
		templated[name] = true
		found.volumes = append(found.volumes, volume{name, filledFrom(mapAt(one, "spec"), namespace)})
	}
	pod := mapAt(mapAt(spec, "template"), "spec")
	for _, one := range mapsAt(pod, "volumes") {
		for _, from := range volumeReferences(one, namespace) {
			if from.Kind != sources.DataVolume || !templated[from.Name] {
				found.volumes = append(found.volumes, volume{machine.StringAt(one, "name"), from})
			}
		}
	}
	found.instancetype = sizing(mapAt(spec, "instancetype"), namespace, sources.ClusterInstancetype, sources.Instancetype)
	found.preference = sizing(mapAt(spec, "preference"), namespace, sources.ClusterPreference, sources.Preference)
	for _, one := range mapsAt(pod, "networks") {
		if name := machine.StringAt(mapAt(one, "multus"), "networkName"); name != "" {
			key := sources.Key{Kind: sources.Network, Namespace: namespace, Name: name}
			if space, rest, qualified := strings.Cut(name, "/"); qualified {
				key.Namespace, key.Name = space, rest
			}
			found.networks = append(found.networks, network{machine.StringAt(one, "name"), key})
		}
	}
	return found
}

// filledFrom returns what a DataVolume is filled from.
func filledFrom(spec map[string]any, namespace string) reference {
	if from := mapAt(spec, "sourceRef"); from != nil {
		return reference{Key: keyIn(sources.Kind(machine.StringAt(from, "kind")), from, namespace)}
	}
	source := mapAt(spec, "source")
	for field, kind := range map[string]sources.Kind{"pvc": sources.Claim, "snapshot": sources.Snapshot} {
		if from := mapAt(source, field); from != nil {
			return reference{Key: keyIn(kind, from, namespace)}
		}
	}
	for field, kind := range remoteKinds {
		if _, is := source[field]; is {
			return reference{Key: sources.Key{Kind: kind}, known: remote}
		}
	}
	if _, is := source["upload"]; is {
		return reference{Key: sources.Key{Kind: "Upload"}, known: v1beta1.SourceStatus{State: v1beta1.SourceReady}}
	}
	return reference{Key: sources.Key{Kind: "Blank"}, known: v1beta1.SourceStatus{State: v1beta1.SourceReady}}
}

var (
	remote = v1beta1.SourceStatus{State: v1beta1.SourceRemote}
	// unread is the state of Secrets and ConfigMaps: to see which there are, Stencil would have to be allowed to read all of them.
	unread = v1beta1.SourceStatus{State: v1beta1.SourceUnknown, Reason: reasonNotRead, Message: "Stencil may not read objects of this kind"}
)

// volumeReferences returns what a volume of a machine comes from: nothing for volumes that are made with the machine.
func volumeReferences(one map[string]any, namespace string) []reference {
	object := func(kind sources.Kind, in map[string]any, field string) []reference {
		name := machine.StringAt(in, field)
		if name == "" {
			return nil
		}
		return []reference{{Key: sources.Key{Kind: kind, Namespace: namespace, Name: name}}}
	}
	hidden := func(kind sources.Kind, in map[string]any, field string) []reference {
		found := object(kind, in, field)
		for i := range found {
			found[i].known = unread
		}
		return found
	}
	switch {
	case one["containerDisk"] != nil:
		return []reference{{Key: sources.Key{Kind: "ContainerDisk"}, known: remote}}
	case one["dataVolume"] != nil:
		return object(sources.DataVolume, mapAt(one, "dataVolume"), "name")
	case one["persistentVolumeClaim"] != nil:
		return object(sources.Claim, mapAt(one, "persistentVolumeClaim"), "claimName")
	case one["ephemeral"] != nil:
		return object(sources.Claim, mapAt(mapAt(one, "ephemeral"), "persistentVolumeClaim"), "claimName")
	case one["secret"] != nil:
		return hidden("Secret", mapAt(one, "secret"), "secretName")
	case one["configMap"] != nil:
		return hidden("ConfigMap", mapAt(one, "configMap"), "name")
	case one["sysprep"] != nil:
		return append(hidden("Secret", mapAt(mapAt(one, "sysprep"), "secret"), "name"),
			hidden("ConfigMap", mapAt(mapAt(one, "sysprep"), "configMap"), "name")...)
	}
	for _, kind := range []string{"cloudInitNoCloud", "cloudInitConfigDrive"} {
		if data := mapAt(one, kind); data != nil {
			return append(hidden("Secret", mapAt(data, "secretRef"), "name"), hidden("Secret", mapAt(data, "networkDataSecretRef"), "name")...)
		}
	}
	return nil
}

// sizing returns the instance type or the preference that a matcher names; nil when it is empty.
func sizing(matcher map[string]any, namespace string, clusterWide, namespaced sources.Kind) *reference {
	if len(matcher) == 0 {
		return nil
	}
	found := &reference{Key: sources.Key{Kind: clusterWide, Name: machine.StringAt(matcher, "name")}}
	if strings.EqualFold(machine.StringAt(matcher, "kind"), string(namespaced)) {
		found.Kind, found.Namespace = namespaced, namespace
	}
	if found.Name == "" {
		found.known = v1beta1.SourceStatus{State: v1beta1.SourceUnknown, Reason: reasonInferred, Message: "KubeVirt infers it from a volume when the VirtualMachine is created"}
	}
	return found
}

// keyIn is the key of an object that may say its namespace.
func keyIn(kind sources.Kind, from map[string]any, namespace string) sources.Key {
	if kind == "" {
		kind = sources.DataSource
	}
	if own := machine.StringAt(from, "namespace"); own != "" {
		namespace = own
	}
	return sources.Key{Kind: kind, Namespace: namespace, Name: machine.StringAt(from, "name")}
}

func mapAt(in map[string]any, key string) map[string]any {
	found, _ := in[key].(map[string]any)
	return found
}

func mapsAt(in map[string]any, key string) []map[string]any {
	list, _ := in[key].([]any)
	var found []map[string]any
	for _, item := range list {
		if one, is := item.(map[string]any); is {
			found = append(found, one)
		}
	}
	return found
}
