package sources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of an object that a template depends on.
type Kind string

// The watched kinds.
const (
	DataSource          Kind = "DataSource"
	DataVolume          Kind = "DataVolume"
	Claim               Kind = "PersistentVolumeClaim"
	Snapshot            Kind = "VolumeSnapshot"
	Instancetype        Kind = "VirtualMachineInstancetype"
	ClusterInstancetype Kind = "VirtualMachineClusterInstancetype"
	Preference          Kind = "VirtualMachinePreference"
	ClusterPreference   Kind = "VirtualMachineClusterPreference"
	Network             Kind = "NetworkAttachmentDefinition"
)

// Key names an object.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the kind and the name of the object, as messages show them.
func (k Key) String() string {
	if k.Namespace == "" {
		return string(k.Kind) + " " + k.Name
	}
	return string(k.Kind) + " " + k.Namespace + "/" + k.Name
}

// watched is how a kind is watched.
type watched struct {
	resource schema.GroupVersionResource
	// reduce returns the reduced form of an object; nil if only its existence matters, and only metadata is read.
	reduce func(*unstructured.Unstructured) Object
}

// SnapshotGroup is the API group of VolumeSnapshots.
const SnapshotGroup = "snapshot.storage.k8s.io"

const (
	cdiGroup          = "cdi.kubevirt.io"
	instancetypeGroup = "instancetype.kubevirt.io"
)

// kinds returns all watched kinds.
func kinds(populators []Populator) map[Kind]watched {
	at := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	all := map[Kind]watched{
		DataSource:          {at(cdiGroup, "v1beta1", "datasources"), reduceDataSource},
		DataVolume:          {at(cdiGroup, "v1beta1", "datavolumes"), reduceDataVolume},
		Claim:               {at("", "v1", "persistentvolumeclaims"), reduceClaim},
		Snapshot:            {at(SnapshotGroup, "v1", "volumesnapshots"), reduceSnapshot},
		Instancetype:        {at(instancetypeGroup, "v1beta1", "virtualmachineinstancetypes"), nil},
		ClusterInstancetype: {at(instancetypeGroup, "v1beta1", "virtualmachineclusterinstancetypes"), nil},
		Preference:          {at(instancetypeGroup, "v1beta1", "virtualmachinepreferences"), nil},
		ClusterPreference:   {at(instancetypeGroup, "v1beta1", "virtualmachineclusterpreferences"), nil},
		Network:             {at("k8s.cni.cncf.io", "v1", "network-attachment-definitions"), nil},
	}
	for _, each := range populators {
		all[KindIn(each.Group, each.Kind)] = watched{each.GroupVersion().WithResource(each.Resource), reducePopulator}
	}
	return all
}
