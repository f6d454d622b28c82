package goldenimage

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

var imageStreams = schema.GroupVersionResource{Group: "image.openshift.io", Version: "v1", Resource: "imagestreams"}

var sha256 = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkObject checks a source that is an object of the namespace, which has one image.
func (r *Reconciler) checkObject(ctx context.Context, image *v1alpha1.GoldenImage) *goldenimage.Check {
	var found goldenimage.Found
	var err error
	if claim := image.Spec.Source.PVC; claim != nil {
		found, err = r.claim(ctx, image.Namespace, claim.Name)
	} else {
		found, err = r.stream(ctx, image.Namespace, image.Spec.Source.Registry)
	}
	if err != nil {
		return &goldenimage.Check{Err: err}
	}
	return &goldenimage.Check{Found: []goldenimage.Found{found}}
}

// claim returns the image that a claim is. CDI names it by its UID.
func (r *Reconciler) claim(ctx context.Context, namespace, name string) (goldenimage.Found, error) {
	object, err := r.get(ctx, goldenimage.Claims, namespace, name)
	switch {
	case err != nil:
		return goldenimage.Found{}, err
	case object == nil || object.GetDeletionTimestamp() != nil:
		return goldenimage.Found{}, fmt.Errorf("spec.source.pvc: PersistentVolumeClaim %s/%s does not exist, or is being deleted", namespace, name)
	}
	return goldenimage.Found{Digest: "uid:" + string(object.GetUID())}, nil
}

// stream returns the newest image of a tag of an image stream.
func (r *Reconciler) stream(ctx context.Context, namespace string, source *v1alpha1.GoldenImageRegistry) (goldenimage.Found, error) {
	fail := func(format string, arguments ...any) (goldenimage.Found, error) {
		return goldenimage.Found{}, fmt.Errorf("spec.source.registry.imageStream: "+format, arguments...)
	}
	object, err := r.get(ctx, imageStreams, namespace, source.ImageStream)
	switch {
	case err != nil:
		return fail("%w", err)
	case object == nil:
		if _, err := r.wake.served.ServerResourcesForGroupVersion(imageStreams.GroupVersion().String()); apierrors.IsNotFound(err) {
			return fail("the cluster has no ImageStreams, because it is not OpenShift: use spec.source.registry.url")
		}
		return fail("ImageStream %s/%s does not exist", namespace, source.ImageStream)
	}
	tag := cmp.Or(source.Tag, goldenimage.DefaultTag)
	for _, one := range machine.MapsAt(machine.MapAt(object.Object, "status"), "tags") {
		if machine.StringAt(one, "tag") != tag {
			continue
		}
		for _, item := range machine.MapsAt(one, "items") {
			// The newest is the first.
			found := goldenimage.Found{Digest: machine.StringAt(item, "image"), Tag: tag, Reference: machine.StringAt(item, "dockerImageReference")}
			if !sha256.MatchString(found.Digest) || found.Reference == "" {
				return fail("tag %s of ImageStream %s/%s has an image without digest (sha256:…) or reference", tag, namespace, source.ImageStream)
			}
			return found, nil
		}
	}
	return fail("ImageStream %s/%s has no image for tag %s: see its status", namespace, source.ImageStream, tag)
}
