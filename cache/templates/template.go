package templates

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cache/watching"
	"github.com/vmstencil/stencil/internal/intern"
	"github.com/vmstencil/stencil/template"
)

// Template is one version of one VirtualMachineTemplate. It is immutable.
type Template struct {
	// These are the metadata of the object that anything reads: a metav1.ObjectMeta takes twice the memory.
	Namespace, Name string
	UID             types.UID
	Generation      int64
	ResourceVersion string
	labels          pairs
	// annotations do not contain kubectl's copy of the manifest, and no copy of extensions.
	annotations pairs
	// conditions are ignored when versions are compared.
	conditions []condition
	// Sources is a digest of the rest of the object's status (Digest). It is ignored when versions are compared, too.
	Sources uint64

	content *content
}

// content is the spec of a template, which is compiled when it is needed first. Versions with the same content share it.
type content struct {
	once sync.Once
	// spec is nil once it is compiled.
	spec     *v1beta1.VirtualMachineTemplateSpec
	compiled *template.Compiled
	invalid  error
}

func (c *content) compile() {
	c.once.Do(func() {
		c.compiled, c.invalid = template.Compile(&v1beta1.VirtualMachineTemplate{Spec: *c.spec})
		c.spec = nil
	})
}

// Compiled returns the compiled template, or the error of the compilation. The first call compiles it.
func (t *Template) Compiled() (*template.Compiled, error) {
	t.content.compile()
	return t.content.compiled, t.content.invalid
}

// Metadata returns the metadata of the object.
func (t *Template) Metadata() *metav1.ObjectMeta {
	return &metav1.ObjectMeta{
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, Generation: t.Generation, ResourceVersion: t.ResourceVersion,
		Labels: t.Labels(), Annotations: t.Annotations(),
	}
}

// Labels returns a copy of the labels of the object, nil if there are none.
func (t *Template) Labels() map[string]string { return t.labels.toMap() }

// Annotations returns a copy of the annotations of the object except kubectl's copy of the manifest, nil if there are none.
func (t *Template) Annotations() map[string]string { return t.annotations.toMap() }

// Annotation returns the value of an annotation, empty if there is none.
func (t *Template) Annotation(key string) string { return t.annotations.get(key) }

// Conditions returns a copy of the conditions of the object's status.
func (t *Template) Conditions() []metav1.Condition {
	var out []metav1.Condition
	for _, c := range t.conditions {
		out = append(out, c.whole())
	}
	return out
}

// Compile makes a Template of an object, valid or not.
func Compile(object *v1beta1.VirtualMachineTemplate) *Template {
	t := read(object, nil)
	t.content.compile()
	return t
}

// Updated returns a Template with the content of t, and with the metadata and status of a later version of the object that has the same UID
// and generation.
func (t *Template) Updated(object *v1beta1.VirtualMachineTemplate) *Template {
	return t.withMetadataOf(object, nil)
}

// read is Compile without compiling. It retains the spec of the object until then.
func read(object *v1beta1.VirtualMachineTemplate, texts *intern.Texts) *Template {
	t := &Template{
		Namespace:  texts.Of(object.Namespace),
		Name:       object.Name,
		UID:        object.UID,
		Generation: object.Generation,
		// A copy, so that the rest of the object can be collected.
		content: &content{spec: sharedSpec(object.Spec, texts)},
	}
	return t.withMetadataOf(object, texts)
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
		!slices.Equal(t.labels, other.labels) || !slices.Equal(t.annotations, other.annotations)
}

// withMetadataOf returns a Template with the metadata of object and the
// compiled content of t, which must be of the same UID and generation.
func (t *Template) withMetadataOf(object *v1beta1.VirtualMachineTemplate, texts *intern.Texts) *Template {
	updated := *t
	updated.ResourceVersion = object.ResourceVersion
	updated.labels = pairsOf(object.Labels, texts)
	annotations := watching.Annotations(object)
	if _, found := annotations[contract.AnnotationExtensions]; found {
		// A copy of fields of the spec, which nothing reads from here.
		annotations = maps.Clone(annotations)
		delete(annotations, contract.AnnotationExtensions)
	}
	updated.annotations = pairsOf(annotations, texts)
	updated.conditions = conditionsOf(object.Status.Conditions, texts)
	updated.Sources = Digest(&object.Status.TemplateSources)
	return &updated
}
