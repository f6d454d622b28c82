package macaddresses

import (
	"context"
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// The configuration that kubemacpool registers, and its webhook for VMs in the namespaces that it manages.
const (
	poolConfiguration = "kubemacpool-mutator"
	poolWebhook       = "mutatevirtualmachines.kubemacpool.io"
)

// poolSource lists and watches this configuration only: the manager may read no other.
func poolSource(client dynamic.Interface) cache.ListerWatcher {
	configurations := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"))
	selector := fields.OneTermEqualSelector("metadata.name", poolConfiguration).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return configurations.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return configurations.Watch(ctx, options)
		},
	}
}

// pool stores whether there is a pool manager, and which namespaces it manages. It is safe for concurrent use.
type pool struct {
	mu     sync.RWMutex
	listed bool
	// selector is nil without a pool manager.
	selector labels.Selector
}

var _ cache.ReflectorStore = (*pool)(nil)

func (p *pool) synced() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.listed
}

func (p *pool) covers(namespace map[string]string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.selector != nil && p.selector.Matches(labels.Set(namespace))
}

// selectorOf returns the namespace selector of the webhook for VMs. If the configuration cannot be read, the selector
// matches every namespace.
func selectorOf(object any) (labels.Selector, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the cache of MAC pools was given a %T", object)
	}
	configuration, readable := configurationOf(o)
	if !readable {
		return labels.Everything(), nil
	}
	for i := range configuration.Webhooks {
		webhook := &configuration.Webhooks[i]
		if webhook.Name != poolWebhook {
			continue
		}
		if webhook.NamespaceSelector == nil {
			return labels.Everything(), nil
		}
		return orEverything(metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)), nil
	}
	// The configuration has no webhook for VMs.
	return nil, nil
}

func configurationOf(o *unstructured.Unstructured) (configuration *admissionregistrationv1.MutatingWebhookConfiguration, readable bool) {
	configuration = &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, configuration)
	return configuration, err == nil
}

func orEverything(selector labels.Selector, err error) labels.Selector {
	if err != nil {
		return labels.Everything()
	}
	return selector
}

// Add implements cache.ReflectorStore.
func (p *pool) Add(object any) error {
	selector, err := selectorOf(object)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selector = selector
	return nil
}

// Update implements cache.ReflectorStore.
func (p *pool) Update(object any) error { return p.Add(object) }

// Delete implements cache.ReflectorStore.
func (p *pool) Delete(any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selector = nil
	return nil
}

// Replace implements cache.ReflectorStore.
func (p *pool) Replace(objects []any, _ string) error {
	var selector labels.Selector
	for _, object := range objects {
		var err error
		if selector, err = selectorOf(object); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selector, p.listed = selector, true
	return nil
}

// Resync implements cache.ReflectorStore.
func (*pool) Resync() error { return nil }
