package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// register makes the API server call the process behind a Service, for admission and for the API groups it serves. The objects are
// the operator's, except that the Service is an external name for loopback, and that they name the port, because such a Service does
// not translate ports.
func (p *Plane) register(ctx context.Context, client dynamic.Interface, manifests *manifests, namespace, name string, port int) error {
	service := object("v1", "Service", namespace, name, map[string]any{
		"spec": map[string]any{"type": "ExternalName", "externalName": "127.0.0.1"},
	})
	if err := create(ctx, client, service); err != nil {
		return err
	}
	bundle := base64.StdEncoding.EncodeToString(p.servers.pem)
	for _, registration := range manifests.kind("APIService") {
		registration := registration.DeepCopy()
		if err := errors.Join(
			unstructured.SetNestedField(registration.Object, int64(port), "spec", "service", "port"),
			unstructured.SetNestedField(registration.Object, bundle, "spec", "caBundle"),
		); err != nil {
			return fmt.Errorf("preparing the APIService %s: %w", registration.GetName(), err)
		}
		if err := create(ctx, client, registration); err != nil {
			return err
		}
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		for _, configuration := range manifests.kind(kind) {
			configuration := configuration.DeepCopy()
			if err := pointWebhooks(configuration, bundle, int64(port)); err != nil {
				return fmt.Errorf("preparing the %s %s: %w", kind, configuration.GetName(), err)
			}
			if err := create(ctx, client, configuration); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointWebhooks puts a CA bundle and a port into every webhook of a configuration.
func pointWebhooks(configuration *unstructured.Unstructured, bundle string, port int64) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return errors.New("a webhook is no object")
		}
		if err := errors.Join(
			unstructured.SetNestedField(fields, port, "clientConfig", "service", "port"),
			unstructured.SetNestedField(fields, bundle, "clientConfig", "caBundle"),
		); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}
