package controlplane

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/deadline"
)

// awaitKubeVirt returns when a VirtualMachine passes virt-api's webhooks and its aggregated API is available.
func (p *Plane) awaitKubeVirt(ctx context.Context, client dynamic.Interface) error {
	return deadline.Wait(ctx, "KubeVirt admits VirtualMachines and serves its API", startLimit, func(ctx context.Context) error {
		return errors.Join(admitsVirtualMachines(ctx, client), aggregates(ctx, client))
	})
}

// admitsVirtualMachines creates a VirtualMachine in a dry run. The machine type in the response proves that virt-api was called: only its webhook
// sets it.
func admitsVirtualMachines(ctx context.Context, client dynamic.Interface) error {
	const apiVersion, kind = "kubevirt.io/v1", "VirtualMachine"
	vm := object(apiVersion, kind, metav1.NamespaceDefault, "readiness", map[string]any{
		"spec": map[string]any{
			"runStrategy": "Halted",
			"template": map[string]any{"spec": map[string]any{"domain": map[string]any{
				"devices": map[string]any{},
				"memory":  map[string]any{"guest": "64Mi"},
			}}},
		},
	})
	admitted, err := client.Resource(resourceOf(apiVersion, kind)).Namespace(metav1.NamespaceDefault).
		Create(ctx, vm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("creating a VirtualMachine in a dry run: %w", err)
	}
	machineType, _, err := unstructured.NestedString(admitted.Object, "spec", "template", "spec", "domain", "machine", "type")
	if err != nil || machineType == "" {
		return errors.Join(errors.New("virt-api's mutating webhook is not called yet"), err)
	}
	return nil
}

// aggregates returns the reason why the API server does not forward requests to virt-api yet.
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
