package disks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

var (
	dataVolumes     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	dataSources     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datasources"}
	snapshots       = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	claims          = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
)

// APIServer reads disks and VirtualMachines from the API server itself: a cache may not have a disk that was created a
// moment before the VirtualMachine.
type APIServer struct {
	metadata metadata.Interface
	dynamic  dynamic.Interface
}

// NewAPIServer returns the API server of that configuration.
func NewAPIServer(config *rest.Config) (*APIServer, error) {
	config = rest.CopyConfig(config)
	// Admission waits for each of these calls, and the API server has limits of its own.
	config.QPS = -1
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client that looks for disks: %w", err)
	}
	vms, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client that looks for VirtualMachines: %w", err)
	}
	return &APIServer{metadata: objects, dynamic: vms}, nil
}

// DataVolume returns the metadata of a DataVolume, nil when there is none.
func (a *APIServer) DataVolume(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error) {
	return a.get(ctx, dataVolumes, "DataVolume", namespace, name)
}

// Claim returns the metadata of a PersistentVolumeClaim, nil when there is none.
func (a *APIServer) Claim(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error) {
	return a.get(ctx, claims, "PersistentVolumeClaim", namespace, name)
}

func (a *APIServer) get(ctx context.Context, resource schema.GroupVersionResource, kind, namespace, name string) (*metav1.ObjectMeta, error) {
	found, err := a.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // also where CDI is not installed
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for %s %s/%s: %w", kind, namespace, name, err)
	}
	return &found.ObjectMeta, nil
}

// VirtualMachine returns a VirtualMachine as decoded JSON, nil when there is none.
func (a *APIServer) VirtualMachine(ctx context.Context, namespace, name string) (map[string]any, error) {
	found, err := a.dynamic.Resource(virtualMachines).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for VirtualMachine %s/%s: %w", namespace, name, err)
	}
	return found.Object, nil
}

// maximumSteps is how many DataSources are followed: CDI follows one that names another.
const maximumSteps = 2

// Identity returns the UID of the claim or VolumeSnapshot that a source leads to, and its description. CDI follows the spec of a DataSource. If there
// is no such object, uid is empty and the description is what is missing.
func (a *APIServer) Identity(ctx context.Context, source Source) (uid, description string, err error) {
	kind, namespace, name := source.Kind, source.Namespace, source.Name
	for step := 0; kind == DataSourceKind; step++ {
		if step == maximumSteps {
			return "", fmt.Sprintf("DataSource %s/%s names another, and CDI follows one", namespace, name), nil
		}
		found, err := a.dynamic.Resource(dataSources).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return "", fmt.Sprintf("DataSource %s/%s does not exist", namespace, name), nil
		case err != nil:
			return "", "", fmt.Errorf("looking for DataSource %s/%s: %w", namespace, name, err)
		}
		from := object(object(found.Object["spec"])["source"])
		var named []Source
		for key, target := range map[string]string{"pvc": ClaimKind, "snapshot": SnapshotKind, "dataSource": DataSourceKind} {
			if to := object(from[key]); to != nil {
				named = append(named, reference(nil, target, to, namespace))
			}
		}
		switch len(named) {
		case 0:
			return "", fmt.Sprintf("DataSource %s/%s names no source", namespace, name), nil
		case 1:
		default:
			return "", fmt.Sprintf("DataSource %s/%s names several sources", namespace, name), nil
		}
		next := named[0]
		kind, namespace, name = next.Kind, next.Namespace, next.Name
	}
	resource := claims
	if kind == SnapshotKind {
		resource = snapshots
	}
	found, err := a.get(ctx, resource, kind, namespace, name)
	switch {
	case err != nil:
		return "", "", err
	case found == nil:
		return "", fmt.Sprintf("%s %s/%s does not exist", kind, namespace, name), nil
	}
	return string(found.UID), fmt.Sprintf("%s %s/%s with UID %s", kind, namespace, name, found.UID), nil
}
