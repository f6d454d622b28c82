package server

import (
	"flag"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/authority"
	"github.com/vmstencil/stencil/internal/certificates/files"
)

// The values of --certificate-source.
const (
	SourceAuthority = "authority"
	SourceFiles     = "files"
)

// authorityLabels mark the Secret of the authority as Stencil's. The first server creates it, and all servers would create the same.
var authorityLabels = map[string]string{"app.kubernetes.io/managed-by": "stencil-manager"}

// Certificates are the flags that define the source of serving certificates.
type Certificates struct {
	// Source is SourceAuthority or SourceFiles.
	Source string
	// Directory holds tls.crt and tls.key.
	Directory string
	// Secret and Namespace are the name and namespace of the Secret with the authority.
	Secret, Namespace string
	// AuthorityDuration and Duration are how long an authority and a serving
	// certificate are valid.
	AuthorityDuration, Duration time.Duration
	// Names are the DNS names and IP addresses by which the server is called.
	Names List
	// SettleTime is how long an authority has to be published before a certificate of it
	// replaces one that is trusted.
	SettleTime time.Duration
}

// Bind registers the flags, with their defaults.
func (c *Certificates) Bind(flags *flag.FlagSet) {
	flags.StringVar(&c.Source, "certificate-source", SourceAuthority,
		"Where serving certificates come from: authority (signed by Stencil's own) or files.")
	flags.StringVar(&c.Directory, "certificate-directory", "/etc/stencil/certificates",
		"Directory of tls.crt and tls.key (source files). They are read again when they change.")
	flags.StringVar(&c.Secret, "certificate-authority-secret", "stencil-webhook-ca",
		"Secret of the certificate authority, the same for stencil-manager and stencil-apiserver (source authority).")
	flags.StringVar(&c.Namespace, "certificate-authority-namespace", "",
		"Namespace of that Secret; empty means the server's own.")
	flags.DurationVar(&c.AuthorityDuration, "certificate-authority-duration", 365*24*time.Hour,
		"How long a certificate authority is valid; it is replaced after two thirds of that. The same for both servers.")
	flags.DurationVar(&c.Duration, "certificate-duration", 24*time.Hour,
		"How long a serving certificate is valid; it is replaced after two thirds of that. Also how long an authority is trusted after it was replaced. The same for both servers.")
	c.Names = List{"localhost", "127.0.0.1", "::1"}
	flags.Var(&c.Names, "certificate-dns-names",
		"DNS names and IP addresses, separated by commas, by which API servers call this server (source authority).")
	flags.DurationVar(&c.SettleTime, "certificate-settle-time", 5*time.Second,
		"How long an authority has to be published before a certificate of it takes the place of one that is trusted already (source authority).")
}

// UseFiles sets the source to the files of a directory.
func (c *Certificates) UseFiles(directory string) { c.Source, c.Directory = SourceFiles, directory }

// Validate returns everything that is wrong with the flags.
func (c *Certificates) Validate() []error {
	var problems []error
	complain := func(wrong bool, format string, arguments ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, arguments...))
		}
	}
	switch c.Source {
	case SourceAuthority:
		complain(c.Secret == "", "--certificate-authority-secret: must not be empty")
		complain(c.Namespace == "", "--certificate-authority-namespace: must be given outside a pod, or as %s", NamespaceVariable)
		complain(c.Duration <= 0, "--certificate-duration: must be positive")
		complain(c.SettleTime < 0, "--certificate-settle-time: must not be negative")
		// The certificate that is served while a new authority is being published has at least a third of its life left, and so has its authority.
		complain(c.SettleTime >= c.Duration/3, "--certificate-settle-time: must be less than a third of --certificate-duration")
		complain(c.Duration >= c.AuthorityDuration, "--certificate-duration: must be less than --certificate-authority-duration")
		complain(len(c.Names) == 0, "--certificate-dns-names: must not be empty")
	case SourceFiles:
		complain(c.Directory == "", "--certificate-directory: must not be empty")
	default:
		complain(true, "--certificate-source: must be %s or %s, not %q", SourceAuthority, SourceFiles, c.Source)
	}
	return problems
}

// AuthoritySecret is the name of the Secret with the authority.
func (c *Certificates) AuthoritySecret() types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Secret}
}

// Open returns the source of serving certificates that the flags define. With an authority of Stencil's own, it calls watch for the authorities that
// the API servers trust.
func (c *Certificates) Open(config *rest.Config, logger logr.Logger, watch func() (authority.Publication, error)) (certificates.Source, error) {
	if c.Source == SourceFiles {
		return files.New(files.Options{Directory: c.Directory})
	}
	publication, err := watch()
	if err != nil {
		return nil, err
	}
	return authority.New(authority.Options{
		Config:            config,
		Secret:            c.AuthoritySecret(),
		SecretLabels:      authorityLabels,
		AuthorityDuration: c.AuthorityDuration,
		Duration:          c.Duration,
		Names:             c.Names,
		Settling:          c.SettleTime,
		Publication:       publication,
		Logger:            logger,
	}), nil
}
