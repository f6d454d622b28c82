package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
)

// kubevirtNamespace is the namespace of KubeVirt's own objects. Its processes default to this name outside a Pod.
const kubevirtNamespace = "kubevirt"

// VirtController is the username of virt-controller.
const VirtController = "system:serviceaccount:" + kubevirtNamespace + ":kubevirt-controller"

// virtAPIService is the Service through which the API server finds virt-api.
const virtAPIService = "virt-api"

// StartKubeVirt adds KubeVirt to a plane that was started without Options.KubeVirt, and builds what is missing. virt-controller
// reconciles VirtualMachines that are already stored as they are: virt-api has not defaulted or validated them. If the plane is to have
// CDI, call StartCDI first.
func (p *Plane) StartKubeVirt(ctx context.Context) error {
	return p.join(ctx, kubeVirt, func(ctx context.Context) error {
		if err := p.startKubeVirt(ctx); err != nil {
			return err
		}
		// They aggregate KubeVirt's ClusterRoles.
		return p.awaitControllers(ctx)
	})
}

// startKubeVirt does what virt-operator does on a cluster: it installs KubeVirt's CRDs, RBAC and configuration, starts virt-api and
// virt-controller, and registers virt-api's aggregated API and admission webhooks. It returns when all of them work.
func (p *Plane) startKubeVirt(ctx context.Context) error {
	manifests, err := p.manifests(ctx, "kubevirt-manifests")
	if err != nil {
		return err
	}
	if !p.has(virtualizationCRDs) {
		if err := p.InstallVirtualizationCRDs(ctx); err != nil {
			return err
		}
	}
	client, err := dynamic.NewForConfig(p.AdminConfig())
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	if !p.has(kubeVirtPermissions) {
		if err := p.permitKubeVirt(ctx, client); err != nil {
			return err
		}
	}
	if err := p.configureKubeVirt(ctx, client); err != nil {
		return err
	}
	controller := make(chan error, 1)
	go func() { controller <- p.startVirtController(ctx, p.tools["virt-controller"]) }()
	port, err := p.startVirtAPI(ctx, p.tools["virt-api"])
	if err := errors.Join(err, <-controller); err != nil {
		return err
	}
	if err := p.register(ctx, client, manifests, kubevirtNamespace, virtAPIService, port); err != nil {
		return err
	}
	return p.awaitKubeVirt(ctx, client)
}

// permitKubeVirt creates the namespace of KubeVirt, and its permissions.
func (p *Plane) permitKubeVirt(ctx context.Context, client dynamic.Interface) error {
	manifests, err := p.manifests(ctx, "kubevirt-manifests")
	if err != nil {
		return err
	}
	namespace := object("v1", "Namespace", "", kubevirtNamespace, nil)
	if err := create(ctx, client, namespace); err != nil {
		return err
	}
	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "PriorityClass"} {
		if err := create(ctx, client, manifests.kind(kind)...); err != nil {
			return err
		}
	}
	p.mark(kubeVirtPermissions)
	return nil
}

// configureKubeVirt creates what KubeVirt's processes read when they start.
func (p *Plane) configureKubeVirt(ctx context.Context, client dynamic.Interface) error {
	authorities := map[string]any{"data": map[string]any{"ca-bundle": string(p.servers.pem)}}
	if err := create(ctx, client,
		object("v1", "ConfigMap", kubevirtNamespace, "kubevirt-ca", authorities),
		object("v1", "ConfigMap", kubevirtNamespace, "kubevirt-export-ca", authorities),
		object("v1", "ConfigMap", kubevirtNamespace, "kubevirt-backup-ca", authorities),
	); err != nil {
		return err
	}
	return p.deployKubeVirt(ctx, client)
}

// deployKubeVirt creates the KubeVirt object, which configures all of KubeVirt, in the state that virt-operator writes.
func (p *Plane) deployKubeVirt(ctx context.Context, client dynamic.Interface) error {
	kubevirts := client.Resource(resourceOf("kubevirt.io/v1", "KubeVirt")).Namespace(kubevirtNamespace)
	_, err := kubevirts.Create(ctx, object("kubevirt.io/v1", "KubeVirt", kubevirtNamespace, "kubevirt", map[string]any{
		"spec": map[string]any{
			"configuration": map[string]any{
				"developerConfiguration": map[string]any{"featureGates": []any{"Snapshot", "VMExport"}},
			},
		},
	}), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the KubeVirt object: %w", err)
	}
	status := map[string]any{
		"phase":               "Deployed",
		"defaultArchitecture": runtime.GOARCH,
		// The registry and version of virt-operator's deployments, as in startVirtController.
		"observedDeploymentConfig": `{"namespace":"kubevirt","registry":"quay.io/kubevirt","kubeVirtVersion":"devel"}`,
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "AllComponentsReady", "message": "All components are ready."},
			map[string]any{"type": "Progressing", "status": "False", "reason": "AllComponentsReady", "message": "All components are ready."},
			map[string]any{"type": "Degraded", "status": "False", "reason": "AllComponentsReady", "message": "All components are ready."},
		},
	}
	err = conflict.Retry(func() error {
		stored, err := kubevirts.Get(ctx, "kubevirt", metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored.Object["status"] = status
		_, err = kubevirts.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("reporting KubeVirt as deployed: %w", err)
	}
	return nil
}

// startVirtAPI starts virt-api, waits until it is healthy, and returns its port.
func (p *Plane) startVirtAPI(ctx context.Context, path string) (int, error) {
	user, err := p.kubevirtUser("kubevirt-apiserver")
	if err != nil {
		return 0, err
	}
	certificate, key, err := p.storeServing("virt-api", virtAPIHost, "127.0.0.1")
	if err != nil {
		return 0, err
	}
	handlerCertificate, handlerKey, err := p.storeClient("virt-handler-client", "kubevirt.io:system:client:virt-handler")
	if err != nil {
		return 0, err
	}
	var port int
	err = p.ports.try(ctx, 2, func(ctx context.Context, ports []int) error {
		port = ports[0]
		started, err := p.startProcess("virt-api", path,
			"--kubeconfig="+user.Kubeconfig,
			"--listen=127.0.0.1",
			"--port="+strconv.Itoa(port),
			"--console-server-port="+strconv.Itoa(ports[1]),
			"--tls-cert-file="+certificate,
			"--tls-key-file="+key,
			"--handler-cert-file="+handlerCertificate,
			"--handler-key-file="+handlerKey,
		)
		if err != nil {
			return err
		}
		return started.await(ctx, p.answers(port, "/healthz", `"connectivity":"ok"`))
	})
	return port, err
}

// virtAPIHost is the name that the API server expects in the certificate of virt-api.
const virtAPIHost = virtAPIService + "." + kubevirtNamespace + ".svc"

// startVirtController starts virt-controller and waits until its controllers run.
func (p *Plane) startVirtController(ctx context.Context, path string) error {
	user, err := p.kubevirtUser("kubevirt-controller")
	if err != nil {
		return err
	}
	certificate, key, err := p.storeServing("virt-controller", "127.0.0.1")
	if err != nil {
		return err
	}
	return p.ports.try(ctx, 1, func(ctx context.Context, ports []int) error {
		started, err := p.startProcess("virt-controller", path,
			"--kubeconfig="+user.Kubeconfig,
			"--listen=127.0.0.1",
			"--port="+strconv.Itoa(ports[0]),
			"--prom-cert-file="+certificate,
			"--prom-key-file="+key,
			"--launcher-image=quay.io/kubevirt/virt-launcher",
			"--exporter-image=quay.io/kubevirt/virt-exportserver",
			// It has no rival, and it must not lose the lease because the host was busy for some seconds.
			"--leader-elect-lease-duration=30m",
			"--leader-elect-renew-deadline=20m",
		)
		if err != nil {
			return err
		}
		if err := started.await(ctx, p.answers(ports[0], "/leader", `"leader":"true"`)); err != nil {
			return err
		}
		// It panics when a VirtualMachine was deleted while its watch was interrupted, as by a restart of the API server: its handler of
		// deletions does not expect cache.DeletedFinalStateUnknown (1.8.2).
		go p.startAgain(started)
		return nil
	})
}

// kubevirtUser is the service account of one of KubeVirt's processes, so that RBAC binds it as it does on a cluster.
func (p *Plane) kubevirtUser(serviceAccount string) (*User, error) {
	return p.User("system:serviceaccount:"+kubevirtNamespace+":"+serviceAccount,
		"system:serviceaccounts", "system:serviceaccounts:"+kubevirtNamespace)
}

func (p *Plane) storeServing(name string, hosts ...string) (certificate, key string, err error) {
	signed, err := p.servers.server(hosts...)
	if err != nil {
		return "", "", err
	}
	return signed.store(p.folder, name)
}

func (p *Plane) storeClient(name, commonName string) (certificate, key string, err error) {
	signed, err := p.clients.client(commonName)
	if err != nil {
		return "", "", err
	}
	return signed.store(p.folder, name)
}

// answers returns a check that GET path on a loopback port returns 200 and a body that contains want, ignoring spaces.
func (p *Plane) answers(port int, path, want string) func(context.Context) error {
	pool := x509.NewCertPool()
	pool.AddCert(p.servers.certificate)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		DisableKeepAlives: true,
	}}
	url := "https://127.0.0.1:" + strconv.Itoa(port) + path
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		if err != nil {
			return err
		}
		if compact := strings.Join(strings.Fields(string(body)), ""); response.StatusCode != http.StatusOK || !strings.Contains(compact, want) {
			return fmt.Errorf("%s answers %s: %s", path, response.Status, compact)
		}
		return nil
	}
}
