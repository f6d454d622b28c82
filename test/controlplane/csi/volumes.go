package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
)

const (
	provisionerAnnotation   = "volume.kubernetes.io/storage-provisioner"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
	// volumeFinalizer retains a volume until the driver has deleted its storage.
	volumeFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// reconcileClaim provisions the volume of a claim, and expands it.
func (d *Driver) reconcileClaim(ctx context.Context, namespace, name string) error {
	claim, err := d.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch {
	// kube-controller-manager sets the annotation to request a volume, once a node is selected if the class requires one.
	case claim.DeletionTimestamp != nil, claim.Annotations[provisionerAnnotation] != Name:
		return nil
	case claim.Spec.VolumeName == "":
		return d.provision(ctx, claim)
	case claim.Status.Phase == corev1.ClaimBound:
		return d.expand(ctx, claim)
	}
	return nil
}

func (d *Driver) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class, err := d.kube.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if populated(claim) {
		// A volume populator fills a volume and binds it to the claim.
		return nil
	}
	name := "pvc-" + string(claim.UID)
	if _, err := d.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{}); err == nil {
		return nil
	}
	rule := d.rules.rule(ProvisionVolume, claim.Namespace, claim.Name)
	err = rule.begin(ctx)
	if err == nil && rule.Vanish {
		return d.vanishClaim(ctx, claim.Namespace, claim.Name)
	}
	if err == nil {
		err = d.checkSource(ctx, claim)
	}
	if err != nil {
		if !errors.Is(err, errHeld) {
			d.event(ctx, describe(claim, "PersistentVolumeClaim"), "ProvisioningFailed",
				fmt.Sprintf("failed to provision volume with StorageClass %q: %v", class.Name, err))
		}
		return err
	}
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	_, err = d.kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{provisionedByAnnotation: Name},
			Finalizers:  []string{volumeFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Name, VolumeHandle: "volume-" + string(claim.UID)},
			},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		err = d.repeat(ctx, rule, claims, claim.Namespace, claim.Name)
	}
	return err
}

// populated reports whether a volume populator fills the claim instead of the driver.
func populated(claim *corev1.PersistentVolumeClaim) bool {
	source := claim.Spec.DataSourceRef
	return source != nil && source.Kind != "PersistentVolumeClaim" && source.Kind != "VolumeSnapshot"
}

// checkSource returns the reason why a claim cannot be filled from the snapshot or the claim that it names.
func (d *Driver) checkSource(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	source := claim.Spec.DataSource
	if source == nil {
		return nil
	}
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	var size resource.Quantity
	if source.Kind == "VolumeSnapshot" {
		snapshot, err := d.dynamic.Resource(snapshots).Namespace(claim.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("error getting snapshot %s from api server: %w", source.Name, asText(err))
		}
		ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
		text, _, _ := unstructured.NestedString(snapshot.Object, "status", "restoreSize")
		if !ready || snapshot.GetDeletionTimestamp() != nil {
			return fmt.Errorf("snapshot %s is not Ready", source.Name)
		}
		if text != "" {
			if size, err = resource.ParseQuantity(text); err != nil {
				return fmt.Errorf("snapshot %s has no usable size: %w", source.Name, err)
			}
		}
	} else {
		origin, err := d.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("error getting PVC %s (namespace %q) from api server: %w", source.Name, claim.Namespace, asText(err))
		}
		if origin.Status.Phase != corev1.ClaimBound || origin.DeletionTimestamp != nil {
			return fmt.Errorf("the PVC DataSource %s is not bound", source.Name)
		}
		size = origin.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	if wanted.Cmp(size) < 0 {
		return fmt.Errorf("requested volume size %d is less than the size %d for the source %s", wanted.Value(), size.Value(), source.Name)
	}
	return nil
}

// asText returns an error with the same text and without the type: a missing source does not mean that the claim is missing.
func asText(err error) error { return errors.New(err.Error()) }

// expand is the fake of external-resizer and of the node that would enlarge the filesystem.
func (d *Driver) expand(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	if wanted.Cmp(has) <= 0 {
		return nil
	}
	rule := d.rules.rule(ExpandVolume, claim.Namespace, claim.Name)
	if err := rule.begin(ctx); err != nil {
		if !errors.Is(err, errHeld) {
			d.event(ctx, describe(claim, "PersistentVolumeClaim"), "VolumeResizeFailed",
				fmt.Sprintf("resize volume %q by resizer %q failed: %v", claim.Spec.VolumeName, Name, err))
		}
		return err
	}
	if rule.Vanish {
		return d.vanishClaim(ctx, claim.Namespace, claim.Name)
	}
	if err := d.enlarge(ctx, claim, wanted); err != nil {
		return err
	}
	return d.repeat(ctx, rule, claims, claim.Namespace, claim.Name)
}

// enlarge writes the capacity of a volume and of its claim. A conflict must not repeat the step: its rule has been counted.
func (d *Driver) enlarge(ctx context.Context, claim *corev1.PersistentVolumeClaim, wanted resource.Quantity) error {
	capacity := corev1.ResourceList{corev1.ResourceStorage: wanted}
	volumes := d.kube.CoreV1().PersistentVolumes()
	err := conflict.Retry(func() error {
		volume, err := volumes.Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		volume.Spec.Capacity = capacity
		_, err = volumes.Update(ctx, volume, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	claims := d.kube.CoreV1().PersistentVolumeClaims(claim.Namespace)
	return conflict.Retry(func() error {
		current, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Status.Capacity = capacity
		_, err = claims.UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

// reconcileVolume deletes released volumes with the reclaim policy Delete, and removes the finalizer.
func (d *Driver) reconcileVolume(ctx context.Context, name string) error {
	volume, err := d.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || volume.Annotations[provisionedByAnnotation] != Name {
		return err
	}
	released := volume.Status.Phase == corev1.VolumeReleased && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	if !released && volume.DeletionTimestamp == nil {
		return nil
	}
	if released {
		claim := volume.Spec.ClaimRef
		if err := d.rules.rule(DeleteVolume, claim.Namespace, claim.Name).begin(ctx); err != nil {
			if !errors.Is(err, errHeld) {
				d.event(ctx, describe(volume, "PersistentVolume"), "VolumeFailedDelete", err.Error())
			}
			return err
		}
		if volume.DeletionTimestamp == nil {
			if err := d.kube.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID}}); err != nil {
				return err
			}
		}
	}
	if released || volume.Status.Phase == corev1.VolumeFailed {
		return d.release(ctx, name)
	}
	return nil
}

// release takes the driver's finalizer from a volume.
func (d *Driver) release(ctx context.Context, name string) error {
	volumes := d.kube.CoreV1().PersistentVolumes()
	return conflict.Retry(func() error {
		volume, err := volumes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.Index(volume.Finalizers, volumeFinalizer)
		if i < 0 {
			return nil
		}
		volume.Finalizers = slices.Delete(volume.Finalizers, i, i+1)
		_, err = volumes.Update(ctx, volume, metav1.UpdateOptions{})
		return err
	})
}

// describe names a typed object in an event.
func describe(object metav1.Object, kind string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion("v1")
	made.SetKind(kind)
	made.SetNamespace(object.GetNamespace())
	made.SetName(object.GetName())
	made.SetUID(object.GetUID())
	return made
}
