// Package packages downloads the packages of VirtualMachineTemplateExports and uploads those of VirtualMachineTemplateImports, as a client in the cluster does, for tests and the demo.
package packages

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/transfer"
)

// Package is what a ready export offers, or what an import waits for.
type Package struct {
	URL, ExternalURL, Token, Digest string
	// Certificate of the server, in PEM.
	Certificate []byte
	Size        int64
	// address of the mover. On a real cluster the Service leads there.
	address string
	// outside is what users outside of the cluster connect by; nil for those inside.
	outside *Outside
}

// From returns the package for a user outside of the cluster.
func (p *Package) From(outside *Outside) *Package {
	from := *p
	from.URL, from.outside = p.ExternalURL, outside
	if outside.Certificate != nil {
		from.Certificate = outside.Certificate
	}
	return &from
}

// Of reads the package of an export, as a user; as the administrator when that is nil.
func Of(ctx context.Context, plane *controlplane.Plane, user *controlplane.User, namespace, export string) (*Package, error) {
	as := reader{plane, user, namespace}
	object := &v1beta1.VirtualMachineTemplateExport{}
	if err := as.read(ctx, object, "vmte", export); err != nil {
		return nil, err
	}
	if object.Status.Phase != v1beta1.TransferReady || object.Status.TokenSecretRef == nil {
		return nil, fmt.Errorf("export %s/%s is %s", namespace, export, object.Status.Phase)
	}
	p := &Package{URL: object.Status.URL, ExternalURL: object.Status.ExternalURL, Digest: object.Status.Digest, Size: object.Status.Size}
	return p, as.complete(ctx, p, object.Status.TokenSecretRef.Name, object.UID)
}

// For reads where the package of an import is uploaded to.
func For(ctx context.Context, plane *controlplane.Plane, user *controlplane.User, namespace, name string) (*Package, error) {
	as := reader{plane, user, namespace}
	object := &v1beta1.VirtualMachineTemplateImport{}
	if err := as.read(ctx, object, "vmti", name); err != nil {
		return nil, err
	}
	status := object.Status.Upload
	if object.Status.Phase != v1beta1.TransferUploading || status == nil || status.TokenSecretRef == nil {
		return nil, fmt.Errorf("import %s/%s is %s", namespace, name, object.Status.Phase)
	}
	p := &Package{URL: status.URL, ExternalURL: status.ExternalURL, Size: object.Spec.Source.Upload.Size}
	return p, as.complete(ctx, p, status.TokenSecretRef.Name, object.UID)
}

// reader reads objects of a namespace as a user.
type reader struct {
	plane     *controlplane.Plane
	user      *controlplane.User
	namespace string
}

func (r reader) read(ctx context.Context, into any, arguments ...string) error {
	result, err := r.plane.Kubectl(ctx, r.user, "", append([]string{"get", "-n", r.namespace, "-o", "json"}, arguments...)...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return errors.New(result.Stderr)
	}
	return json.Unmarshal([]byte(result.Stdout), into)
}

// complete reads the token, the certificate and the address of the mover.
func (r reader) complete(ctx context.Context, p *Package, name string, uid types.UID) error {
	var secret struct{ Data map[string]string }
	if err := r.read(ctx, &secret, "secret", name); err != nil {
		return err
	}
	token, err1 := base64.StdEncoding.DecodeString(secret.Data["token"])
	certificate, err2 := base64.StdEncoding.DecodeString(secret.Data["ca.crt"])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := r.read(ctx, pods, "pods", "-l", v1beta1.LabelTransferUID+"="+string(uid)); err != nil {
		return err
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
	})
	if len(pods.Items) != 1 {
		return fmt.Errorf("the transfer %s has %d pods that run", uid, len(pods.Items))
	}
	p.Token, p.Certificate, p.address = string(token), certificate, net.JoinHostPort(pods.Items[0].Status.PodIP, strconv.Itoa(transfer.Port))
	return nil
}

// offered counts the endpoints of this process.
var offered atomic.Int32

// Offer lets the API server reach the mover of a package, as the network of a cluster does. The API server passes requests on to no address of the loopback,
// where movers listen, so that neither the pod nor the EndpointSlice of its Service will do: another pod, which runs nowhere, has an address that leads to the
// mover.
func Offer(ctx context.Context, plane *controlplane.Plane, namespace string, of *Package) error {
	at, err := url.Parse(of.URL)
	if err != nil {
		return err
	}
	service, _, _ := strings.Cut(at.Hostname(), ".")
	address := fmt.Sprintf("198.51.100.%d", offered.Add(1))
	plane.Network().Endpoint(address, of.address)
	for _, command := range []struct {
		stdin     string
		arguments []string
	}{
		// Pods of nodes that do not exist are deleted.
		{`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "nowhere"}}`, []string{"apply", "-f", "-"}},
		{fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": "nowhere", "terminationGracePeriodSeconds": 0,
			"containers": [{"name": "none", "image": "none"}]}}`, service), []string{"apply", "-f", "-"}},
		{"", []string{
			"patch", "pod", service, "--subresource=status", "--type=merge",
			"--patch", fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"ip": %q}]}}`, address, address),
		}},
		{fmt.Sprintf(`{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": %q, "labels": {"kubernetes.io/service-name": %q}}, "addressType": "IPv4",
			"ports": [{"name": "https", "port": %d, "protocol": "TCP"}],
			"endpoints": [{"addresses": [%q], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "namespace": %q, "name": %q}}]}`,
			service, service, transfer.Port, address, namespace, service), []string{"apply", "-f", "-"}},
	} {
		made, err := plane.Kubectl(ctx, nil, command.stdin, append(command.arguments, "-n", namespace)...)
		if err == nil && made.Code != 0 {
			err = errors.New(made.Stderr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Response is the response to a request for a package.
type Response struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Get requests the package with a header. That of Authorized permits it.
func (p *Package) Get(ctx context.Context, header http.Header) (*Response, error) {
	return p.request(ctx, http.MethodGet, header, http.NoBody)
}

// Append sends a part of the package that begins at an offset.
func (p *Package) Append(ctx context.Context, offset int64, content []byte) (*Response, error) {
	header := p.Authorized()
	header.Set("Content-Type", transfer.UploadType)
	header.Set(transfer.TusVersion, transfer.Tus)
	header.Set(transfer.UploadOffset, strconv.FormatInt(offset, 10))
	return p.request(ctx, http.MethodPatch, header, bytes.NewReader(content))
}

func (p *Package) request(ctx context.Context, method string, header http.Header, content io.Reader) (*Response, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.URL, content)
	if err != nil {
		return nil, err
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return &Response{response.StatusCode, response.Header, body}, err
}

// client is an HTTP client of a user.
func (p *Package) client() (*http.Client, error) {
	if p.outside != nil {
		return p.outside.client(p.Certificate)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.Certificate) {
		return nil, errors.New("the Secret has no certificate")
	}
	// The Service of a plane has no proxy: the name is resolved to the pod, and the certificate is verified for the name.
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.address)
		},
	}}, nil
}

// Authorized returns the header that permits a download or an upload.
func (p *Package) Authorized() http.Header {
	return http.Header{"Authorization": {"Bearer " + p.Token}}
}
