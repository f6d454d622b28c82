package controlplane

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// startControllerManager starts kube-controller-manager. It returns a function that waits until its controllers have done the
// work they find in a new cluster.
func (p *Plane) startControllerManager(path string) (await func(context.Context) error, err error) {
	user, err := p.User("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
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
		// At the default of 20 requests a second its controllers take five seconds to start.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return started.await(ctx, func(ctx context.Context) error { return p.controlled(ctx, client) })
	}, nil
}

// controlled tells what the controllers have still to do: the default service account stands for those that fill namespaces, the
// ClusterRole edit for the one that aggregates ClusterRoles.
func (p *Plane) controlled(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("looking for the default service account: %w", err)
	}
	edit, err := client.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("looking for the ClusterRole edit: %w", err)
	}
	group := ""
	if p.options.KubeVirt {
		group = "kubevirt.io"
	}
	for _, rule := range edit.Rules {
		if slices.Contains(rule.APIGroups, group) {
			return nil
		}
	}
	return fmt.Errorf("the ClusterRole edit has no rule for the API group %q yet", group)
}
