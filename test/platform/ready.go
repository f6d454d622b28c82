package platform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vmstencil/stencil/test/deadline"
)

// awaitWebhooks waits until the API server reaches the manager: the manager
// writes its authority into the webhook configurations and the API server reads
// them, both a moment after the manager is ready.
func (p *Platform) awaitWebhooks() error {
	const probe = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"probe","namespace":"default","annotations":{"template.kubevirt.io/template-ref":"default/probe"}}}`
	err := deadline.Wait(p.ctx, "the API server reaches the manager", time.Minute, func(ctx context.Context) error {
		out, err := p.Plane.Kubectl(ctx, nil, probe, "create", "--dry-run=server", "--validate=false", "-f", "-")
		if err != nil {
			return err
		}
		if !strings.Contains(out.Stderr, `"default/probe" not found`) {
			return fmt.Errorf("kubectl create: %s%s", out.Stdout, out.Stderr)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Manager.Logs())
	}
	return nil
}

// awaitAPIServices waits until the API server reaches stencil-apiserver in both versions. It routes requests again a moment after it has written the
// condition, so that a request has to pass as well.
func (p *Platform) awaitAPIServices() error {
	err := deadline.Wait(p.ctx, "the API server reaches stencil-apiserver", time.Minute, func(ctx context.Context) error {
		for _, version := range []string{"v1beta1", "v1alpha1"} {
			out, err := p.Plane.Kubectl(ctx, nil, "", "get", "apiservice", version+".subresources.template.kubevirt.io",
				"-o", `jsonpath={.status.conditions[?(@.type=="Available")]}`)
			if err != nil {
				return err
			}
			if !strings.Contains(out.Stdout, `"status":"True"`) {
				return fmt.Errorf("version %s is not available: %s%s", version, out.Stdout, out.Stderr)
			}
			if out, err = p.Plane.Kubectl(ctx, nil, "", "get", "--raw", "/apis/subresources.template.kubevirt.io/"+version); err != nil {
				return err
			}
			if out.Code != 0 {
				return fmt.Errorf("version %s does not answer: %s", version, out.Stderr)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.APIServer.Logs())
	}
	return nil
}
