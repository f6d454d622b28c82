package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Namespace creates a namespace with a unique name that begins with prefix, and returns the name. Tests that share a plane use it to stay independent
// of each other.
func (p *Plane) Namespace(ctx context.Context, prefix string) (string, error) {
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return "", fmt.Errorf("making a client of the API server: %w", err)
	}
	created, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return created.Name, nil
}
