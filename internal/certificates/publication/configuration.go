package publication

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Webhook holds the relevant fields of one webhook of a configuration.
type Webhook struct {
	Name     string
	CABundle []byte
}

// Configuration is a webhook configuration of either kind, or an APIService.
type Configuration struct {
	Target   Target
	Webhooks []Webhook
	// Object is the object that this was read from. It must not be changed.
	Object client.Object
}

// ConfigurationOf reads a Mutating- or ValidatingWebhookConfiguration or an APIService.
func ConfigurationOf(object client.Object) Configuration {
	configuration := Configuration{Object: object}
	switch typed := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		configuration.Target = Target{Mutating, typed.Name}
		for i := range typed.Webhooks {
			webhook := &typed.Webhooks[i]
			configuration.Webhooks = append(configuration.Webhooks, Webhook{webhook.Name, webhook.ClientConfig.CABundle})
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		configuration.Target = Target{Validating, typed.Name}
		for i := range typed.Webhooks {
			webhook := &typed.Webhooks[i]
			configuration.Webhooks = append(configuration.Webhooks, Webhook{webhook.Name, webhook.ClientConfig.CABundle})
		}
	case *apiregistrationv1.APIService:
		configuration.Target = Target{APIService, typed.Name}
		configuration.Webhooks = []Webhook{{typed.Name, typed.Spec.CABundle}}
	}
	return configuration
}

// WithCABundle returns a copy of the configuration's object in which every webhook has the given caBundle.
func (c Configuration) WithCABundle(caBundle []byte) client.Object {
	switch typed := c.Object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		changed := typed.DeepCopy()
		for i := range changed.Webhooks {
			changed.Webhooks[i].ClientConfig.CABundle = caBundle
		}
		return changed
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		changed := typed.DeepCopy()
		for i := range changed.Webhooks {
			changed.Webhooks[i].ClientConfig.CABundle = caBundle
		}
		return changed
	case *apiregistrationv1.APIService:
		changed := typed.DeepCopy()
		changed.Spec.CABundle = caBundle
		return changed
	default:
		return c.Object
	}
}
