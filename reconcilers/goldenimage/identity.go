package goldenimage

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// identity is the UID of the namespace kube-system, which identifies the cluster. It is read once.
type identity struct {
	mutex sync.Mutex
	uid   string
}

func (i *identity) get(ctx context.Context, client dynamic.Interface) (string, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.uid == "" {
		system, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("reading the identity of the cluster: %w", err)
		}
		i.uid = string(system.GetUID())
	}
	return i.uid, nil
}
