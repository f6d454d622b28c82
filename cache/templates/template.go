package templates

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/template"
)

// Template is one version of one VirtualMachineTemplate. It is immutable.
type Template struct {
	// ObjectMeta holds the namespace, name, UID, generation, resource version,
	// labels and annotations of the object, except kubectl's copy of the manifest,
	// and nothing else of its metadata.
	metav1.ObjectMeta
	// Conditions are those of the object's status. They are ignored when versions are compared.
	Conditions []metav1.Condition
	// Sources is a digest of the rest of the object's status (Digest). It is ignored when versions are compared, too.
	Sources uint64

	content *content
}

// content is the spec of a template, which is compiled when it is needed first. Versions with the same content share it.
type content struct {
	once sync.Once
	// spec is empty once it is compiled.
	spec     v1beta1.VirtualMachineTemplateSpec
	compiled *template.Compiled
	invalid  error
}

func (c *content) compile() {
	c.once.Do(func() {
		c.compiled, c.invalid = template.Compile(&v1beta1.VirtualMachineTemplate{Spec: c.spec})
		c.spec = v1beta1.VirtualMachineTemplateSpec{}
	})
}

// Compiled returns the compiled template, or the error of the compilation. The first call compiles it.
func (t *Template) Compiled() (*template.Compiled, error) {
	t.content.compile()
	return t.content.compiled, t.content.invalid
}

// Compile makes a Template of an object, valid or not.
func Compile(object *v1beta1.VirtualMachineTemplate) *Template {
	t := read(object)
	t.content.compile()
	return t
}

// read is Compile without compiling. It retains the spec of the object until then.
func read(object *v1beta1.VirtualMachineTemplate) *Template {
	return &Template{ObjectMeta: metav1.ObjectMeta{
		Namespace:       object.Namespace,
		Name:            object.Name,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Labels:          object.Labels,
		Annotations:     watching.Annotations(object),
	}, Conditions: object.Status.Conditions, Sources: Digest(&object.Status.TemplateSources), content: &content{spec: object.Spec}}
}

// Digest returns a digest of what templates depend on, so that the cache need not store it. It is zero if there is nothing.
func Digest(sources *v1beta1.TemplateSources) uint64 {
	if sources.Volumes == nil && sources.Networks == nil && sources.Instancetype == nil && sources.Preference == nil {
		return 0
	}
	sum := fnv.New64a()
	// Encoding types of strings cannot fail, nor can writing to a hash.
	_ = json.NewEncoder(sum).Encode(sources)
	return sum.Sum64()
}

// differs reports whether the content, labels or annotations of two versions differ.
func (t *Template) differs(other *Template) bool {
	return t.UID != other.UID || t.Generation != other.Generation ||
		!maps.Equal(t.Labels, other.Labels) || !maps.Equal(t.Annotations, other.Annotations)
}

// withMetadataOf returns a Template with the metadata of object and the
// compiled content of t, which must be of the same UID and generation.
func (t *Template) withMetadataOf(object *v1beta1.VirtualMachineTemplate) *Template {
	updated := *t
	updated.ResourceVersion = object.ResourceVersion
	updated.Labels = object.Labels
	updated.Annotations = watching.Annotations(object)
	updated.Conditions = object.Status.Conditions
	updated.Sources = Digest(&object.Status.TemplateSources)
	return &updated
}
