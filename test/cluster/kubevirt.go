package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

const kubevirtNamespace = "kubevirt"

var kubevirts = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}

// installation is the KubeVirt object: guests by emulation, and one replica of each part.
const installation = `
apiVersion: kubevirt.io/v1
kind: KubeVirt
metadata: {name: kubevirt, namespace: kubevirt}
spec:
  imagePullPolicy: IfNotPresent
  infra: {replicas: 1}
  configuration:
    developerConfiguration: {useEmulation: true, featureGates: [Snapshot, VMExport, HostDisk]}
`

// InstallKubeVirt installs KubeVirt by its operator, and returns when the operator reports it as available.
func (c *Cluster) InstallKubeVirt(ctx context.Context) error {
	began := time.Now()
	if err := c.Plane.InstallVirtOperator(ctx, controlplane.KubeVirt18); err != nil {
		return err
	}
	if err := c.deployOperator(ctx); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.Plane.AdminConfig())
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(installation), &object.Object); err != nil {
		return err
	}
	// virt-operator's webhook validates it: it may not answer yet.
	err = deadline.Wait(ctx, "the KubeVirt object is stored", limit, func(ctx context.Context) error {
		_, err := client.Resource(kubevirts).Namespace(kubevirtNamespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = deadline.Wait(ctx, "KubeVirt is available", limit, func(ctx context.Context) error { return available(ctx, client) })
	if err == nil {
		fmt.Fprintf(c.log, "cluster: KubeVirt %s available after %.0f s\n", controlplane.KubeVirt18.Version, time.Since(began).Seconds())
	}
	return err
}

// deployOperator creates the Deployment of virt-operator with one replica.
func (c *Cluster) deployOperator(ctx context.Context) error {
	tools, err := controlplane.Tools(ctx, "virt-operator-deployment")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(tools["virt-operator-deployment"])
	if err != nil {
		return err
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(content, &deployment); err != nil {
		return fmt.Errorf("reading the Deployment of virt-operator: %w", err)
	}
	deployment.Spec.Replicas = new(int32(1))
	client, err := kubernetes.NewForConfig(c.Plane.AdminConfig())
	if err != nil {
		return err
	}
	_, err = client.AppsV1().Deployments(kubevirtNamespace).Create(ctx, &deployment, metav1.CreateOptions{})
	return err
}

// available returns an error until virt-operator reports that all parts of KubeVirt are ready.
func available(ctx context.Context, client dynamic.Interface) error {
	object, err := client.Resource(kubevirts).Namespace(kubevirtNamespace).Get(ctx, "kubevirt", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return hasCondition(object, "Available")
}

// hasCondition returns an error if a condition of an object is not true.
func hasCondition(object *unstructured.Unstructured, name string) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] == name && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("the conditions of %s are %v", object.GetKind(), conditions)
}
