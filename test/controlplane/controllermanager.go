package controlplane

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// startControllerManager starts kube-controller-manager and waits until its controllers work.
func (p *Plane) startControllerManager(ctx context.Context, path string) error {
	user, err := p.User("system:kube-controller-manager")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	started, err := p.startProcess("kube-controller-manager", path,
		"--kubeconfig="+user.Kubeconfig,
		// Its metrics and health endpoints would need a port; what it does is seen in the API.
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.folder.file("pki", serviceAccountKeyFile),
		"--root-ca-file="+p.folder.file("pki", serverAuthorityFile),
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return started.await(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return errors.New("the default service account was not made yet")
		}
		return err
	})
}
