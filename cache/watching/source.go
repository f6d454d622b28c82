package watching

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// lister is a client of one resource, of client-go's dynamic or metadata package.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// Selector limits what is listed and watched. It is empty for all objects.
type Selector struct {
	// Labels and Fields are selectors in the syntax of the Kubernetes API.
	Labels, Fields string
}

func (s Selector) apply(options *metav1.ListOptions) {
	options.LabelSelector, options.FieldSelector = s.Labels, s.Fields
}

// Source lists and watches a resource by a dynamic client or a metadata client.
func Source[L runtime.Object](client lister[L], selector Selector) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selector.apply(&options)
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selector.apply(&options)
			return client.Watch(ctx, options)
		},
	}
}

// pageSize is the number of objects that Reduced decodes at a time.
const pageSize = 250

// Reduced is like Source, but reduces objects as soon as they are decoded, and lists them in pages: never are all of them in
// memory. It is for kinds with many large objects. The reflector receives *Object[T].
func Reduced[T any](client dynamic.ResourceInterface, selector Selector, reduce func(*unstructured.Unstructured) T) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all := &objects[T]{}
			options := metav1.ListOptions{Limit: pageSize}
			for selector.apply(&options); ; {
				page, err := client.List(ctx, options)
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					all.Items = append(all.Items, *reduced(&page.Items[i], reduce))
				}
				all.ResourceVersion = page.GetResourceVersion()
				if options.Continue = page.GetContinue(); options.Continue == "" {
					return all, nil
				}
			}
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selector.apply(&options)
			events, err := client.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
				if object, ok := event.Object.(*unstructured.Unstructured); ok {
					event.Object = reduced(object, reduce)
				}
				return event, true
			}), nil
		},
	}
}

// Object is a reduced object: Value, and the metadata that a reflector requires.
type Object[T any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Value T
}

// objects is a list of reduced objects.
type objects[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Object[T]
}

// DeepCopyObject implements runtime.Object. Nothing writes to a Value, so copies share it.
func (o *Object[T]) DeepCopyObject() runtime.Object {
	return &Object[T]{TypeMeta: o.TypeMeta, ObjectMeta: *o.DeepCopy(), Value: o.Value}
}

// DeepCopyObject implements runtime.Object.
func (l *objects[T]) DeepCopyObject() runtime.Object {
	copied := &objects[T]{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Object[T]))
	}
	return copied
}

// GetObjectKind implements runtime.Object.
func (o *Object[T]) GetObjectKind() schema.ObjectKind { return &o.TypeMeta }

// GetObjectKind implements runtime.Object.
func (l *objects[T]) GetObjectKind() schema.ObjectKind { return &l.TypeMeta }

func reduced[T any](object *unstructured.Unstructured, reduce func(*unstructured.Unstructured) T) *Object[T] {
	result := &Object[T]{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()},
		Value:      reduce(object),
	}
	// This annotation marks the bookmark that ends the first part of a watch.
	if value, found := object.GetAnnotations()[metav1.InitialEventsAnnotationKey]; found {
		result.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	return result
}

// Annotations returns the annotations of an object without kubectl's copy of the manifest, which can be as large as the object.
// The result must not be modified.
func Annotations(object metav1.Object) map[string]string {
	annotations := object.GetAnnotations()
	if _, found := annotations[corev1.LastAppliedConfigAnnotation]; !found {
		return annotations
	}
	annotations = maps.Clone(annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return annotations
}
