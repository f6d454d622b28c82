// Package services stands for the network of a cluster: it connects the API server, which calls webhooks and aggregated API servers through Services, to
// processes on this machine. The API server is configured to dial by an HTTP CONNECT proxy; the proxy looks up whose cluster address is dialed, and connects to the
// process that the Service was routed to.
//
// A Service of another type, such as an ExternalName, is dialed as it is.
package services

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// dialLimit bounds one connection to a process.
const dialLimit = 5 * time.Second

// Network connects Services to processes.
type Network struct {
	server  *http.Server
	serving sync.WaitGroup

	mutex  sync.Mutex
	kube   kubernetes.Interface
	routes map[string]string
	// endpoints are the processes behind addresses of endpoints.
	endpoints map[string]string
}

// Start starts the proxy on a socket. Connect completes it when there is an API server.
func Start(socket string) (*Network, error) {
	n := &Network{routes: map[string]string{}, endpoints: map[string]string{}}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	n.server = &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: dialLimit}
	n.serving.Go(func() { _ = n.server.Serve(listener) })
	return n, nil
}

// Configuration is the API server's file of --egress-selector-config-file, for the path of the socket as the API server sees it.
func Configuration(socket string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[
		{"name":"cluster","connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":%q}}}}]}`, socket)
}

// Connect names the API server in which Services are looked up.
func (n *Network) Connect(config *rest.Config) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the network: %w", err)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.kube = kube
	return nil
}

// Route lets connections to a Service, whichever of its ports, reach HOST:PORT. An empty address ends that.
func (n *Network) Route(namespace, service, address string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.routes[namespace+"/"+service] = address
}

// Endpoint lets connections to the address of a pod, whichever port, reach HOST:PORT. The API server dials it for users of services/proxy, if it is
// not of the loopback.
func (n *Network) Endpoint(address, to string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.endpoints[address] = to
}

// Stop ends the proxy, and the connections through it.
func (n *Network) Stop() {
	_ = n.server.Close()
	n.serving.Wait()
}

// resolve returns the address of the process behind HOST:PORT.
func (n *Network) resolve(ctx context.Context, address string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	n.mutex.Lock()
	kube, endpoint := n.kube, n.endpoints[host]
	n.mutex.Unlock()
	if endpoint != "" {
		return endpoint, nil
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() || kube == nil {
		return address, nil
	}
	all, err := kube.CoreV1().Services("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	for _, service := range all.Items {
		if service.Spec.ClusterIP != host {
			continue
		}
		n.mutex.Lock()
		defer n.mutex.Unlock()
		if to := n.routes[service.Namespace+"/"+service.Name]; to != "" {
			return to, nil
		}
		return "", fmt.Errorf("the Service %s/%s has no endpoints", service.Namespace, service.Name)
	}
	return "", fmt.Errorf("no Service has the address %s", host)
}

// connect serves one request of the API server.
func (n *Network) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	to, err := n.resolve(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	dialed, err := (&net.Dialer{Timeout: dialLimit}).DialContext(r.Context(), "tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer dialed.Close()
	hijacker, is := w.(http.Hijacker)
	if !is {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		_, _ = io.Copy(dialed, buffered)
		_ = dialed.Close()
	})
	_, _ = io.Copy(client, dialed)
	_ = client.Close()
	copying.Wait()
}
