package controlplane

import (
	"encoding/hex"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/vmstencil/stencil/test/product"
)

// User is a user that the API server authenticates by a client certificate. A new user has the permissions that RBAC grants to
// system:authenticated and to its groups; Plane.Grant and Plane.Bind add more.
type User struct {
	// Name is the username in the API server.
	Name string
	// Groups are the user's, beside system:authenticated.
	Groups []string
	// Kubeconfig is the path of a kubeconfig file, for kubectl and other processes.
	Kubeconfig string

	config *rest.Config
}

// Config returns a new client configuration for the user, without client-side rate limits.
func (u *User) Config() *rest.Config {
	product.Depend()
	return rest.CopyConfig(u.config)
}

// User makes a user with a client certificate signed by the plane's authority. The API stores no user: two calls for the same name return the same
// user with different certificates.
func (p *Plane) User(name string, groups ...string) (*User, error) {
	certificate, err := p.clients.client(name, groups...)
	if err != nil {
		return nil, err
	}
	user := &User{Name: name, Groups: groups, config: &rest.Config{
		Host: p.host,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   p.servers.pem,
			CertData: certificate.Certificate,
			KeyData:  certificate.Key,
		},
		// Tests wait for the API server, never for their own client.
		QPS: -1,
	}}
	// Names such as system:serviceaccount:… are not valid file names everywhere, and two names may be the same once cleaned.
	file := unsafeInFileName.ReplaceAllString(name, "-") + "-" + hex.EncodeToString(randomBytes(4)) + ".kubeconfig"
	user.Kubeconfig = p.folder.file("kubeconfigs", file)
	if err := clientcmd.WriteToFile(user.kubeconfig(), user.Kubeconfig); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", name, err)
	}
	return user, nil
}

var unsafeInFileName = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

// kubeconfig is the client configuration in kubectl's terms.
func (u *User) kubeconfig() clientcmdapi.Config {
	const cluster = "stencil-plane"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: u.config.Host, CertificateAuthorityData: u.config.CAData}
	config.AuthInfos[u.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: u.config.CertData, ClientKeyData: u.config.KeyData}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: u.Name}
	config.CurrentContext = cluster
	return *config
}

// unversioned completes a configuration for requests to plain paths.
func unversioned(config *rest.Config) *rest.Config {
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}
