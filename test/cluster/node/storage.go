package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// The names of the CSI driver (tools/csi/driver), and of its classes, which are the default ones.
const (
	Driver              = "disks.stencil.test"
	StorageClass        = "disks"
	VolumeSnapshotClass = "disks"
)

// driverSocket is where the driver serves the programs below.
const driverSocket = "/var/lib/kubelet/plugins/" + Driver + "/csi.sock"

// storageTools are the driver, and the programs of Kubernetes' storage group that call it.
var storageTools = []string{"csi-driver", "csi-provisioner", "csi-snapshotter", "snapshot-controller", "csi-resizer"}

// startStorage starts the CSI driver, creates its classes, and returns when kubelet has registered it.
func (c Config) startStorage(ctx context.Context, plane *controlplane.Plane, tools map[string]string) error {
	if err := plane.InstallSnapshotCRDs(ctx); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return err
	}
	if err := createClasses(ctx, plane, client); err != nil {
		return fmt.Errorf("creating the classes of volumes and snapshots: %w", err)
	}
	kubeconfig, driver := "--kubeconfig="+plane.Kubeconfig(), "--csi-address="+driverSocket
	err = errors.Join(
		plane.StartProgram("csi-driver", tools["csi-driver"], "-folder="+c.file("data", "disks"), "-node="+Name),
		plane.StartProgram("csi-provisioner", tools["csi-provisioner"], kubeconfig, driver, "--timeout=2m", "--extra-create-metadata"),
		plane.StartProgram("csi-snapshotter", tools["csi-snapshotter"], kubeconfig, driver, "--timeout=2m"),
		plane.StartProgram("csi-resizer", tools["csi-resizer"], kubeconfig, driver),
		plane.StartProgram("snapshot-controller", tools["snapshot-controller"], kubeconfig),
	)
	if err != nil {
		return err
	}
	return deadline.Wait(ctx, "kubelet has registered the CSI driver", limit, func(ctx context.Context) error {
		node, err := client.StorageV1().CSINodes().Get(ctx, Name, metav1.GetOptions{})
		if err == nil && len(node.Spec.Drivers) == 0 {
			err = errors.New("the node has no CSI driver")
		}
		return err
	})
}

func createClasses(ctx context.Context, plane *controlplane.Plane, client kubernetes.Interface) error {
	_, err := client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Driver},
		Spec: storagev1.CSIDriverSpec{
			AttachRequired: new(false), FSGroupPolicy: new(storagev1.FileFSGroupPolicy),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:          Driver,
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(plane.AdminConfig())
	if err != nil {
		return err
	}
	classes := schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotclasses"}
	_, err = objects.Resource(classes).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "driver": Driver, "deletionPolicy": "Delete",
		"metadata": map[string]any{"name": VolumeSnapshotClass, "annotations": map[string]any{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
	}}, metav1.CreateOptions{})
	return err
}
