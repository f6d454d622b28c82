package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	size, handle := claim.Spec.Resources.Requests[corev1.ResourceStorage], volumePrefix+string(claim.UID)
	if err == nil {
		err = d.fill(ctx, claim, handle, size.Value())
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
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: Name, VolumeHandle: handle},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		if !apierrors.IsAlreadyExists(err) {
			err = errors.Join(err, d.store.remove(handle))
		}
		return err
	}
	return d.repeat(ctx, rule, claims, claim.Namespace, claim.Name)
}

// fill makes the bytes of a volume: none, or a copy of the source that the claim specifies.
func (d *Driver) fill(ctx context.Context, claim *corev1.PersistentVolumeClaim, handle string, size int64) error {
	source, err := d.checkSource(ctx, claim)
	switch {
	case err != nil:
		return err
	case source != "":
		return d.store.copy(handle, source, size)
	}
	return d.store.create(handle, isBlock(claim.Spec.VolumeMode), size)
}

// populated reports whether a volume populator fills the claim instead of the driver.
func populated(claim *corev1.PersistentVolumeClaim) bool {
	source := claim.Spec.DataSourceRef
	return source != nil && source.Kind != "PersistentVolumeClaim" && source.Kind != "VolumeSnapshot"
}

// checkSource returns the handle of the snapshot or the volume that a claim is filled from, empty if there is none, or the reason why it cannot be.
func (d *Driver) checkSource(ctx context.Context, claim *corev1.PersistentVolumeClaim) (handle string, err error) {
	source := claim.Spec.DataSource
	if source == nil {
		return "", nil
	}
	var size resource.Quantity
	if source.Kind == "VolumeSnapshot" {
		handle, size, err = d.snapshotSource(ctx, claim, source.Name)
	} else {
		handle, size, err = d.claimSource(ctx, claim, source.Name)
	}
	if err != nil {
		return "", err
	}
	if wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]; wanted.Cmp(size) < 0 {
		return "", fmt.Errorf("requested volume size %d is less than the size %d for the source %s", wanted.Value(), size.Value(), source.Name)
	}
	return handle, nil
}

// snapshotSource returns the handle and the size of a snapshot that a claim is filled from.
func (d *Driver) snapshotSource(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (handle string, size resource.Quantity, err error) {
	snapshot, err := d.dynamic.Resource(snapshots).Namespace(claim.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", size, fmt.Errorf("error getting snapshot %s from api server: %w", name, asText(err))
	}
	if !isReady(snapshot) || snapshot.GetDeletionTimestamp() != nil {
		return "", size, fmt.Errorf("snapshot %s is not Ready", name)
	}
	if restored := text(snapshot, "status", "restoreSize"); restored != "" {
		if size, err = resource.ParseQuantity(restored); err != nil {
			return "", size, fmt.Errorf("snapshot %s has no usable size: %w", name, err)
		}
	}
	content, err := d.dynamic.Resource(contents).Get(ctx, text(snapshot, "status", "boundVolumeSnapshotContentName"), metav1.GetOptions{})
	if err != nil {
		return "", size, fmt.Errorf("error getting snapshotcontent of %s from api server: %w", name, asText(err))
	}
	if handle = text(content, "status", "snapshotHandle"); handle == "" || text(content, "spec", "driver") != Name {
		return "", size, fmt.Errorf("snapshotcontent %s has no handle of the driver %s", content.GetName(), Name)
	}
	if mode := text(content, "spec", "sourceVolumeMode"); mode != "" && (mode == string(corev1.PersistentVolumeBlock)) != isBlock(claim.Spec.VolumeMode) {
		// The annotation that allows it is not simulated: a filesystem has no bytes of its own here.
		return "", size, fmt.Errorf("requested volume %s/%s modifies the mode of the source volume but does not have permission to do so", claim.Namespace, claim.Name)
	}
	return handle, size, nil
}

// claimSource returns the handle and the size of the volume of another claim that a claim is filled from.
func (d *Driver) claimSource(ctx context.Context, claim *corev1.PersistentVolumeClaim, name string) (handle string, size resource.Quantity, err error) {
	origin, err := d.kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", size, fmt.Errorf("error getting PVC %s (namespace %q) from api server: %w", name, claim.Namespace, asText(err))
	}
	if origin.Status.Phase != corev1.ClaimBound || origin.DeletionTimestamp != nil {
		return "", size, fmt.Errorf("the PVC DataSource %s is not bound", name)
	}
	if isBlock(origin.Spec.VolumeMode) != isBlock(claim.Spec.VolumeMode) {
		return "", size, errors.New("the source PVC and destination PVCs must have the same volume mode for cloning")
	}
	volume, err := d.ownVolume(ctx, origin.Spec.VolumeName)
	if err != nil {
		return "", size, asText(err)
	}
	return volume.Spec.CSI.VolumeHandle, origin.Spec.Resources.Requests[corev1.ResourceStorage], nil
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
		if source := volume.Spec.CSI; source != nil && source.Driver == Name {
			if err := d.store.grow(source.VolumeHandle, wanted.Value()); err != nil {
				return err
			}
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

// reconcileVolume deletes released volumes with the reclaim policy Delete, and removes the finalizer. A volume that was deleted without the driver leaves
// no bytes either: no object refers to them.
func (d *Driver) reconcileVolume(ctx context.Context, name string) error {
	volume, err := d.kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if uid, own := strings.CutPrefix(name, "pvc-"); apierrors.IsNotFound(err) && own {
		return d.store.remove(volumePrefix + uid)
	}
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
		if err := d.store.remove(volume.Spec.CSI.VolumeHandle); err != nil {
			return err
		}
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
