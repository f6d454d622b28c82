package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/client"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// A preview of the decisions about a VirtualMachine, and its creation if no decision denies
// it.
func Example() {
	// In a program this is rest.InClusterConfig(), or what clientcmd makes of a kubeconfig.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "ProcessedVirtualMachineTemplate", "apiVersion": "subresources.template.kubevirt.io/v1beta1",
			"virtualMachine": {"metadata": {"name": "web-1"}, "spec": {"template": null}}, "message": "Log in to web-1 as fedora.",
			"decisions": [{"decision": "warn", "kind": "VirtualMachinePolicy", "policy": "owners", "message": "nobody owns it"}]}`)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}

	stencil, err := client.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	golden := stencil.Subresources("golden")
	options := &v1beta1.ProcessOptions{
		Parameters:      map[string]string{"NAME": "web-1"},
		TargetNamespace: "team-a",
		Explain:         true,
	}
	preview, err := golden.Process(ctx, "fedora", options)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, decision := range preview.Decisions {
		fmt.Println(decision.Decision, decision.Policy+":", decision.Message)
		if decision.Decision == v1beta1.EffectDeny {
			return
		}
	}
	created, err := golden.Create(ctx, "fedora", options, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.Message)
	// Output:
	// warn owners: nobody owns it
	// Log in to web-1 as fedora.
}
