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
	to, found, err := a.Resolve(ctx, source)
	switch {
	case err != nil:
		return "", "", err
	case found == nil:
		return "", to.Problem, nil
	}
	return string(found.UID), fmt.Sprintf("%s %s/%s with UID %s", to.Kind, to.Namespace, to.Name, found.UID), nil
}

// Resolve returns the claim or VolumeSnapshot that a source leads to, and its metadata. CDI follows the spec of a DataSource. If there is no such
// object, the metadata are nil and Problem is what is missing.
func (a *APIServer) Resolve(ctx context.Context, source Source) (Source, *metav1.ObjectMeta, error) {
	missing := func(format string, arguments ...any) (Source, *metav1.ObjectMeta, error) {
		source.Problem = fmt.Sprintf(format, arguments...)
		return source, nil, nil
	}
	for step := 0; source.Kind == DataSourceKind; step++ {
		if step == maximumSteps {
			return missing("DataSource %s/%s names another, and CDI follows one", source.Namespace, source.Name)
		}
		found, err := a.dynamic.Resource(dataSources).Namespace(source.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return missing("DataSource %s/%s does not exist", source.Namespace, source.Name)
		case err != nil:
			return source, nil, fmt.Errorf("looking for DataSource %s/%s: %w", source.Namespace, source.Name, err)
		}
		from := object(object(found.Object["spec"])["source"])
		var named []Source
		for key, target := range map[string]string{"pvc": ClaimKind, "snapshot": SnapshotKind, "dataSource": DataSourceKind} {
			if to := object(from[key]); to != nil {
				named = append(named, reference(nil, target, to, source.Namespace))
			}
		}
		switch len(named) {
		case 0:
			return missing("DataSource %s/%s names no source", source.Namespace, source.Name)
		case 1:
		default:
			return missing("DataSource %s/%s names several sources", source.Namespace, source.Name)
		}
		named[0].Field = source.Field
		source = named[0]
	}
	resource := claims
	if source.Kind == SnapshotKind {
		resource = snapshots
	}
	found, err := a.get(ctx, resource, source.Kind, source.Namespace, source.Name)
	if err == nil && found == nil {
		return missing("%s %s/%s does not exist", source.Kind, source.Namespace, source.Name)
	}
	return source, found, err
}
