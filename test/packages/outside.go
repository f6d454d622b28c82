package packages

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/vmstencil/stencil/test/controlplane"
)

// Outside stands for what is between users and movers outside of a cluster: the name server, the load balancer and the ingress controller. Users connect by it
// as by a proxy of HTTPS (the environment variable HTTPS_PROXY), to the host names of Ingresses. It passes TLS through to the pods of the Service that an Ingress names,
// or ends it with its own certificate, as controllers do. No real controller can run here: it would find movers by their EndpointSlices, which have no address of the
// loopback, where they listen.
type Outside struct {
	// Proxy is the URL of the proxy.
	Proxy string
	// Certificate is that with which TLS is ended, in PEM; nil if it is passed through.
	Certificate []byte

	plane   *controlplane.Plane
	servers []*httptest.Server
	ending  string
}

// NewOutside starts it. If it ends TLS, it has a certificate for all names below the domain.
func NewOutside(plane *controlplane.Plane, ends bool) *Outside {
	o := &Outside{plane: plane}
	proxy := httptest.NewServer(http.HandlerFunc(o.connect))
	o.servers, o.Proxy = append(o.servers, proxy), proxy.URL
	if ends {
		// Controllers do not verify the certificate of a mover, unless they are given it.
		server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				address, err := o.resolve(r.In.Context(), r.In.Host)
				if err != nil {
					address = "127.0.0.1:0"
				}
				r.SetURL(&url.URL{Scheme: "https", Host: address})
			},
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:gosec // As above.
		})
		server.StartTLS()
		o.servers, o.ending = append(o.servers, server), server.Listener.Addr().String()
		o.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	return o
}

// Close ends it.
func (o *Outside) Close() {
	for _, server := range o.servers {
		server.CloseClientConnections()
		server.Close()
	}
}

// connect connects a user to a host.
func (o *Outside) connect(w http.ResponseWriter, r *http.Request) {
	address, err := o.resolve(r.Context(), r.Host)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(w, fmt.Sprint("no Ingress leads there: ", err), http.StatusBadGateway)
		return
	}
	if o.ending != "" {
		address = o.ending
	}
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	w.WriteHeader(http.StatusOK)
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	go func() {
		_, _ = io.Copy(to, buffered)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// resolve returns the address of the pod to which the Ingress of a host leads.
func (o *Outside) resolve(ctx context.Context, host string) (string, error) {
	host, _, _ = strings.Cut(host, ":")
	var ingresses networkingv1.IngressList
	if err := o.read(ctx, &ingresses, "ingresses", "-A"); err != nil {
		return "", err
	}
	for index := range ingresses.Items {
		for _, rule := range ingresses.Items[index].Spec.Rules {
			if rule.Host != host {
				continue
			}
			return o.pod(ctx, ingresses.Items[index].Namespace, rule.HTTP.Paths[0].Backend.Service)
		}
	}
	return "", errors.New("no Ingress has the host " + host)
}

// pod returns the address of the pod of a Service that runs.
func (o *Outside) pod(ctx context.Context, namespace string, backend *networkingv1.IngressServiceBackend) (string, error) {
	var service corev1.Service
	if err := o.read(ctx, &service, "service", backend.Name, "-n", namespace); err != nil {
		return "", err
	}
	var selector []string
	for key, value := range service.Spec.Selector {
		selector = append(selector, key+"="+value)
	}
	var pods corev1.PodList
	if err := o.read(ctx, &pods, "pods", "-n", namespace, "-l", strings.Join(selector, ",")); err != nil {
		return "", err
	}
	for _, port := range service.Spec.Ports {
		if port.Name != backend.Port.Name {
			continue
		}
		for index := range pods.Items {
			if pod := &pods.Items[index]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port.TargetPort.IntValue())), nil
			}
		}
	}
	return "", fmt.Errorf("the Service %s/%s has no pod", namespace, backend.Name)
}

func (o *Outside) read(ctx context.Context, into any, arguments ...string) error {
	result, err := o.plane.Kubectl(ctx, nil, "", append([]string{"get", "-o", "json"}, arguments...)...)
	if err == nil && result.Code != 0 {
		err = errors.New(result.Stderr)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(result.Stdout), into)
}

// client is an HTTP client of a user outside of the cluster, who trusts a certificate in PEM.
func (o *Outside) client(certificate []byte) (*http.Client, error) {
	proxy, err := url.Parse(o.Proxy)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if o.Certificate != nil {
		// The certificate of the test server.
		config.ServerName = "example.com"
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: config, DisableKeepAlives: true}}, nil
}
