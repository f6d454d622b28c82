package capture

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/reconcilers/internal/expansion"
)

// Cluster reads and writes the objects of captures.
type Cluster struct {
	dynamic  dynamic.Interface
	expander expander
}

// expander replaces the names of an instance type and a preference by their content.
type expander interface {
	Expand(ctx context.Context, namespace string, vm map[string]any) (map[string]any, error)
}

// NewCluster returns a Cluster that uses the API server of a configuration.
func NewCluster(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	// No client-side limit: the number of workers limits requests, and the API server has limits of its own.
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of captures: %w", err)
	}
	subresources, err := expansion.New(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{dynamic: client, expander: subresources}, nil
}

// unknownKindError reports that the API server does not serve a kind.
type unknownKindError struct{ resource resource }

func (e *unknownKindError) Error() string {
	return fmt.Sprintf("the API server does not serve %s", e.resource)
}

// unknownKind reports whether the API server does not serve the kind, in contrast to a missing object: it returns 404 for both.
func unknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// read decodes an object into a value; found is false if it does not exist.
func (c *Cluster) read(ctx context.Context, from resource, namespace, name string, into any) (found bool, err error) {
	object, err := c.dynamic.Resource(from.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case unknownKind(err):
		return false, &unknownKindError{from}
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s/%s: %w", from.kind, namespace, name, err)
	}
	return true, decode(object, into)
}

func decode(object *unstructured.Unstructured, into any) error {
	raw, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("decoding %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// create creates an object.
func (c *Cluster) create(ctx context.Context, in resource, namespace string, object map[string]any) error {
	object["apiVersion"], object["kind"] = in.GroupVersion().String(), in.kind
	raw, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", in.kind, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("encoding a %s: %w", in.kind, err)
	}
	_, err = c.dynamic.Resource(in.GroupVersionResource).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	if unknownKind(err) {
		return &unknownKindError{in}
	}
	if err != nil {
		return fmt.Errorf("creating %s %s/%s: %w", in.kind, namespace, u.GetName(), err)
	}
	return nil
}

// patch changes this version of this object: UID and resource version are preconditions.
func (c *Cluster) patch(ctx context.Context, in resource, object metav1.Object, change map[string]any, subresources ...string) error {
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = string(object.GetUID()), object.GetResourceVersion()
	raw, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a change of %s %s/%s: %w", in.kind, object.GetNamespace(), object.GetName(), err)
	}
	_, err = c.dynamic.Resource(in.GroupVersionResource).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	if err != nil {
		return fmt.Errorf("changing %s %s/%s: %w", in.kind, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// delete deletes an object, with its UID as precondition.
func (c *Cluster) delete(ctx context.Context, in resource, object metav1.Object) error {
	uid := object.GetUID()
	err := c.dynamic.Resource(in.GroupVersionResource).Namespace(object.GetNamespace()).
		Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	// A conflict means that another object has the name by now.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting %s %s/%s: %w", in.kind, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// list returns the metadata of the objects in a namespace that a label selector selects; nothing if the API server does not serve the kind.
func (c *Cluster) list(ctx context.Context, in resource, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	found, err := c.dynamic.Resource(in.GroupVersionResource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if unknownKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %ss of namespace %s: %w", in.kind, namespace, err)
	}
	objects := make([]metav1.PartialObjectMetadata, len(found.Items))
	for i := range found.Items {
		if err := decode(&found.Items[i], &objects[i]); err != nil {
			return nil, err
		}
	}
	return objects, nil
}
