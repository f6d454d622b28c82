package goldenimage

import (
	"fmt"
	"slices"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// maximumIndexes is the number of indexes that are known of an image.
const maximumIndexes = 8

// desire sets the digest that an architecture is to be imported with. A digest that pins the image may be that of an index.
func (d *decision) desire(a *architecture) {
	pinned, available := d.image.Spec.Digest, a.Available
	switch image := d.match(a.Name, pinned); {
	case pinned == "" && available != nil:
		a.desired = available.Digest
	case image != nil:
		a.desired = image.Digest
	case pinned != "" && available != nil && available.Index == pinned:
		a.desired = available.Digest
	case pinned != "" && (anyDigest(d.image) || available != nil && available.Digest == pinned):
		a.desired = pinned
	default:
		// It stays what it is.
		if pinned != "" && available != nil {
			a.unknown = fmt.Sprintf("spec.digest: no image has the digest %s: take one of status.history", pinned)
		}
		if a.unknown != "" && len(d.image.Spec.Architectures) > 1 {
			a.unknown = fmt.Sprintf("spec.digest: no image for %s has the digest %s, nor its index: take the digest of an index from status.history", a.Name, pinned)
		}
	}
}

// anyDigest reports whether the source has images of any digest, that of an index too: CDI would import from an image stream or a claim what they
// have now.
func anyDigest(image *v1alpha1.GoldenImage) bool {
	registry := image.Spec.Source.Registry
	return registry != nil && registry.URL != "" && len(image.Spec.Architectures) <= 1
}

// match returns the imported image with a digest, its own or that of one of its indexes; nil if there is none.
func (d *decision) match(architecture, digest string) *v1alpha1.ImportedImage {
	if image := d.find(architecture, digest); image != nil {
		return image
	}
	for i, image := range d.plan.Status.History {
		if image.Architecture == architecture && slices.Contains(image.Indexes, digest) {
			return &d.plan.Status.History[i]
		}
	}
	return nil
}

// indexes adds the indexes of the newest images to those of the history: a new index may name an image that was imported.
func (d *decision) indexes() {
	for _, a := range d.plan.Status.Architectures {
		if a.Available == nil {
			continue
		}
		if image := d.find(a.Name, a.Available.Digest); image != nil {
			image.Indexes = withIndex(image.Indexes, a.Available.Index)
		}
	}
}

// withIndex returns indexes with another at the first place.
func withIndex(indexes []string, index string) []string {
	if index == "" || len(indexes) > 0 && indexes[0] == index {
		return indexes
	}
	indexes = slices.DeleteFunc(slices.Clone(indexes), func(one string) bool { return one == index })
	indexes = slices.Insert(indexes, 0, index)
	return indexes[:min(len(indexes), maximumIndexes)]
}
