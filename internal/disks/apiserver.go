package disks

import (
	"context"
	"fmt"
	"slices"

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

// VirtualMachines returns a page of at most limit VirtualMachines of all namespaces. token is the result of the page before, empty for the first;
// next is empty after the last page. Without KubeVirt there are none.
func (a *APIServer) VirtualMachines(ctx context.Context, limit int64, token string) (page []map[string]any, next string, err error) {
	list, err := a.dynamic.Resource(virtualMachines).List(ctx, metav1.ListOptions{Limit: limit, Continue: token})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("listing VirtualMachines: %w", err)
	}
	for i := range list.Items {
		page = append(page, list.Items[i].Object)
	}
	return page, list.GetContinue(), nil
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

// Identity returns the UID of the claim or VolumeSnapshot that a source leads to, and its description. If there is no such object, uid is empty
// and the description is what is missing.
func (a *APIServer) Identity(ctx context.Context, source Source) (uid, description string, err error) {
	to, err := a.Resolve(ctx, source)
	switch {
	case err != nil:
		return "", "", err
	case to.Found == nil:
		return "", to.Problem, nil
	}
	return string(to.Found.UID), fmt.Sprintf("%s %s/%s with UID %s", to.Kind, to.Namespace, to.Name, to.Found.UID), nil
}

// Resolved is the claim or VolumeSnapshot that a source leads to.
type Resolved struct {
	// Source is the claim or VolumeSnapshot. Without one, it is the last object of the search, and Problem names the missing object.
	Source
	// Through are the namespaces of the DataSources that lead to it, from the first to the last. Who writes one of them chooses the disk.
	Through []string
	// Found are the metadata of the claim or VolumeSnapshot; nil if it does not exist.
	Found *metav1.ObjectMeta
}

// Outside returns the first namespace on the way to the disk that is not one of the permitted; empty if all are. It is the first only, because where an object
// leads is known to those who may read it.
func (r Resolved) Outside(permitted ...string) string {
	for _, namespace := range append(slices.Clone(r.Through), r.Namespace) {
		if !slices.Contains(permitted, namespace) {
			return namespace
		}
	}
	return ""
}

// DataVolumeSource is the source of a DataVolume that copies the disk. It names no DataSource, which CDI would resolve again, at a time when it may lead elsewhere.
func (r Resolved) DataVolumeSource() map[string]any {
	key := "pvc"
	if r.Kind == SnapshotKind {
		key = "snapshot"
	}
	return map[string]any{key: map[string]any{"namespace": r.Namespace, "name": r.Name}}
}

// Resolve finds the claim or VolumeSnapshot that a source leads to. CDI follows the spec of a DataSource.
func (a *APIServer) Resolve(ctx context.Context, source Source) (Resolved, error) {
	to := Resolved{Source: source}
	missing := func(format string, arguments ...any) (Resolved, error) {
		to.Problem = fmt.Sprintf(format, arguments...)
		return to, nil
	}
	for step := 0; to.Kind == DataSourceKind; step++ {
		if step == maximumSteps {
			return missing("DataSource %s/%s names another, and CDI follows one", to.Namespace, to.Name)
		}
		to.Through = append(to.Through, to.Namespace)
		found, err := a.dynamic.Resource(dataSources).Namespace(to.Namespace).Get(ctx, to.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return missing("DataSource %s/%s does not exist", to.Namespace, to.Name)
		case err != nil:
			return to, fmt.Errorf("looking for DataSource %s/%s: %w", to.Namespace, to.Name, err)
		}
		from := object(object(found.Object["spec"])["source"])
		var named []Source
		for key, target := range map[string]string{"pvc": ClaimKind, "snapshot": SnapshotKind, "dataSource": DataSourceKind} {
			if next := object(from[key]); next != nil {
				named = append(named, reference(nil, target, next, to.Namespace))
			}
		}
		switch len(named) {
		case 0:
			return missing("DataSource %s/%s names no source", to.Namespace, to.Name)
		case 1:
		default:
			return missing("DataSource %s/%s names several sources", to.Namespace, to.Name)
		}
		named[0].Field = source.Field
		to.Source = named[0]
	}
	resource := claims
	if to.Kind == SnapshotKind {
		resource = snapshots
	}
	found, err := a.get(ctx, resource, to.Kind, to.Namespace, to.Name)
	if err == nil && found == nil {
		return missing("%s %s/%s does not exist", to.Kind, to.Namespace, to.Name)
	}
	to.Found = found
	return to, err
}
