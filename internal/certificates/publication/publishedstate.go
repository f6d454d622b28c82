package publication

import (
	"crypto/x509"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmstencil/stencil/internal/await"
	"github.com/vmstencil/stencil/internal/certificates/bundle"
)

// Authority is a certificate authority in a caBundle.
type Authority struct {
	Certificate *x509.Certificate
	// Since is when this process first saw the authority there, uninterrupted since.
	Since time.Time
}

// Published is what one webhook configuration trusts.
type Published struct {
	// Configuration names the webhook configuration.
	Configuration Target
	// Authorities are those that every webhook of the configuration trusts, in the order of the first webhook's
	// caBundle.
	Authorities []Authority
}

// publishedState stores what is published. A configuration that does not exist, or has no webhooks, is not in it: it causes no calls.
type publishedState struct {
	mutex     sync.Mutex
	published map[Target]Published
	// changed is sent whenever published changes.
	changed await.Signal
}

func newPublishedState() *publishedState {
	return &publishedState{published: map[Target]Published{}}
}

// record stores a configuration's present state.
func (l *publishedState) record(configuration Configuration, now time.Time) {
	if len(configuration.Webhooks) == 0 {
		l.forget(configuration.Target)
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before := l.published[configuration.Target].Authorities
	after := []Authority{}
	for _, certificate := range common(configuration.Webhooks) {
		authority := Authority{Certificate: certificate, Since: now}
		for _, previous := range before {
			if previous.Certificate.Equal(certificate) {
				authority.Since = previous.Since
			}
		}
		after = append(after, authority)
	}
	l.published[configuration.Target] = Published{Configuration: configuration.Target, Authorities: after}
	l.changed.Send()
}

// forget removes a configuration that no longer exists or has no webhooks.
func (l *publishedState) forget(target Target) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.published, target)
	l.changed.Send()
}

// snapshot returns what is published, sorted by configuration, and a channel that is closed at the next change.
func (l *publishedState) snapshot() ([]Published, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var published []Published
	for _, each := range l.published {
		published = append(published, each)
	}
	slices.SortFunc(published, func(a, b Published) int {
		return strings.Compare(a.Configuration.String(), b.Configuration.String())
	})
	return published, l.changed.Changed()
}

// common returns the certificates that are in the caBundle of every webhook.
func common(webhooks []Webhook) []*x509.Certificate {
	certificates := bundle.Parse(webhooks[0].CABundle)
	for _, webhook := range webhooks[1:] {
		others := bundle.Parse(webhook.CABundle)
		certificates = slices.DeleteFunc(certificates, func(certificate *x509.Certificate) bool {
			return !bundle.Contains(others, certificate)
		})
	}
	return certificates
}
