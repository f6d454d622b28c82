package preflight

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// cluster implements preflight.Client.
type cluster struct {
	objects   dynamic.Interface
	discovery discovery.ServerVersionInterface
}

func newCluster(config *rest.Config) (*cluster, error) {
	objects, objectsErr := dynamic.NewForConfig(config)
	versions, versionsErr := discovery.NewDiscoveryClientForConfig(config)
	if err := errors.Join(objectsErr, versionsErr); err != nil {
		return nil, fmt.Errorf("making a client of the installation: %w", err)
	}
	return &cluster{objects, versions}, nil
}

func (c *cluster) Version(context.Context) (string, error) {
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version of the API server: %w", err)
	}
	return version.GitVersion, nil
}

func (c *cluster) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	object, err := c.objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", resource.Resource, name, err)
	}
	return object.Object, nil
}

func (c *cluster) List(ctx context.Context, resource schema.GroupVersionResource, selector string, visit func(map[string]any) error) error {
	found, err := c.objects.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	for i := range found.Items {
		if err := visit(found.Items[i].Object); err != nil {
			return err
		}
	}
	return nil
}
