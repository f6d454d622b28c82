package gen

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Claim builds a PersistentVolumeClaim of 1Gi, for one writer.
func Claim(name string, modifiers ...Modifier) *unstructured.Unstructured {
	claim := Spec("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}")
	return build("v1", "PersistentVolumeClaim", name, append([]Modifier{claim}, modifiers...))
}
