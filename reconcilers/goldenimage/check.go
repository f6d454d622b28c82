package goldenimage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/internal/outbound"
	"github.com/vmstencil/stencil/internal/s3"
)

// check checks the source of an image.
func (r *Reconciler) check(ctx context.Context, image *v1alpha1.GoldenImage) *goldenimage.Check {
	source := image.Spec.Source
	if source.PVC != nil || source.Registry != nil && source.Registry.ImageStream != "" {
		return r.checkObject(ctx, image)
	}
	var field, secret, authorities string
	switch {
	case source.HTTP != nil:
		field, secret, authorities = "http", source.HTTP.SecretRef, source.HTTP.CertConfigMap
	case source.S3 != nil:
		field, secret, authorities = "s3", source.S3.SecretRef, source.S3.CertConfigMap
	default:
		field, secret, authorities = "registry", source.Registry.SecretRef, source.Registry.CertConfigMap
	}
	if source.HTTP != nil && source.HTTP.Checksum != "" {
		// No server is requested, so that no credentials are needed.
		secret, authorities = "", ""
	}
	with, err := r.credentials(ctx, image.Namespace, "spec.source."+field, secret, authorities)
	if err != nil {
		return &goldenimage.Check{Err: err}
	}
	if source.Registry != nil {
		return r.checkRegistry(ctx, image, with)
	}
	digest, err := r.web.Newest(ctx, image.Namespace+"/"+image.Name, &image.Spec, with)
	return &goldenimage.Check{Found: []goldenimage.Found{{Digest: digest}}, Err: err}
}

func (r *Reconciler) checkRegistry(ctx context.Context, image *v1alpha1.GoldenImage, with outbound.Credentials) *goldenimage.Check {
	found, err := r.registry.Newest(ctx, image.Spec.Source.Registry, image.Spec.Architectures, with)
	if err != nil {
		return &goldenimage.Check{Err: err}
	}
	check := &goldenimage.Check{Found: found}
	if image.Spec.Verify != nil {
		check.Verified, check.Err = r.verify(ctx, image, found, with)
	}
	return check
}

// verify returns the digests that are signed, and an error if one of those that could be imported is not.
func (r *Reconciler) verify(ctx context.Context, image *v1alpha1.GoldenImage, found []goldenimage.Found, with outbound.Credentials) ([]string, error) {
	verified, err := r.registry.Signed(ctx, image.Spec.Source.Registry, goldenimage.Unverified(image, found), image.Spec.Verify.PublicKeys, with)
	if err != nil {
		return nil, err
	}
	signed := func(digest string) bool {
		return slices.Contains(verified, digest) || goldenimage.Verified(image, digest)
	}
	if image.Spec.Digest != "" {
		for _, pinned := range goldenimage.Named(image, found, image.Spec.Digest) {
			if !signed(pinned) {
				return verified, fmt.Errorf("spec.digest: %s: %w", pinned, goldenimage.ErrNotSigned)
			}
		}
	}
	for _, one := range found {
		if !signed(one.Digest) {
			return verified, fmt.Errorf("%s:%s, %s: %w", image.Spec.Source.Registry.URL, one.Tag, one.Digest, goldenimage.ErrNotSigned)
		}
	}
	return verified, nil
}

// credentials reads the Secret and the ConfigMap of authorities of a source, each if it has a name. field is the path of the source.
func (r *Reconciler) credentials(ctx context.Context, namespace, field, secretName, authoritiesName string) (outbound.Credentials, error) {
	var with outbound.Credentials
	read := func(resource, name string, into any) error {
		object, err := r.get(ctx, corev1.SchemeGroupVersion.WithResource(resource), namespace, name)
		switch {
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%s %s/%s must not be read: add it to the chart's value goldenImages.readable", resource, namespace, name)
		case err != nil:
			return err
		case object == nil:
			return fmt.Errorf("%s %s/%s does not exist", resource, namespace, name)
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	}
	if secretName != "" {
		var secret corev1.Secret
		if err := read("secrets", secretName, &secret); err != nil {
			return with, fmt.Errorf("%s.secretRef: %w", field, err)
		}
		with.Username, with.Password = string(secret.Data[s3.AccessKey]), string(secret.Data[s3.SecretKey])
	}
	if authoritiesName != "" {
		var certificates corev1.ConfigMap
		if err := read("configmaps", authoritiesName, &certificates); err != nil {
			return with, fmt.Errorf("%s.certConfigMap: %w", field, err)
		}
		for _, text := range certificates.Data {
			with.Authorities = append(with.Authorities, []byte(text))
		}
	}
	return with, nil
}
