package authority

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	librarytls "github.com/cert-manager/cert-manager/pkg/server/tls"
	libraryauthority "github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

const (
	// commonName is the subject of the authority.
	commonName = "stencil-webhook-ca"
	// retryInterval is how long the library waits before it tries again to sign.
	retryInterval = 250 * time.Millisecond
	// pollInterval is how often to check whether the library has signed a new certificate: it sends no notification.
	pollInterval = 200 * time.Millisecond
	// reconsiderInterval is how often to decide when nothing changes: certificates and authorities expire.
	reconsiderInterval = time.Minute
	// maximumLeaves is how many certificates are retained.
	maximumLeaves = 8
)

var (
	errNoCertificate = errors.New("there is no serving certificate yet")
	errNotSynced     = errors.New("the webhook configuration cache is not synced")
)

// Publication returns which authorities are published; a publication.Watch does.
type Publication interface {
	// Synced reports whether Published is complete.
	Synced() bool
	// Published returns what is published, and a channel that is closed when that changes.
	Published() ([]publication.Published, <-chan struct{})
}

// Options are what a Source needs.
type Options struct {
	// Config reaches the API server.
	Config *rest.Config
	// Secret is where the key and the certificate of the authority are stored.
	Secret types.NamespacedName
	// SecretLabels are put on the Secret when it is made.
	SecretLabels map[string]string
	// AuthorityDuration is how long an authority is valid. It is replaced after two thirds of that.
	AuthorityDuration time.Duration
	// Duration is how long a serving certificate is valid. It is replaced after two thirds of that.
	Duration time.Duration
	// Names are the DNS names and IP addresses by which API servers call.
	Names []string
	// Settling is how long an authority has to be published before its certificate replaces one that is accepted already.
	Settling time.Duration
	// Publication returns which authorities the API servers trust.
	Publication Publication
	Logger      logr.Logger
	// Clock is for validity and settling times. Default: the real one.
	Clock clock.WithTicker
}

// signer returns the newest certificate of this replica; the library's DynamicSource does.
type signer interface {
	Start(ctx context.Context) error
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Source implements certificates.Source.
type Source struct {
	options Options
	signer  signer
	// leaves are the certificates that may be served, oldest first. These four belong to advance.
	leaves     []*leaf
	considered <-chan struct{}
	synced     bool
	due        time.Time
	// serving is the result of the last decision.
	serving atomic.Pointer[choice]
	// accepted is set once the API servers accepted what this replica serves, and stays so: see Ready.
	accepted atomic.Bool
}

var _ certificates.Source = (*Source)(nil)

// New returns a Source that signs with an authority in a Secret.
func New(options Options) *Source {
	return newSource(options, &librarytls.DynamicSource{
		DNSNames:      options.Names,
		RetryInterval: retryInterval,
		Authority: addresses{&libraryauthority.DynamicAuthority{
			SecretNamespace: options.Secret.Namespace,
			SecretName:      options.Secret.Name,
			SecretLabels:    options.SecretLabels,
			RESTConfig:      options.Config,
			CommonName:      commonName,
			CADuration:      options.AuthorityDuration,
			LeafDuration:    options.Duration,
		}},
	})
}

func newSource(options Options, signer signer) *Source {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Source{options: options, signer: signer}
}

// NeedLeaderElection implements certificates.Source.
func (s *Source) NeedLeaderElection() bool {
	return false
}

// Start implements certificates.Source.
func (s *Source) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// The library logs every step at the level of messages that a user needs.
		quiet := logr.NewContext(ctx, s.options.Logger.V(1))
		if err := s.signer.Start(quiet); err != nil {
			return fmt.Errorf("signing serving certificates: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		s.follow(ctx)
		return nil
	})
	return group.Wait()
}

// follow decides whenever there is a reason to, until ctx ends.
func (s *Source) follow(ctx context.Context) {
	ticker := s.options.Clock.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		changed := s.advance()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C():
		}
	}
}

// advance collects what the library has signed and, when there is a reason to, decides what to serve. It returns a channel that is closed when what
// is published changes.
func (s *Source) advance() <-chan struct{} {
	publicationSynced := s.options.Publication.Synced()
	configurations, changed := s.options.Publication.Published()
	now := s.options.Clock.Now()
	added := s.collect()
	news := added || changed != s.considered || publicationSynced != s.synced
	if len(s.leaves) == 0 || !news && now.Before(s.due) {
		return changed
	}

	var present *leaf
	if before := s.serving.Load(); before != nil {
		present = before.leaf
	}
	decision := choose(now, s.leaves, present, configurations, s.options.Settling)
	s.serving.Store(&decision)
	if publicationSynced && decision.trust >= synced {
		s.accepted.Store(true)
	}
	s.report(decision, present)
	s.prune(decision, now)

	s.considered, s.synced = changed, publicationSynced
	s.due = earliest(decision.next, now.Add(reconsiderInterval))
	return changed
}

// collect adds the library's newest certificate to the leaves, unless it is there already.
func (s *Source) collect() (added bool) {
	newest, err := s.signer.GetCertificate(nil)
	if err != nil {
		return false
	}
	if len(s.leaves) > 0 && s.leaves[len(s.leaves)-1].certificate == newest {
		return false
	}
	signed, err := newLeaf(newest)
	if err != nil {
		s.options.Logger.Error(err, "the certificate library handed out a certificate that cannot be read")
		return false
	}
	s.options.Logger.Info("signed a serving certificate", "serial", signed.serial(), "notAfter", signed.x509.NotAfter)
	s.leaves = append(s.leaves, signed)
	return true
}

// report logs the result of a decision.
func (s *Source) report(decision choice, before *leaf) {
	newest := s.leaves[len(s.leaves)-1]
	switch {
	case decision.leaf == nil:
		s.options.Logger.Info("no serving certificate is valid now", "serial", newest.serial(), "notBefore", newest.x509.NotBefore, "notAfter", newest.x509.NotAfter)
	case decision.leaf != before:
		s.options.Logger.Info("serving another certificate", "serial", decision.leaf.serial(), "notAfter", decision.leaf.x509.NotAfter, "missingIn", decision.missing)
	}
	if decision.leaf != nil && decision.leaf != newest {
		s.options.Logger.V(1).Info("a newer certificate waits until it is accepted everywhere", "serial", newest.serial())
	}
}

// prune drops the leaves that will not be served any more: those older than one that is accepted everywhere, expired ones, and the oldest of too
// many, in case the Secret is rewritten endlessly.
func (s *Source) prune(decision choice, now time.Time) {
	var retained []*leaf
	for _, each := range s.leaves {
		switch {
		case each == decision.leaf && decision.trust == seasoned:
			retained = nil
		case each != decision.leaf && bundle.Expired(each.x509, now):
			continue
		}
		retained = append(retained, each)
	}
	for i := 0; len(retained) > maximumLeaves; {
		if retained[i] == decision.leaf {
			i++
		}
		retained = append(retained[:i:i], retained[i+1:]...)
	}
	s.leaves = retained
}

// GetCertificate implements certificates.Source.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	decision := s.serving.Load()
	if decision == nil || decision.leaf == nil {
		return nil, errNoCertificate
	}
	return decision.leaf.certificate, nil
}

// Ready implements certificates.Source. Once the API servers have accepted what this replica serves it stays ready: choose then never selects a less
// trusted leaf, and a configuration that loses its caBundle later must not disable the webhooks of the other configurations.
func (s *Source) Ready(*http.Request) error {
	if s.accepted.Load() {
		return nil
	}
	decision := s.serving.Load()
	switch {
	case decision == nil || decision.leaf == nil:
		return errNoCertificate
	case len(decision.missing) > 0:
		names := make([]string, len(decision.missing))
		for i, configuration := range decision.missing {
			names[i] = configuration.String()
		}
		return fmt.Errorf("the authority of the serving certificate is not in the caBundle of %s", strings.Join(names, ", "))
	case !s.options.Publication.Synced():
		return errNotSynced
	default:
		return fmt.Errorf("the authority of the serving certificate was published less than %s ago", s.options.Settling)
	}
}
