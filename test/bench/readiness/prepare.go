package readiness

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

const (
	namespace = "golden"
	writers   = 8

	templatesPath = "/apis/template.kubevirt.io/v1beta1/namespaces/" + namespace + "/virtualmachinetemplates"
)

func claimPath(number int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/persistentvolumeclaims/disk-%d", namespace, number)
}

func dataSourcePath(number int) string {
	return fmt.Sprintf("/apis/cdi.kubevirt.io/v1beta1/namespaces/%s/datasources/image-%d", namespace, number)
}

// cluster is where objects are made and changed.
type cluster struct{ client kubernetes.Interface }

func (c *cluster) post(ctx context.Context, path, object string) error {
	err := c.client.CoreV1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("creating an object at %s: %w", path, err)
	}
	return nil
}

func (c *cluster) patch(ctx context.Context, path string, patch []byte) error {
	if err := c.client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error(); err != nil {
		return fmt.Errorf("changing %s: %w", path, err)
	}
	return nil
}

// prepare stores all objects, and installs the chart after them. No CDI runs: the DataSources are stored with the status that it would write.
func prepare(ctx context.Context, plane *controlplane.Plane, options Options) (*cluster, manager.Options, error) {
	none := manager.Options{}
	if err := plane.InstallVirtualizationCRDs(ctx); err != nil {
		return nil, none, err
	}
	definitions, err := controlplane.ReadCRDs(options.Definitions)
	if err != nil {
		return nil, none, err
	}
	if err := plane.InstallCRDs(ctx, definitions...); err != nil {
		return nil, none, err
	}
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		return nil, none, fmt.Errorf("making a client of the API server: %w", err)
	}
	c := &cluster{client}
	if err := c.fill(ctx, options); err != nil {
		return nil, none, err
	}
	process, err := install.Beside(ctx, plane, map[string]any{"crds": map[string]any{"enabled": false}})
	return c, process, err
}

func (c *cluster) fill(ctx context.Context, options Options) error {
	if err := c.post(ctx, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace)); err != nil {
		return err
	}
	if err := load.Each(ctx, options.DataSources, writers, func(ctx context.Context, number int) error {
		claims := "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"
		if err := c.post(ctx, claims, fmt.Sprintf(`{"metadata":{"name":"disk-%d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, number)); err != nil {
			return err
		}
		if err := c.patch(ctx, claimPath(number)+"/status", []byte(`{"status":{"phase":"Bound"}}`)); err != nil {
			return err
		}
		return c.post(ctx, "/apis/cdi.kubevirt.io/v1beta1/namespaces/"+namespace+"/datasources",
			fmt.Sprintf(`{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataSource","metadata":{"name":"image-%d"},"spec":{"source":{"pvc":{"name":"disk-%d","namespace":%q}}}}`, number, number, namespace))
	}); err != nil {
		return err
	}
	return load.Each(ctx, options.Templates, writers, func(ctx context.Context, number int) error {
		return c.post(ctx, templatesPath, fmt.Sprintf(template, number, number%options.DataSources))
	})
}

// template is a template of ordinary size; its number and that of its DataSource are filled in.
const template = `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"box-%d"},"spec":{
"parameters":[{"name":"NAME","required":true,"generate":"expression","from":"vm-[a-z0-9]{5}"},{"name":"MEMORY","value":"2Gi"},{"name":"STORAGE","value":"10Gi"}],
"virtualMachine":{"metadata":{"name":"${NAME}"},"spec":{"runStrategy":"Halted",
"dataVolumeTemplates":[{"metadata":{"name":"${NAME}-root"},"spec":{"sourceRef":{"kind":"DataSource","name":"image-%d"},"storage":{"resources":{"requests":{"storage":"${STORAGE}"}}}}}],
"template":{"spec":{"domain":{"memory":{"guest":"${MEMORY}"},"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"}},{"name":"seed","disk":{"bus":"virtio"}}],"interfaces":[{"name":"default","masquerade":{}}]}},
"networks":[{"name":"default","pod":{}}],
"volumes":[{"name":"root","dataVolume":{"name":"${NAME}-root"}},{"name":"seed","cloudInitNoCloud":{"userData":"#cloud-config\nhostname: ${NAME}\n"}}]}}}}}}`
