package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
)

// Finalizers and the annotation that snapshot-controller uses.
const (
	boundFinalizer   = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	sourceFinalizer  = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	contentFinalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	claimFinalizer   = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	defaultClass     = "snapshot.storage.kubernetes.io/is-default-class"
)

// contentName is the name of the content that is made for a snapshot.
func contentName(snapshot metav1.Object) string { return "snapcontent-" + string(snapshot.GetUID()) }

// reconcileSnapshot does what snapshot-controller and the sidecar csi-snapshotter do together.
func (d *Driver) reconcileSnapshot(ctx context.Context, namespace, name string) error {
	snapshot, err := d.dynamic.Resource(snapshots).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if snapshot.GetDeletionTimestamp() != nil {
		return d.deleteSnapshot(ctx, snapshot)
	}
	claimName := text(snapshot, "spec", "source", "persistentVolumeClaimName")
	if claimName == "" || isReady(snapshot) {
		return nil
	}
	class, err := d.class(ctx, snapshot)
	if err != nil {
		return d.report(ctx, snapshot, err)
	}
	if class == nil {
		// It belongs to another driver.
		return nil
	}
	if finalizers := snapshot.GetFinalizers(); !slices.Contains(finalizers, boundFinalizer) {
		snapshot.SetFinalizers(append(finalizers, sourceFinalizer, boundFinalizer))
		_ = unstructured.SetNestedField(snapshot.Object, class.GetName(), "spec", "volumeSnapshotClassName")
		if snapshot, err = d.dynamic.Resource(snapshots).Namespace(namespace).Update(ctx, snapshot, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return d.report(ctx, snapshot, d.take(ctx, snapshot, class, claimName))
}

// class returns the class of a snapshot when it is one of this driver's.
func (d *Driver) class(ctx context.Context, snapshot *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if name := text(snapshot, "spec", "volumeSnapshotClassName"); name != "" {
		class, err := d.dynamic.Resource(classes).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, failure{fmt.Sprintf("Failed to get snapshot class with error failed to retrieve snapshot class %s from the informer: %q", name, err)}
		}
		if text(class, "driver") != Name {
			return nil, nil
		}
		return class, nil
	}
	listed, err := d.dynamic.Resource(classes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range listed.Items {
		if class := &listed.Items[i]; text(class, "driver") == Name && class.GetAnnotations()[defaultClass] == "true" {
			return class, nil
		}
	}
	return nil, failure{"cannot find default snapshot class"}
}

// take performs the steps from a requested snapshot to one that is ready to use.
func (d *Driver) take(ctx context.Context, snapshot, class *unstructured.Unstructured, claimName string) error {
	namespace, name := snapshot.GetNamespace(), snapshot.GetName()
	claim, err := d.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claimName, metav1.GetOptions{})
	if err != nil {
		return failure{fmt.Sprintf("snapshot controller failed to update %s/%s on API server: cannot get claim from snapshot: %v", namespace, name, err)}
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return failure{fmt.Sprintf("the PVC %s is not yet bound to a PV, will not attempt to take a snapshot", claimName)}
	}
	if err := d.protect(ctx, claim, true); err != nil {
		return err
	}
	content, err := d.bind(ctx, snapshot, class, claim)
	if err != nil {
		return err
	}
	if content, err = d.cut(ctx, snapshot, content, claim); err != nil {
		return err
	}
	if err := d.ready(ctx, snapshot, content); err != nil {
		return err
	}
	return d.protect(ctx, claim, false)
}

// bind makes the content of a snapshot.
func (d *Driver) bind(ctx context.Context, snapshot, class *unstructured.Unstructured, claim *corev1.PersistentVolumeClaim) (*unstructured.Unstructured, error) {
	name := contentName(snapshot)
	content, err := d.dynamic.Resource(contents).Get(ctx, name, metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return content, err
	}
	rule, err := d.begin(ctx, BindSnapshot, snapshot)
	if err != nil {
		return nil, err
	}
	volume, err := d.kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return nil, failure{fmt.Sprintf("cannot get the volume of %s: %v", claim.Name, err)}
	}
	mode := corev1.PersistentVolumeFilesystem
	if volume.Spec.VolumeMode != nil {
		mode = *volume.Spec.VolumeMode
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"volumeSnapshotRef": map[string]any{
			"apiVersion": snapshots.GroupVersion().String(), "kind": "VolumeSnapshot", "namespace": snapshot.GetNamespace(),
			"name": snapshot.GetName(), "uid": string(snapshot.GetUID()), "resourceVersion": snapshot.GetResourceVersion(),
		},
		"source":                  map[string]any{"volumeHandle": volume.Spec.CSI.VolumeHandle},
		"volumeSnapshotClassName": class.GetName(),
		"deletionPolicy":          text(class, "deletionPolicy"),
		"driver":                  Name,
		"sourceVolumeMode":        string(mode),
	}}}
	made.SetAPIVersion(contents.GroupVersion().String())
	made.SetKind("VolumeSnapshotContent")
	made.SetName(name)
	made.SetFinalizers([]string{contentFinalizer})
	if content, err = d.dynamic.Resource(contents).Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if rule.Disorder {
		return content, nil
	}
	if err := d.status(ctx, snapshots, snapshot.GetNamespace(), snapshot.GetName(), map[string]any{
		"boundVolumeSnapshotContentName": name, "readyToUse": false, "error": nil,
	}); err != nil {
		return nil, err
	}
	return content, d.repeat(ctx, rule, snapshots, snapshot.GetNamespace(), snapshot.GetName())
}

// cut takes the snapshot: later changes of the volume's content have no effect.
func (d *Driver) cut(ctx context.Context, snapshot, content *unstructured.Unstructured, claim *corev1.PersistentVolumeClaim) (*unstructured.Unstructured, error) {
	if text(content, "status", "snapshotHandle") != "" {
		return content, nil
	}
	rule, err := d.begin(ctx, TakeSnapshot, snapshot)
	if err != nil {
		return nil, err
	}
	size, handle := claim.Status.Capacity[corev1.ResourceStorage], snapshotPrefix+string(snapshot.GetUID())
	if err := d.store.copy(handle, text(content, "spec", "source", "volumeHandle"), 0); err != nil {
		return nil, failure{fmt.Sprintf("failed to take snapshot of the volume %s: %v", text(content, "spec", "source", "volumeHandle"), err)}
	}
	now := time.Now()
	if err := d.status(ctx, contents, "", content.GetName(), map[string]any{
		"snapshotHandle": handle, "creationTime": now.UnixNano(), "restoreSize": size.Value(), "readyToUse": false,
	}); err != nil {
		if apierrors.IsNotFound(err) {
			// The content was deleted meanwhile, and nothing refers to the bytes.
			err = errors.Join(err, d.store.remove(handle))
		}
		return nil, err
	}
	if !rule.Disorder {
		if err := d.status(ctx, snapshots, snapshot.GetNamespace(), snapshot.GetName(), map[string]any{
			"creationTime": now.UTC().Format(time.RFC3339), "restoreSize": restoreSize(size.Value()), "readyToUse": false, "error": nil,
		}); err != nil {
			return nil, err
		}
	}
	if err := d.repeat(ctx, rule, snapshots, snapshot.GetNamespace(), snapshot.GetName()); err != nil {
		return nil, err
	}
	return d.dynamic.Resource(contents).Get(ctx, content.GetName(), metav1.GetOptions{})
}

// ready reports the content and then the snapshot as ready to use, or the other way round.
func (d *Driver) ready(ctx context.Context, snapshot, content *unstructured.Unstructured) error {
	rule, err := d.begin(ctx, ReadySnapshot, snapshot)
	if err != nil {
		return err
	}
	nanoseconds, _, _ := unstructured.NestedInt64(content.Object, "status", "creationTime")
	bytes, _, _ := unstructured.NestedInt64(content.Object, "status", "restoreSize")
	whole := map[string]any{
		"boundVolumeSnapshotContentName": content.GetName(),
		"creationTime":                   time.Unix(0, nanoseconds).UTC().Format(time.RFC3339),
		"restoreSize":                    restoreSize(bytes),
		"readyToUse":                     true,
		"error":                          nil,
	}
	if rule.Disorder {
		if err := d.status(ctx, snapshots, snapshot.GetNamespace(), snapshot.GetName(), map[string]any{"readyToUse": true}); err != nil {
			return err
		}
	}
	if err := d.status(ctx, contents, "", content.GetName(), map[string]any{"readyToUse": true}); err != nil {
		return err
	}
	if err := d.status(ctx, snapshots, snapshot.GetNamespace(), snapshot.GetName(), whole); err != nil {
		return err
	}
	return d.repeat(ctx, rule, snapshots, snapshot.GetNamespace(), snapshot.GetName())
}

// begin applies the rule of a step of a snapshot.
func (d *Driver) begin(ctx context.Context, step Step, snapshot *unstructured.Unstructured) (Rule, error) {
	rule := d.rules.rule(step, snapshot.GetNamespace(), snapshot.GetName())
	if err := rule.begin(ctx); err != nil {
		return rule, err
	}
	if rule.Vanish {
		return rule, errors.Join(errHeld, d.VanishSnapshot(ctx, snapshot.GetNamespace(), snapshot.GetName()))
	}
	return rule, nil
}

// report writes why a step failed where the published components write it.
func (d *Driver) report(ctx context.Context, snapshot *unstructured.Unstructured, err error) error {
	var failed failure
	if !errors.As(err, &failed) {
		return err
	}
	if text(snapshot, "status", "error", "message") != failed.text {
		d.event(ctx, snapshot, "SnapshotContentCreationFailed", failed.text)
	}
	writeErr := d.status(ctx, snapshots, snapshot.GetNamespace(), snapshot.GetName(), map[string]any{
		"readyToUse": false,
		"error":      map[string]any{"message": failed.text, "time": time.Now().UTC().Format(time.RFC3339)},
	})
	return errors.Join(err, writeErr)
}

// deleteSnapshot deletes the content of a snapshot that is being deleted, and removes the snapshot's finalizers.
func (d *Driver) deleteSnapshot(ctx context.Context, snapshot *unstructured.Unstructured) error {
	if len(snapshot.GetFinalizers()) == 0 {
		return nil
	}
	inUse, err := d.isSource(ctx, snapshot)
	if err != nil {
		return err
	}
	if inUse {
		d.again(snapshots, snapshot.GetNamespace(), snapshot.GetName())
		return nil
	}
	content, err := d.dynamic.Resource(contents).Get(ctx, contentName(snapshot), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case text(content, "spec", "deletionPolicy") == "Delete":
		uid := content.GetUID()
		if content.GetDeletionTimestamp() == nil {
			if err := d.dynamic.Resource(contents).Delete(ctx, content.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
				return err
			}
		}
		// The sidecar's step: the finalizers hold snapshot and content until it is done.
		if _, err := d.begin(ctx, DeleteSnapshot, snapshot); err != nil {
			if !errors.Is(err, errHeld) {
				d.event(ctx, content, "SnapshotDeleteError", "Failed to delete snapshot")
			}
			return err
		}
		if err := d.store.remove(snapshotPrefix + string(snapshot.GetUID())); err != nil {
			return err
		}
		if err := d.dropFinalizers(ctx, contents, content, func(string) bool { return true }); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	// Of a snapshot that was never ready, the claim is still protected. Like the published controller, before the snapshot is gone.
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: snapshot.GetNamespace(), Name: text(snapshot, "spec", "source", "persistentVolumeClaimName")}}
	if claim.Name != "" {
		if err := d.protect(ctx, claim, false); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return d.dropFinalizers(ctx, snapshots, snapshot, func(one string) bool { return one == boundFinalizer || one == sourceFinalizer })
}

// dropFinalizers removes finalizers from an object, unless another object with its name has replaced it. A conflict must not repeat a step: its rule
// has been counted.
func (d *Driver) dropFinalizers(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, drop func(string) bool) error {
	client := d.dynamic.Resource(resource).Namespace(object.GetNamespace())
	return conflict.Retry(func() error {
		current, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil || current.GetUID() != object.GetUID() {
			return err
		}
		current.SetFinalizers(slices.DeleteFunc(current.GetFinalizers(), drop))
		_, err = client.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

// isSource reports whether a pending claim uses the snapshot as its source.
func (d *Driver) isSource(ctx context.Context, snapshot *unstructured.Unstructured) (bool, error) {
	listed, err := d.kube.CoreV1().PersistentVolumeClaims(snapshot.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range listed.Items {
		claim := &listed.Items[i]
		source := claim.Spec.DataSource
		if claim.Status.Phase == corev1.ClaimPending && claim.DeletionTimestamp == nil && source != nil &&
			source.Kind == "VolumeSnapshot" && source.Name == snapshot.GetName() {
			return true, nil
		}
	}
	return false, nil
}

// reconcileContent removes a content that no snapshot uses any more, if its deletion policy is Delete or it is being deleted, and the bytes of one that
// no longer exists.
func (d *Driver) reconcileContent(ctx context.Context, name string) error {
	content, err := d.dynamic.Resource(contents).Get(ctx, name, metav1.GetOptions{})
	if uid, own := strings.CutPrefix(name, "snapcontent-"); apierrors.IsNotFound(err) && own {
		return d.store.remove(snapshotPrefix + uid)
	}
	if err != nil || text(content, "spec", "driver") != Name {
		return err
	}
	namespace, of := text(content, "spec", "volumeSnapshotRef", "namespace"), text(content, "spec", "volumeSnapshotRef", "name")
	snapshot, err := d.dynamic.Resource(snapshots).Namespace(namespace).Get(ctx, of, metav1.GetOptions{})
	if err == nil && contentName(snapshot) == name {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if text(content, "spec", "deletionPolicy") == "Delete" || content.GetDeletionTimestamp() != nil {
		return d.vanish(ctx, contents, "", name)
	}
	return nil
}

// protect adds or removes the finalizer that prevents the deletion of a claim while a snapshot of it is taken.
func (d *Driver) protect(ctx context.Context, claim *corev1.PersistentVolumeClaim, on bool) error {
	claims := d.kube.CoreV1().PersistentVolumeClaims(claim.Namespace)
	return conflict.Retry(func() error {
		current, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := slices.Index(current.Finalizers, claimFinalizer)
		switch {
		case on && at < 0 && current.DeletionTimestamp == nil:
			current.Finalizers = append(current.Finalizers, claimFinalizer)
		case !on && at >= 0:
			current.Finalizers = slices.Delete(current.Finalizers, at, at+1)
		default:
			return nil
		}
		_, err = claims.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

// status writes fields of an object's status; a nil value removes its field.
func (d *Driver) status(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, fields map[string]any) error {
	client := d.dynamic.Resource(resource).Namespace(namespace)
	for {
		object, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		if status == nil {
			status = map[string]any{}
		}
		for field, value := range fields {
			if value == nil {
				delete(status, field)
			} else {
				status[field] = value
			}
		}
		object.Object["status"] = status
		if _, err = client.UpdateStatus(ctx, object, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// repeatAnnotation is what a repeated write changes.
const repeatAnnotation = Name + "/repeated"

// repeat writes an object again, rule.Repeat times.
func (d *Driver) repeat(ctx context.Context, rule Rule, resource schema.GroupVersionResource, namespace, name string) error {
	client := d.dynamic.Resource(resource).Namespace(namespace)
	for i := 0; i < rule.Repeat; {
		object, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[repeatAnnotation] = strconv.Itoa(i)
		object.SetAnnotations(annotations)
		switch _, err = client.Update(ctx, object, metav1.UpdateOptions{}); {
		case err == nil:
			i++
		case !apierrors.IsConflict(err):
			return err
		}
	}
	return nil
}

func restoreSize(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

func isReady(snapshot *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
	return ready && text(snapshot, "status", "boundVolumeSnapshotContentName") != ""
}

func text(object *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...)
	return found
}
