package approvalcache

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

func watchApprovals(config *rest.Config) (cache.ListerWatcher, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, "templateapprovals", "", fields.Everything()), nil
}

// watchNamespaces fetches nothing but the metadata.
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
