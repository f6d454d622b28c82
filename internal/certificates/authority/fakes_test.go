package authority

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"

	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// fakeSigner returns what it is given.
type fakeSigner struct {
	mutex       sync.Mutex
	certificate *tls.Certificate
}

func (s *fakeSigner) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *fakeSigner) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.certificate == nil {
		return nil, errors.New("not signed yet")
	}
	return s.certificate, nil
}

func (s *fakeSigner) sign(certificate *tls.Certificate) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.certificate = certificate
}

// fakePublication publishes what it is given.
type fakePublication struct {
	mutex     sync.Mutex
	synced    bool
	published []publication.Published
	changed   chan struct{}
}

func newFakePublication() *fakePublication {
	return &fakePublication{changed: make(chan struct{})}
}

func (p *fakePublication) Synced() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.synced
}

func (p *fakePublication) Published() ([]publication.Published, <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.published, p.changed
}

func (p *fakePublication) publish(published ...publication.Published) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.synced = true
	p.published = published
	close(p.changed)
	p.changed = make(chan struct{})
}
