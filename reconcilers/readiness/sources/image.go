package sources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// Image is what the annotations of a DataSource report about the image that it stands for. The values are unchecked: users can write them.
type Image struct {
	// GoldenImage is the name of the GoldenImage that keeps the DataSource up to date.
	GoldenImage string
	Digest      string
	// ImportedAt is when the image was imported, and StaleAfter when it should have been replaced, in the format of RFC 3339.
	ImportedAt, StaleAfter string
}

// maximumAnnotation is the maximum length of a stored annotation, in bytes. Longer ones are malformed, and stay so when they are cut.
const maximumAnnotation = 256

func imageOf(object *unstructured.Unstructured) Image {
	annotations := object.GetAnnotations()
	at := func(key string) string { return excerpt.Of(annotations[key], maximumAnnotation) }
	return Image{
		GoldenImage: at(v1alpha1.AnnotationGoldenImage), Digest: at(v1alpha1.AnnotationImageDigest),
		ImportedAt: at(v1alpha1.AnnotationImageImportedAt), StaleAfter: at(v1alpha1.AnnotationImageStaleAfter),
	}
}
