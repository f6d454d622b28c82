package files

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/bundle"
)

// The names of the files, which are those of a Secret of type kubernetes.io/tls.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// pollInterval is how often the files are read without a notification from the file system. Not every kind of
// volume sends one.
const pollInterval = 10 * time.Second

// Options are what a Source needs.
type Options struct {
	// Directory holds tls.crt and tls.key.
	Directory string
	// Clock is for the validity of certificates. Default: the real one.
	Clock clock.PassiveClock
}

// Source implements certificates.Source.
type Source struct {
	watcher *certwatcher.CertWatcher
	clock   clock.PassiveClock
}

var _ certificates.Source = (*Source)(nil)

// New reads the certificate for the first time.
func New(options Options) (*Source, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	watcher, err := certwatcher.New(filepath.Join(options.Directory, certificateFile), filepath.Join(options.Directory, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate in %s: %w", options.Directory, err)
	}
	return &Source{watcher: watcher.WithWatchInterval(pollInterval), clock: options.Clock}, nil
}

// NeedLeaderElection implements certificates.Source.
func (s *Source) NeedLeaderElection() bool {
	return false
}

// Start implements certificates.Source.
func (s *Source) Start(ctx context.Context) error {
	if err := s.watcher.Start(ctx); err != nil {
		return fmt.Errorf("watching the serving certificate: %w", err)
	}
	return nil
}

// GetCertificate implements certificates.Source.
func (s *Source) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.watcher.GetCertificate(hello)
}

// Ready implements certificates.Source.
func (s *Source) Ready(*http.Request) error {
	certificate, err := s.watcher.GetCertificate(nil)
	if err != nil {
		return err
	}
	if certificate.Leaf == nil {
		return errors.New("the serving certificate has not been parsed")
	}
	if !bundle.ValidAt(certificate.Leaf, s.clock.Now()) {
		return fmt.Errorf("the serving certificate is valid from %s to %s only",
			certificate.Leaf.NotBefore.Format(time.RFC3339), certificate.Leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}
