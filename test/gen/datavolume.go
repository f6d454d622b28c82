package gen

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// DataVolume builds a DataVolume of 1Gi with a source in YAML, such as "{blank: {}}".
func DataVolume(name, source string, modifiers ...Modifier) *unstructured.Unstructured {
	volume := Spec("{source: " + source + ", storage: {resources: {requests: {storage: 1Gi}}}}")
	return build("cdi.kubevirt.io/v1beta1", "DataVolume", name, append([]Modifier{volume}, modifiers...))
}
