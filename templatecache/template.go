package templatecache

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

// Template is one version of one VirtualMachineTemplate. It is immutable.
type Template struct {
	// ObjectMeta holds the namespace, name, UID, generation, resource version
	// and labels of the object, and nothing else of its metadata.
	metav1.ObjectMeta

	compiled *template.Compiled
	invalid  error
}

// Compiled returns the compiled template, or the error for which the engine
// refused to compile it.
func (t *Template) Compiled() (*template.Compiled, error) {
	return t.compiled, t.invalid
}

// Compile makes a Template of an object, valid or not.
func Compile(object *v1beta1.VirtualMachineTemplate) *Template {
	t := &Template{ObjectMeta: metav1.ObjectMeta{
		Namespace:       object.Namespace,
		Name:            object.Name,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Labels:          object.Labels,
	}}
	t.compiled, t.invalid = template.Compile(object)
	return t
}

// differs says whether the content or the labels of two versions differ.
func (t *Template) differs(other *Template) bool {
	return t.UID != other.UID || t.Generation != other.Generation || !maps.Equal(t.Labels, other.Labels)
}

// withMetadataOf returns a Template with the metadata of object and the
// compiled content of t, which must be of the same UID and generation.
func (t *Template) withMetadataOf(object *v1beta1.VirtualMachineTemplate) *Template {
	fresh := *t
	fresh.ResourceVersion = object.ResourceVersion
	fresh.Labels = object.Labels
	return &fresh
}
