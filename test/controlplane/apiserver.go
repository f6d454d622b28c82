package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/controlplane/services"
)

const (
	// ServiceRange is the address range of Services. No traffic is routed to them.
	ServiceRange = "10.96.0.0/16"
	// serviceIP of the API server's own Service, the first of ServiceRange.
	serviceIP = "10.96.0.1"

	serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

	apiServerProcess = "kube-apiserver"

	// networkSocket is relative to the plane's folder, in which the API server runs: paths of sockets are short.
	networkSocket = "services"

	// aggregatorName is the common name of the certificate by which the API server authenticates to aggregated API servers.
	aggregatorName = "front-proxy-client"
)

// startAPIServer creates the plane's authorities and administrator, starts kube-apiserver and waits until it is ready.
func (p *Plane) startAPIServer(ctx context.Context, path string) error {
	arguments, err := p.apiServerIdentity()
	if err != nil {
		return err
	}
	listen, err := p.listenArguments()
	if err != nil {
		return err
	}
	arguments = append(arguments,
		"--etcd-servers=unix://"+etcdSocket,
		"--service-cluster-ip-range="+ServiceRange,
		"--authorization-mode=Node,RBAC",
		// virt-launcher Pods are privileged.
		"--allow-privileged=true",
		"--profiling=false",
		"--cert-dir="+p.folder.file("pki"),
	)
	audit, err := p.auditArguments()
	if err != nil {
		return err
	}
	network, err := p.networkArguments()
	if err != nil {
		return err
	}
	arguments = slices.Concat(arguments, listen, audit, network, p.options.APIServerArgs)

	return p.ports.try(ctx, 1, func(ctx context.Context, ports []int) error {
		p.host = "https://127.0.0.1:" + strconv.Itoa(ports[0])
		if p.admin, err = p.User("stencil-admin", "system:masters"); err != nil {
			return err
		}
		started, err := p.startProcessWith(apiServerMemory, apiServerProcess, path, append([]string{"--secure-port=" + strconv.Itoa(ports[0])}, arguments...)...)
		if err != nil {
			return err
		}
		if err := p.awaitAPIServer(ctx, started); err != nil || p.network == nil {
			return err
		}
		return p.network.Connect(p.AdminConfig())
	})
}

// listenArguments returns the flags by which pods reach the API server, and it reaches kubelets.
func (p *Plane) listenArguments() ([]string, error) {
	if p.options.Address == "" {
		// Endpoints must not contain a loopback address, and no component of the plane finds the API server through them.
		return []string{"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"}, nil
	}
	identity, err := p.clients.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return nil, err
	}
	certificate, key, err := identity.store(p.folder, "kubelet-client")
	return []string{
		"--bind-address=0.0.0.0", "--advertise-address=" + p.options.Address, "--endpoint-reconciler-type=lease",
		"--kubelet-client-certificate=" + certificate, "--kubelet-client-key=" + key, "--kubelet-preferred-address-types=InternalIP",
	}, err
}

// apiServerMemory lets kube-apiserver use more memory: installing and removing the chart took a fifth less processor time, and 0.4 GiB more.
var apiServerMemory = []string{"GOGC=300", "GOMEMLIMIT=3GiB"}

// Network connects Services to processes; nil without Options.Services.
func (p *Plane) Network() *services.Network { return p.network }

// networkArguments starts the network, if there is to be one, and returns the flags by which the API server uses it.
func (p *Plane) networkArguments() ([]string, error) {
	if !p.options.Services {
		return nil, nil
	}
	var err error
	if p.network, err = services.Start(p.folder.file(networkSocket)); err != nil {
		return nil, err
	}
	file, err := p.folder.write(services.Configuration(networkSocket), "pki", "egress.json")
	if err != nil {
		return nil, err
	}
	return []string{"--egress-selector-config-file=" + file}, nil
}

func (p *Plane) awaitAPIServer(ctx context.Context, started *process) error {
	client, err := rest.UnversionedRESTClientFor(unversioned(p.AdminConfig()))
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	return started.await(ctx, func(ctx context.Context) error {
		return client.Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// apiServerIdentity makes every key and certificate of the API server and returns the flags that name them.
func (p *Plane) apiServerIdentity() ([]string, error) {
	var err error
	if p.clients, err = newAuthority("stencil-plane-clients"); err != nil {
		return nil, err
	}
	if p.servers, err = newAuthority("stencil-plane-servers"); err != nil {
		return nil, err
	}
	// A certificate for the aggregator's requests must never pass for one of a user's, so it has an authority of its own.
	aggregation, err := newAuthority("stencil-plane-aggregation")
	if err != nil {
		return nil, err
	}

	hosts := []string{"127.0.0.1", "localhost", serviceIP, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	if p.options.Address != "" {
		hosts = append(hosts, p.options.Address)
	}
	serving, err := p.servers.server(hosts...)
	if err != nil {
		return nil, err
	}
	aggregator, err := aggregation.client(aggregatorName)
	if err != nil {
		return nil, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of service account tokens: %w", err)
	}
	tokenKey, err := encodeKey(tokens)
	if err != nil {
		return nil, err
	}

	servingCertificate, servingKey, err := serving.store(p.folder, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	aggregatorCertificate, aggregatorKey, err := aggregator.store(p.folder, "front-proxy")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		clientAuthorityFile:      p.clients.pem,
		serverAuthorityFile:      p.servers.pem,
		aggregationAuthorityFile: aggregation.pem,
		serviceAccountKeyFile:    tokenKey,
	} {
		if _, err := p.folder.write(content, "pki", name); err != nil {
			return nil, err
		}
	}
	return []string{
		"--tls-cert-file=" + servingCertificate,
		"--tls-private-key-file=" + servingKey,
		"--client-ca-file=" + p.folder.file("pki", clientAuthorityFile),
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + p.folder.file("pki", serviceAccountKeyFile),
		"--service-account-signing-key-file=" + p.folder.file("pki", serviceAccountKeyFile),
		"--proxy-client-cert-file=" + aggregatorCertificate,
		"--proxy-client-key-file=" + aggregatorKey,
		"--requestheader-client-ca-file=" + p.folder.file("pki", aggregationAuthorityFile),
		"--requestheader-allowed-names=" + aggregatorName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}, nil
}

// Files in the folder pki that more than one component reads.
const (
	clientAuthorityFile      = "clients-ca.crt"
	serverAuthorityFile      = "servers-ca.crt"
	aggregationAuthorityFile = "aggregation-ca.crt"
	serviceAccountKeyFile    = "service-accounts.key"
)
