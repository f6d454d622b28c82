package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// create creates objects, in order.
func create(ctx context.Context, client dynamic.Interface, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		resource := client.Resource(resourceOf(object.GetAPIVersion(), object.GetKind()))
		var err error
		if namespace := object.GetNamespace(); namespace == "" {
			_, err = resource.Create(ctx, object, metav1.CreateOptions{})
		} else {
			_, err = resource.Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// resourceOf is the resource of a kind by the rules of English, which hold for every kind that the plane itself creates.
func resourceOf(apiVersion, kind string) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return plural
}

// object makes an object from what all objects have and the fields of its own.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range fields {
		made.Object[field] = value
	}
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}
