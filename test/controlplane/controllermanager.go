package controlplane

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// StartControllerManager adds kube-controller-manager to a plane that was started without Options.ControllerManager, and builds it if need be. It
// returns when the controllers have processed what exists.
func (p *Plane) StartControllerManager(ctx context.Context) error {
	return p.join(ctx, controllerManager, func(ctx context.Context) error {
		if err := p.startControllerManager(); err != nil {
			return err
		}
		return p.awaitControllers(ctx)
	})
}

// startControllerManager starts kube-controller-manager and does not wait for it.
func (p *Plane) startControllerManager() (err error) {
	p.controllers, err = p.runControllers("kube-controller-manager", "*,-"+policyTypes)
	return err
}

// policyTypes is the controller that checks the types in policies against the schemas of their resources. It used half of the processor time of
// kube-controller-manager while the chart was installed and removed.
const policyTypes = "validatingadmissionpolicy-status-controller"

// CheckPolicyTypes runs the controller that writes status.typeChecking of policies, which runs on no plane otherwise, until stop is called.
func (p *Plane) CheckPolicyTypes() (stop func(), err error) {
	running, err := p.runControllers("policy-types", policyTypes)
	if err != nil {
		return nil, err
	}
	return running.kill, nil
}

// runControllers starts kube-controller-manager with controllers, as its flag takes them.
func (p *Plane) runControllers(name, controllers string) (*process, error) {
	user, err := p.User("system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	return p.startProcessWith([]string{"GOGC=300"}, name, p.tools["kube-controller-manager"],
		"--kubeconfig="+user.Kubeconfig,
		"--controllers="+controllers,
		// Its metrics and health endpoints would need a port; its work is visible in the API.
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
}

// awaitControllers waits until the controllers of kube-controller-manager, if there is one, have processed what exists.
func (p *Plane) awaitControllers(ctx context.Context) error {
	if p.controllers == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	return p.controllers.await(ctx, func(ctx context.Context) error { return p.controlled(ctx, client) })
}

// controlled returns an error while the controllers still have work to do. The default service account stands for the controllers that fill
// namespaces, the ClusterRole edit for the one that aggregates ClusterRoles.
func (p *Plane) controlled(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("looking for the default service account: %w", err)
	}
	group := ""
	if p.has(kubeVirt) {
		group = "kubevirt.io"
	}
	return EditHasRules(ctx, client, group)
}

// EditHasRules returns an error until the ClusterRole edit, which is aggregated, has a rule for an API group.
func EditHasRules(ctx context.Context, client kubernetes.Interface, group string) error {
	edit, err := client.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("looking for the ClusterRole edit: %w", err)
	}
	for _, rule := range edit.Rules {
		if slices.Contains(rule.APIGroups, group) {
			return nil
		}
	}
	return fmt.Errorf("the ClusterRole edit has no rule for the API group %q yet", group)
}
