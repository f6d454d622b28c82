package apiserver

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// NamespaceLabels returns a function that reads the labels of namespaces from the API server, for Defaults.
func NamespaceLabels(config *rest.Config) (func(ctx context.Context, namespace string) (map[string]string, error), error) {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of namespaces: %w", err)
	}
	return func(ctx context.Context, name string) (map[string]string, error) {
		found, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil {
			return nil, apierrors.NewServiceUnavailable("the namespace could not be read; try again in a moment")
		}
		return found.Labels, nil
	}, nil
}
