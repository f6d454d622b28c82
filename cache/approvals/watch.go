package approvals

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// watchNamespaces lists and watches the metadata of namespaces.
func watchNamespaces(config *rest.Config) (cache.ListerWatcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespaces := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return namespaces.Watch(ctx, options)
		},
	}, nil
}
