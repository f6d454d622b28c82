package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Endpoint is a path of a server in the cluster. Errors are those of the API server, or have the response of the server.
type Endpoint struct {
	client rest.Interface
	path   string
	header map[string]string
	// hint follows errors of connections.
	hint string
}

// Proxied returns the endpoint at a path of a Service, to which the API server connects by HTTPS. It passes requests on without the header Authorization, and
// the user needs the permission to get services/proxy, and to patch it to send something.
func (c *Client) Proxied(namespace, service, port, at string, header map[string]string) *Endpoint {
	return &Endpoint{c.rest, path.Join("/api/v1/namespaces", namespace, "services", "https:"+service+":"+port, "proxy", at), header, ""}
}

// Outside returns the endpoint at a URL, to which this machine connects. The authorities, in PEM, are trusted besides those of the system. No redirect is
// followed: the header is for this server. The hint follows errors of connections.
func Outside(from string, authorities []byte, header map[string]string, hint string) (*Endpoint, error) {
	to, err := url.Parse(from)
	if err != nil || to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("%q is no HTTPS URL", from)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if len(authorities) > 0 && !roots.AppendCertsFromPEM(authorities) {
		return nil, errors.New("the certificate of the server is not in PEM")
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	config := &rest.Config{Host: "https://" + to.Host, QPS: -1, ContentConfig: rest.ContentConfig{
		NegotiatedSerializer: serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs},
	}}
	made, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Endpoint{made, to.Path, header, hint}, nil
}

// Get requests what begins at a byte, and returns the body.
func (e *Endpoint) Get(ctx context.Context, from int64) (io.ReadCloser, error) {
	body, err := e.request(http.MethodGet, map[string]string{"Range": fmt.Sprintf("bytes=%d-", from)}).Stream(ctx)
	return body, e.explain(err)
}

// Send sends a body with the method PATCH.
func (e *Endpoint) Send(ctx context.Context, header map[string]string, body io.Reader) error {
	return e.explain(e.request(http.MethodPatch, header).Body(body).Do(ctx).Error())
}

// explain adds the hint to an error that is no response.
func (e *Endpoint) explain(err error) error {
	if responded := apierrors.APIStatus(nil); err == nil || e.hint == "" || errors.As(err, &responded) {
		return err
	}
	return fmt.Errorf("%w: %s", err, e.hint)
}

// request is made once.
func (e *Endpoint) request(method string, more map[string]string) *rest.Request {
	request := e.client.Verb(method).AbsPath(e.path).MaxRetries(0)
	for _, header := range []map[string]string{e.header, more} {
		for key, value := range header {
			request.SetHeader(key, value)
		}
	}
	return request
}
