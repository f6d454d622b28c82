package platform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// awaitWebhooks waits until the API server reaches the manager: the manager
// writes its authority into the webhook configurations and the API server reads
// them, both a moment after the manager is ready.
func (p *Platform) awaitWebhooks() error {
	const probe = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"probe","namespace":"default","annotations":{"template.kubevirt.io/template-ref":"default/probe"}}}`
	var last string
	err := wait.PollUntilContextTimeout(p.ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		out, err := p.Plane.Kubectl(ctx, nil, probe, "create", "--dry-run=server", "--validate=false", "-f", "-")
		if err != nil {
			return false, err
		}
		last = out.Stderr
		return strings.Contains(out.Stderr, `"default/probe" not found`), nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not reach the manager: %w: %s\n%s", err, last, p.Manager.Logs())
	}
	return nil
}

// awaitAPIServices waits until the API server reaches stencil-apiserver in both versions.
func (p *Platform) awaitAPIServices() error {
	var last string
	err := wait.PollUntilContextTimeout(p.ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			out, err := p.Plane.Kubectl(ctx, nil, "", "get", "apiservice", version+".subresources.template.kubevirt.io",
				"-o", `jsonpath={.status.conditions[?(@.type=="Available")]}`)
			if err != nil {
				return false, err
			}
			if last = out.Stdout + out.Stderr; !strings.Contains(last, `"status":"True"`) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not reach stencil-apiserver: %w: %s\n%s", err, last, p.APIServer.Logs())
	}
	return nil
}
