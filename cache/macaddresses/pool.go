package macaddresses

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/cache/watching"
)

// The configuration that kubemacpool registers, and its webhook for VMs in the namespaces that it manages.
const (
	poolConfiguration = "kubemacpool-mutator"
	poolWebhook       = "mutatevirtualmachines.kubemacpool.io"
)

// configurations are the configurations of mutating webhooks. Only one of them is watched: the manager may read no other.
var configurations = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")

var poolSelector = watching.Selector{Fields: fields.OneTermEqualSelector("metadata.name", poolConfiguration).String()}

// pool stores which namespaces a pool manager manages, if there is one. It is safe for concurrent use.
type pool struct {
	// configurations holds the selector of that configuration. It is nil if the pool manager manages no VMs.
	configurations *watching.Index[*unstructured.Unstructured, labels.Selector]
}

func newPool() pool {
	return pool{watching.NewIndex(watching.Options[*unstructured.Unstructured, labels.Selector]{
		Kind: "MutatingWebhookConfigurations",
		Convert: func(o *unstructured.Unstructured, _ labels.Selector, _ bool) (labels.Selector, error) {
			return selectorOf(o), nil
		},
	})}
}

func (p pool) covers(namespace map[string]string) bool {
	return slices.ContainsFunc(p.configurations.List(), func(s labels.Selector) bool { return s != nil && s.Matches(labels.Set(namespace)) })
}

// selectorOf returns the namespace selector of the webhook for VMs. If the configuration cannot be read, the selector
// matches every namespace.
func selectorOf(o *unstructured.Unstructured) labels.Selector {
	configuration, readable := configurationOf(o)
	if !readable {
		return labels.Everything()
	}
	for i := range configuration.Webhooks {
		webhook := &configuration.Webhooks[i]
		if webhook.Name != poolWebhook {
			continue
		}
		if webhook.NamespaceSelector == nil {
			return labels.Everything()
		}
		return orEverything(metav1.LabelSelectorAsSelector(webhook.NamespaceSelector))
	}
	// The configuration has no webhook for VMs.
	return nil
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
