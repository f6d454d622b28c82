package csi

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VanishSnapshot removes a VolumeSnapshot and its content at once, including their finalizers, as a forced cleanup of a broken cluster does.
func (d *Driver) VanishSnapshot(ctx context.Context, namespace, name string) error {
	snapshot, err := d.dynamic.Resource(snapshots).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the snapshot that is to vanish: %w", err)
	}
	if err := d.vanish(ctx, snapshots, namespace, name); err != nil {
		return err
	}
	return d.vanish(ctx, contents, "", contentName(snapshot))
}

// VanishVolume deletes the volume of a bound claim. The claim stays, and kube-controller-manager reports it as Lost.
func (d *Driver) VanishVolume(ctx context.Context, namespace, claim string) error {
	found, err := d.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the claim whose volume is to vanish: %w", err)
	}
	if found.Spec.VolumeName == "" {
		return fmt.Errorf("the claim %s/%s has no volume that could vanish", namespace, claim)
	}
	return d.vanish(ctx, volumes, "", found.Spec.VolumeName)
}

func (d *Driver) vanishClaim(ctx context.Context, namespace, name string) error {
	return d.vanish(ctx, claims, namespace, name)
}

// vanish deletes an object and removes its finalizers until it no longer exists.
func (d *Driver) vanish(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := d.dynamic.Resource(resource).Namespace(namespace)
	first := ""
	for {
		found, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the %s %s/%s that is to vanish: %w", resource.Resource, namespace, name, err)
		}
		if first == "" {
			first = string(found.GetUID())
		}
		if string(found.GetUID()) != first {
			return nil
		}
		if err := d.strip(ctx, resource, found); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("making the %s %s/%s vanish: %w", resource.Resource, namespace, name, err)
		}
	}
}

func (d *Driver) strip(ctx context.Context, resource schema.GroupVersionResource, found *unstructured.Unstructured) error {
	client, now := d.dynamic.Resource(resource).Namespace(found.GetNamespace()), int64(0)
	if found.GetDeletionTimestamp() == nil {
		uid := found.GetUID()
		return client.Delete(ctx, found.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	found.SetFinalizers(nil)
	_, err := client.Update(ctx, found, metav1.UpdateOptions{})
	return err
}
