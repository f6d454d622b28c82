package goldenimage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/reconcilers/goldenimage/outbound"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// gather reads what belongs to an image. It reads the API server itself: a cache may be older than the event.
func (r *Reconciler) gather(ctx context.Context, image *v1alpha1.GoldenImage) (goldenimage.State, error) {
	s := goldenimage.State{
		Image: image, Now: time.Now(),
		Sources: map[string]*goldenimage.DataSource{}, Crons: map[string]*goldenimage.Cron{}, Provided: map[string]bool{},
	}
	names := goldenimage.Names(image)
	crons := map[string]bool{}
	for _, name := range names {
		object, err := r.get(ctx, goldenimage.DataSources, image.Namespace, name)
		if err != nil {
			return s, err
		}
		crons[name] = true
		if object != nil {
			s.Sources[name] = dataSource(object)
			crons[object.GetLabels()[goldenimage.LabelDataImportCron]] = true
		}
	}
	delete(crons, "")
	for name := range crons {
		object, err := r.get(ctx, goldenimage.DataImportCrons, image.Namespace, name)
		if err != nil {
			return s, err
		}
		if object != nil {
			s.Crons[name] = importCron(object)
		}
	}
	managed := goldenimage.Managed(image)
	for _, name := range managed {
		object, err := r.get(ctx, goldenimage.Claims, image.Namespace, name)
		if err != nil {
			return s, err
		}
		s.Provided[name] = object != nil
	}
	var err error
	s.Volumes, err = r.volumes(ctx, image)
	return s, err
}

// get returns an object, nil if there is none.
func (r *Reconciler) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := r.account.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	return object, nil
}

// volumes lists the volumes of an image. CDI copies the label of a DataImportCron to what it imports.
func (r *Reconciler) volumes(ctx context.Context, image *v1alpha1.GoldenImage) ([]goldenimage.Volume, error) {
	var volumes []goldenimage.Volume
	of := metav1.ListOptions{LabelSelector: v1alpha1.LabelGoldenImage + "=" + image.Name}
	for _, resource := range []schema.GroupVersionResource{goldenimage.DataVolumes, goldenimage.Claims, goldenimage.Snapshots} {
		listed, err := r.account.Resource(resource).Namespace(image.Namespace).List(ctx, of)
		if apierrors.IsNotFound(err) {
			// The cluster has no snapshots.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing the %s of GoldenImage %s/%s: %w", resource.Resource, image.Namespace, image.Name, err)
		}
		for i := range listed.Items {
			object := &listed.Items[i]
			if object.GetDeletionTimestamp() != nil {
				continue
			}
			volume := goldenimage.Volume{Resource: resource, Name: object.GetName(), Labels: object.GetLabels()}
			if resource == goldenimage.DataVolumes {
				volume.Progress, volume.Problem = progress(object.Object)
			}
			volumes = append(volumes, volume)
		}
	}
	return volumes, nil
}

// conflict is in the message of an error after which CDI reads the object again and continues.
const conflict = "the object has been modified"

// progress returns the progress of a DataVolume, and the message of CDI if its importer fails.
func progress(dataVolume map[string]any) (percent, problem string) {
	status := machine.MapAt(dataVolume, "status")
	percent = machine.StringAt(status, "progress")
	if percent == "N/A" {
		percent = machine.StringAt(status, "phase")
	}
	for _, condition := range machine.MapsAt(status, "conditions") {
		reason, message := machine.StringAt(condition, "reason"), machine.StringAt(condition, "message")
		failed := machine.StringAt(condition, "type") == "Running" && machine.StringAt(condition, "status") == "False" && (reason == "Error" || reason == "ImagePullFailed")
		unbound := machine.StringAt(condition, "type") == "Bound" && (strings.HasPrefix(reason, "Err") || reason == "Pending" && strings.Contains(message, "rror"))
		switch {
		case message == "" || strings.Contains(message, conflict):
		case failed:
			return percent, message
		case unbound:
			problem = message
		}
	}
	return percent, problem
}

func dataSource(object *unstructured.Unstructured) *goldenimage.DataSource {
	return &goldenimage.DataSource{
		Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Owners: object.GetOwnerReferences(),
		Source: machine.MapAt(object.Object, "spec", "source"),
		Ready:  ready(object.Object),
	}
}

func importCron(object *unstructured.Unstructured) *goldenimage.Cron {
	status := machine.MapAt(object.Object, "status")
	made := &goldenimage.Cron{Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Deleting: object.GetDeletionTimestamp() != nil}
	if imports := machine.MapsAt(status, "currentImports"); len(imports) > 0 {
		made.Volume, made.Digest = machine.StringAt(imports[0], "DataVolumeName"), machine.StringAt(imports[0], "Digest")
	}
	made.Imported = machine.StringAt(machine.MapAt(status, "lastImportedPVC"), "name")
	if at, err := time.Parse(time.RFC3339, machine.StringAt(status, "lastImportTimestamp")); err == nil {
		made.ImportedAt = &metav1.Time{Time: at}
	}
	return made
}

// ready reports whether the condition Ready of an object is true.
func ready(object map[string]any) bool {
	return slices.ContainsFunc(machine.MapsAt(machine.MapAt(object, "status"), "conditions"), func(one map[string]any) bool {
		return machine.StringAt(one, "type") == "Ready" && machine.StringAt(one, "status") == "True"
	})
}

// check checks the source of an image.
func (r *Reconciler) check(ctx context.Context, image *v1alpha1.GoldenImage) *goldenimage.Check {
	source := image.Spec.Source.Registry
	if source == nil && image.Spec.Source.PVC == nil {
		return &goldenimage.Check{Err: errors.New("sources other than registries are not checked yet: use spec.source.registry")}
	}
	if image.Spec.Source.PVC != nil || source.ImageStream != "" {
		return r.checkObject(ctx, image)
	}
	with, err := r.credentials(ctx, image.Namespace, source)
	if err != nil {
		return &goldenimage.Check{Err: err}
	}
	found, err := r.registry.Newest(ctx, source, image.Spec.Architectures, with)
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

func (r *Reconciler) credentials(ctx context.Context, namespace string, source *v1alpha1.GoldenImageRegistry) (outbound.Credentials, error) {
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
	if source.SecretRef != "" {
		var secret corev1.Secret
		if err := read("secrets", source.SecretRef, &secret); err != nil {
			return with, fmt.Errorf("spec.source.registry.secretRef: %w", err)
		}
		with.Username, with.Password = string(secret.Data["accessKeyId"]), string(secret.Data["secretKey"])
	}
	if source.CertConfigMap != "" {
		var certificates corev1.ConfigMap
		if err := read("configmaps", source.CertConfigMap, &certificates); err != nil {
			return with, fmt.Errorf("spec.source.registry.certConfigMap: %w", err)
		}
		for _, text := range certificates.Data {
			with.Authorities = append(with.Authorities, []byte(text))
		}
	}
	return with, nil
}
