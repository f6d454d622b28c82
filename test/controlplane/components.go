package controlplane

import (
	"context"
	"fmt"
	"time"

	"github.com/vmstencil/stencil/test/deadline"
)

// component is a part of a plane that exists from the start or is added while the plane runs.
type component string

const (
	controllerManager component = "kube-controller-manager"
	kubeVirt          component = "KubeVirt"
	cdi               component = "CDI"
	// virtualizationCRDs of KubeVirt, which a plane may have without KubeVirt.
	virtualizationCRDs component = "the CRDs of KubeVirt"
	// kubeVirtPermissions are KubeVirt's roles and accounts.
	kubeVirtPermissions component = "the permissions of KubeVirt"
)

// componentTools are the names of the tools that each component needs.
var componentTools = map[component][]string{
	controllerManager: {"kube-controller-manager"},
	kubeVirt:          {"virt-api", "virt-controller", "kubevirt-manifests", "kubevirt-crds"},
	cdi:               {"cdi-server", "cdi-manifests", "cdi-crds", "snapshot-crds"},
}

// Tools returns the names of the tools that a plane with these options needs.
func (o Options) Tools() []string {
	names := []string{"etcd", "kube-apiserver"}
	if o.ControllerManager {
		names = append(names, componentTools[controllerManager]...)
	}
	if o.KubeVirt {
		names = append(names, componentTools[kubeVirt]...)
	} else if o.VirtualizationCRDs {
		names = append(names, "kubevirt-crds")
	}
	if (o.KubeVirt || o.VirtualizationCRDs) && !o.CDI && !o.CDILater {
		names = append(names, "cdi-crds")
	}
	if o.CDI {
		names = append(names, componentTools[cdi]...)
	}
	return names
}

// join adds a component to a running plane. start has startLimit, which does not include building the tools.
func (p *Plane) join(ctx context.Context, c component, start func(context.Context) error) error {
	if p.has(c) {
		return fmt.Errorf("the control plane has %s already", c)
	}
	tools, err := Tools(ctx, componentTools[c]...)
	if err != nil {
		return err
	}
	p.add(tools)
	p.mark(c)
	ctx, cancel := deadline.WithTimeout(ctx, string(c)+" is ready", startLimit)
	defer cancel()
	began := time.Now()
	if err := start(ctx); err != nil {
		return fmt.Errorf("adding %s to the control plane: %w", c, err)
	}
	p.progress("control plane: %s added in %.1f s", c, time.Since(began).Seconds())
	return nil
}

// has returns whether the plane has the component, or is about to.
func (p *Plane) has(c component) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.components[c]
}

func (p *Plane) mark(c component) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.components[c] = true
}
