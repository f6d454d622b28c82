package single

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Watches returns a cache of these objects only, which the manager starts on the leader. Reading any other object from it is an error, so
// that a reconciler does not cache a whole kind by mistake.
func Watches(mgr manager.Manager, scheme *runtime.Scheme, watched map[client.Object]cache.ByObject) (cache.Cache, error) {
	watches, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:                  mgr.GetHTTPClient(),
		Mapper:                      mgr.GetRESTMapper(),
		Scheme:                      scheme,
		ByObject:                    watched,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the watches: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(watches.Start)); err != nil {
		return nil, fmt.Errorf("adding the watches: %w", err)
	}
	return watches, nil
}

// Metadata returns an object for reading only the metadata of a kind.
func Metadata(kind schema.GroupVersionKind) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// Named limits a watch to one object.
func Named(name types.NamespacedName) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		name.Namespace: {FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name)},
	}}
}
