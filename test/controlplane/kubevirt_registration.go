package controlplane

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// registerVirtAPI makes the API server call virt-api. The objects are those of virt-operator, except that virt-api's Service is
// an external name for loopback, and that they name the port, because such a Service does not translate ports.
func (p *Plane) registerVirtAPI(ctx context.Context, client dynamic.Interface, manifests *manifests, port int) error {
	service := object("v1", "Service", kubevirtNamespace, virtAPIService, map[string]any{
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

// awaitKubeVirt returns when a VirtualMachine passes through virt-api's webhooks and its aggregated API is there.
func (p *Plane) awaitKubeVirt(ctx context.Context, client dynamic.Interface) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
		last = errors.Join(admitsVirtualMachines(ctx, client), aggregates(ctx, client))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for KubeVirt: %w (%w)", err, last)
	}
	return nil
}

// admitsVirtualMachines tries a dry run. That virt-api was asked shows in the machine type, which only its webhook sets.
func admitsVirtualMachines(ctx context.Context, client dynamic.Interface) error {
	const apiVersion, kind = "kubevirt.io/v1", "VirtualMachine"
	machine := object(apiVersion, kind, metav1.NamespaceDefault, "readiness", map[string]any{
		"spec": map[string]any{
			"runStrategy": "Halted",
			"template": map[string]any{"spec": map[string]any{"domain": map[string]any{
				"devices": map[string]any{},
				"memory":  map[string]any{"guest": "64Mi"},
			}}},
		},
	})
	admitted, err := client.Resource(resourceOf(apiVersion, kind)).Namespace(metav1.NamespaceDefault).
		Create(ctx, machine, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("creating a VirtualMachine in a dry run: %w", err)
	}
	machineType, _, err := unstructured.NestedString(admitted.Object, "spec", "template", "spec", "domain", "machine", "type")
	if err != nil || machineType == "" {
		return errors.Join(errors.New("virt-api's mutating webhook is not called yet"), err)
	}
	return nil
}

// aggregates tells what keeps the API server from passing requests on to virt-api.
func aggregates(ctx context.Context, client dynamic.Interface) error {
	services, err := client.Resource(resourceOf("apiregistration.k8s.io/v1", "APIService")).
		List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-api-aggregator"})
	if err != nil {
		return fmt.Errorf("listing APIServices: %w", err)
	}
	for _, service := range services.Items {
		conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
		available := false
		for _, condition := range conditions {
			fields, _ := condition.(map[string]any)
			if fields["type"] == "Available" && fields["status"] == "True" {
				available = true
			}
		}
		if !available {
			return fmt.Errorf("APIService %s is not available yet: %v", service.GetName(), conditions)
		}
	}
	return nil
}
