package instancetypes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	instancetypeapi "kubevirt.io/api/instancetype"
	"kubevirt.io/api/instancetype/v1beta1"

	sizing "github.com/vmstencil/stencil/template/instancetype"
)

// newSources returns the source of each kind.
func newSources(config *rest.Config) (map[string]cache.ListerWatcher, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the instance type cache: %w", err)
	}
	return map[string]cache.ListerWatcher{
		sizing.KindInstancetype:        source(client, v1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralResourceName), ""),
		sizing.KindClusterInstancetype: source(client, v1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralResourceName), ""),
		sizing.KindPreference:          source(client, v1beta1.SchemeGroupVersion.WithResource(instancetypeapi.PluralPreferenceResourceName), ""),
		sizing.KindClusterPreference:   source(client, v1beta1.SchemeGroupVersion.WithResource(instancetypeapi.ClusterPluralPreferenceResourceName), ""),
		kindRevision:                   source(client, appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), instancetypeapi.ControllerRevisionObjectKindLabel),
	}, nil
}

func source(client dynamic.Interface, resource schema.GroupVersionResource, selector string) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return client.Resource(resource).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return client.Resource(resource).Watch(ctx, options)
		},
	}
}
