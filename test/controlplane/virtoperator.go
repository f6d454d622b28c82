package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
)

// VirtOperator is the username of virt-operator.
const VirtOperator = "system:serviceaccount:" + kubevirtNamespace + ":kubevirt-operator"

// VirtOperatorRelease is a release of KubeVirt whose virt-operator can run.
type VirtOperatorRelease struct {
	// Version of its images.
	Version string
	// Bundle is the path of a manifest that virt-operator embeds in place of its own template component. If it is not empty, virt-operator is built
	// with it, which takes a minute.
	Bundle string
	// suffix ends the names of its tools.
	suffix string
}

// Releases of KubeVirt.
var (
	KubeVirt18 = VirtOperatorRelease{Version: "v1.8.2"}
	KubeVirt19 = VirtOperatorRelease{Version: "v1.9.0", suffix: "-1.9"}
)

// virtOperatorWebhooks is the port at which virt-operator serves its webhooks, which no flag changes. Each process has an address of its own.
const virtOperatorWebhooks = "8444"

// StartVirtOperator starts the virt-operator of a release, and ends the one of another release: it is what an administrator does who installs or upgrades
// KubeVirt's operator. It needs kube-controller-manager and Options.Services, and a plane without KubeVirt. virt-operator's processes are its own; its pods are simulated: they are
// ready, and none of the servers in them runs. So all webhooks and APIServices of KubeVirt that it registers fail, except those of virt-operator.
func (p *Plane) StartVirtOperator(ctx context.Context, release VirtOperatorRelease) error {
	if !p.has(controllerManager) || p.network == nil || p.has(kubeVirt) {
		return errors.New("virt-operator runs on a plane with kube-controller-manager and Services, and without KubeVirt")
	}
	binary, err := p.virtOperator(ctx, release)
	if err != nil {
		return err
	}
	if err := p.InstallVirtOperator(ctx, release); err != nil {
		return err
	}
	if p.nodes == nil {
		if err := p.startNodes(ctx); err != nil {
			return err
		}
	}
	user, err := p.User(VirtOperator, "system:serviceaccounts", "system:serviceaccounts:"+kubevirtNamespace)
	if err != nil {
		return err
	}
	p.StopVirtOperator()
	p.nodes.Serve(kubevirtNamespace, func(ctx context.Context, pod *corev1.Pod) error {
		return p.dumpInstallStrategy(ctx, binary, user, pod)
	})
	address, err := freeLoopback(ctx, virtOperatorWebhooks)
	if err != nil {
		return err
	}
	p.network.Route(kubevirtNamespace, "kubevirt-operator-webhook", net.JoinHostPort(address, virtOperatorWebhooks))
	image := "VIRT_OPERATOR_IMAGE=quay.io/kubevirt/virt-operator:" + release.Version
	_, err = p.startProcessWith([]string{image}, virtOperatorProcess, binary, "--kubeconfig="+user.Kubeconfig, "--listen="+address, "--port=8443")
	return err
}

const virtOperatorProcess = "virt-operator"

// StopVirtOperator ends virt-operator, if it runs.
func (p *Plane) StopVirtOperator() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.processes = slices.DeleteFunc(p.processes, func(each *process) bool {
		if each.name != virtOperatorProcess {
			return false
		}
		each.kill()
		return true
	})
}

// InstallVirtOperator creates, or replaces, the objects of virt-operator's manifest but its Deployment.
func (p *Plane) InstallVirtOperator(ctx context.Context, release VirtOperatorRelease) error {
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	manifests, err := p.manifests(ctx, "kubevirt-operator"+release.suffix)
	if err != nil {
		return err
	}
	if err := p.InstallCRDs(ctx, manifests.crds...); err != nil {
		return err
	}
	objects := slices.Concat([]*unstructured.Unstructured{object("v1", "Namespace", "", kubevirtNamespace, nil)}, manifests.objects)
	for _, object := range objects {
		err := create(ctx, client, object)
		if apierrors.IsAlreadyExists(errors.Unwrap(err)) && strings.HasSuffix(object.GetKind(), "Role") {
			err = replaceRules(ctx, client, object)
		}
		if err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
			return err
		}
	}
	return nil
}

// replaceRules gives a role that exists the rules of another release.
func replaceRules(ctx context.Context, client dynamic.Interface, role *unstructured.Unstructured) error {
	var resource dynamic.ResourceInterface = client.Resource(resourceOf(role.GetAPIVersion(), role.GetKind()))
	if namespace := role.GetNamespace(); namespace != "" {
		resource = client.Resource(resourceOf(role.GetAPIVersion(), role.GetKind())).Namespace(namespace)
	}
	err := conflict.Retry(func() error {
		stored, err := resource.Get(ctx, role.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored.Object["rules"] = role.Object["rules"]
		_, err = resource.Update(ctx, stored, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("replacing the rules of %s %s: %w", role.GetKind(), role.GetName(), err)
	}
	return nil
}

// dumpInstallStrategy executes a pod of virt-operator's Jobs: it has the operator's program store what is to be installed as a ConfigMap.
func (p *Plane) dumpInstallStrategy(ctx context.Context, binary string, user *User, pod *corev1.Pod) error {
	container := pod.Spec.Containers[0]
	if len(container.Command) == 0 || container.Command[0] != "virt-operator" {
		return fmt.Errorf("the pod %s runs %q, and only virt-operator is known", pod.Name, container.Command)
	}
	command := exec.CommandContext(ctx, binary, append(slices.Clone(container.Command[1:]), "--kubeconfig="+user.Kubeconfig)...)
	command.Dir, command.Env, command.SysProcAttr = p.folder.path, p.environment(), processAttributes()
	for _, variable := range container.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("storing the install strategy: %w\n%s", err, output)
	}
	return nil
}

// freeLoopback returns a loopback address on which no process listens at a port.
func freeLoopback(ctx context.Context, port string) (string, error) {
	var err error
	for range portAttempts {
		address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
		var listener net.Listener
		if listener, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, port)); err == nil {
			return address, listener.Close()
		}
	}
	return "", fmt.Errorf("looking for a free loopback address: %w", err)
}
