package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/cluster/node"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	cdis            = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "cdis"}
	storageProfiles = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "storageprofiles"}
)

// InstallCDI installs CDI by its operator, and returns when the operator reports it as available. It has to be there before KubeVirt, which looks for it
// once. DataVolumes import from the registry of the cluster.
func (c *Cluster) InstallCDI(ctx context.Context) error {
	began := time.Now()
	tools, err := controlplane.Tools(ctx, "cdi-operator-objects")
	if err != nil {
		return err
	}
	objects, err := os.ReadFile(tools["cdi-operator-objects"])
	if err != nil {
		return err
	}
	if err := harness.Apply(ctx, c.Plane, "apiVersion: v1\nkind: Namespace\nmetadata: {name: cdi}\n", "-"); err != nil {
		return err
	}
	// Too large for the annotation of client-side apply.
	result, err := c.Plane.Kubectl(ctx, nil, string(objects), "create", "--filename=-")
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("creating CDI's operator: %s", result.Stderr)
	}
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.Plane.AdminConfig())
	if err != nil {
		return err
	}
	cdi := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": map[string]any{"name": "cdi"},
		"spec": map[string]any{
			"imagePullPolicy": "IfNotPresent",
			"config":          map[string]any{"featureGates": []any{"HonorWaitForFirstConsumer"}, "insecureRegistries": []any{node.Registry}},
		},
	}}
	err = deadline.Wait(ctx, "the CDI object is stored", limit, func(ctx context.Context) error {
		_, err := client.Resource(cdis).Create(ctx, cdi, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = deadline.Wait(ctx, "CDI is available", limit, func(ctx context.Context) error {
		stored, err := client.Resource(cdis).Get(ctx, "cdi", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return hasCondition(stored, "Available")
	})
	if err != nil {
		return err
	}
	if err := describeStorage(ctx, client); err != nil {
		return err
	}
	fmt.Fprintf(c.log, "cluster: CDI available after %.0f s\n", time.Since(began).Seconds())
	return nil
}

// describeStorage adds the properties of the cluster's volumes to CDI, which only has properties of known drivers.
func describeStorage(ctx context.Context, client dynamic.Interface) error {
	const profile = `{"spec": {"cloneStrategy": "csi-clone", "claimPropertySets": [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}]}}`
	return deadline.Wait(ctx, "CDI has a profile of the storage class", limit, func(ctx context.Context) error {
		_, err := client.Resource(storageProfiles).Patch(ctx, node.StorageClass, types.MergePatchType, []byte(profile), metav1.PatchOptions{})
		return err
	})
}
