package capture_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// fakeControllers process snapshots, as virt-controller does, and DataVolumes, as CDI does: they list all of them again and again. A snapshot gets its
// content, with a backup of each volume that is a disk, and loses it when it is deleted; a finalizer protects it, as in KubeVirt.
type fakeControllers struct {
	client dynamic.Interface
	cancel context.CancelFunc
	done   chan struct{}
}

const snapshotFinalizer = "snapshot.kubevirt.io/vmsnapshot-protection"

func startFakeControllers(client dynamic.Interface) *fakeControllers {
	ctx, cancel := context.WithCancel(context.Background())
	p := &fakeControllers{client: client, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				p.reconcile(ctx)
			}
		}
	}()
	return p
}

func (p *fakeControllers) stop() {
	p.cancel()
	<-p.done
}

// reconcile processes all objects once. An object that fails now is processed the next time: objects appear and disappear meanwhile.
func (p *fakeControllers) reconcile(ctx context.Context) {
	for _, each := range p.list(ctx, snapshots) {
		p.snapshot(ctx, each)
	}
	for _, each := range p.list(ctx, dataVolumes) {
		if each.Object["status"] == nil {
			p.status(ctx, dataVolumes, each, map[string]any{"phase": "Succeeded", "progress": "100.0%"})
		}
	}
}

func (p *fakeControllers) list(ctx context.Context, resource schema.GroupVersionResource) []unstructured.Unstructured {
	found, err := p.client.Resource(resource).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		// The kind may be missing, which is what a test is about.
		return nil
	}
	return found.Items
}

func (p *fakeControllers) status(ctx context.Context, resource schema.GroupVersionResource, object unstructured.Unstructured, status map[string]any) {
	object.Object["status"] = status
	//nolint:errcheck // It is tried again at the next look.
	p.client.Resource(resource).Namespace(object.GetNamespace()).UpdateStatus(ctx, &object, metav1.UpdateOptions{})
}

func (p *fakeControllers) snapshot(ctx context.Context, each unstructured.Unstructured) {
	client := p.client.Resource(snapshots).Namespace(each.GetNamespace())
	content := "content-" + string(each.GetUID())
	if each.GetDeletionTimestamp() != nil {
		//nolint:errcheck // It is tried again at the next look.
		p.client.Resource(contents).Namespace(each.GetNamespace()).Delete(ctx, content, metav1.DeleteOptions{})
		each.SetFinalizers(nil)
		//nolint:errcheck // It is tried again at the next look.
		client.Update(ctx, &each, metav1.UpdateOptions{})
		return
	}
	if len(each.GetFinalizers()) == 0 {
		each.SetFinalizers([]string{snapshotFinalizer})
		//nolint:errcheck // It is tried again at the next look.
		client.Update(ctx, &each, metav1.UpdateOptions{})
		return
	}
	if each.Object["status"] != nil {
		return
	}
	name, _, _ := unstructured.NestedString(each.Object, "spec", "source", "name")
	vm, err := p.client.Resource(virtualMachines).Namespace(each.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshotContent",
		"metadata": map[string]any{"namespace": each.GetNamespace(), "name": content},
		"spec": map[string]any{
			"virtualMachineSnapshotName": each.GetName(),
			"source": map[string]any{"virtualMachine": map[string]any{
				"metadata": map[string]any{"namespace": vm.GetNamespace(), "name": vm.GetName(), "uid": string(vm.GetUID())},
				"spec":     vm.Object["spec"], "status": map[string]any{},
			}},
			"volumeBackups": backups(vm),
		},
	}}
	//nolint:errcheck // It is tried again at the next look.
	p.client.Resource(contents).Namespace(each.GetNamespace()).Create(ctx, made, metav1.CreateOptions{})
	p.status(ctx, snapshots, each, map[string]any{"phase": "Succeeded", "readyToUse": true, "virtualMachineSnapshotContentName": content})
}

// backups returns the volume backups for the disks of a VM.
func backups(vm *unstructured.Unstructured) []any {
	list := []any{}
	volumes, _, _ := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
	for _, each := range volumes {
		volume, _ := each.(map[string]any)
		if volume["dataVolume"] == nil && volume["persistentVolumeClaim"] == nil {
			continue
		}
		list = append(list, map[string]any{
			"volumeName": volume["name"], "volumeSnapshotName": fmt.Sprintf("vs-%s-%s", vm.GetName(), volume["name"]),
			"persistentVolumeClaim": map[string]any{"spec": map[string]any{
				"accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Block", "storageClassName": "fast",
				"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			}},
		})
	}
	return list
}
