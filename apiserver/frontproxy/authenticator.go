package frontproxy

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/utils/clock"
)

const (
	// remembered is how long a certificate counts as verified. Answers of TokenReviews
	// and SubjectAccessReviews are kept as long.
	remembered = 10 * time.Second
	// capacity bounds how many certificates are remembered: there is one for each
	// replica of kube-apiserver.
	capacity = 64
)

// New returns an authenticator of what the front proxies of the configuration hand on.
// It has nothing to say of a request whose certificate is none of theirs: the
// authenticators after it find out what is wrong with it.
func New(config *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) authenticator.Request {
	return group.NewAuthenticatedGroupAdder(&proxies{
		certificate: requestx509.NewDynamicCAVerifier(config.CAContentProvider.VerifyOptions, authenticator.RequestFunc(anybody), config.AllowedClientNames),
		person:      headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes),
		config:      config,
		clock:       clock,
		verified:    map[fingerprint]time.Time{},
	})
}

// anybody is behind the verification of the certificate, which is asked only whether
// it gets here.
func anybody(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{}, true, nil
}

// fingerprint is of a certificate and of everything it was verified against.
type fingerprint [sha256.Size]byte

type proxies struct {
	certificate authenticator.Request
	person      authenticator.Request
	config      *authenticatorfactory.RequestHeaderConfig
	clock       clock.PassiveClock

	mutex sync.Mutex
	// verified says until when. Only certificates that are good come in, so a stranger
	// cannot fill it.
	verified map[fingerprint]time.Time
}

// AuthenticateRequest implements authenticator.Request.
func (p *proxies) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	if !p.trusts(request) {
		return nil, false, nil
	}
	return p.person.AuthenticateRequest(request)
}

// trusts says whether the connection is that of a front proxy.
func (p *proxies) trusts(request *http.Request) bool {
	if request.TLS == nil || len(request.TLS.PeerCertificates) == 0 {
		return false
	}
	leaf := request.TLS.PeerCertificates[0]
	authorities := p.config.CAContentProvider.CurrentCABundleContent()
	mark := p.fingerprint(leaf, authorities)
	if p.knows(mark) {
		return true
	}
	if _, good, err := p.certificate.AuthenticateRequest(request); err != nil || !good {
		return false
	}
	// Authorities that have changed meanwhile may be those that have verified it.
	if bytes.Equal(authorities, p.config.CAContentProvider.CurrentCABundleContent()) {
		p.remember(mark, leaf.NotAfter)
	}
	return true
}

// fingerprint changes with the authorities and with the names, so that a certificate
// is verified anew as soon as either is another.
func (p *proxies) fingerprint(leaf *x509.Certificate, authorities []byte) fingerprint {
	hash := sha256.New()
	part := func(content []byte) {
		sum := sha256.Sum256(content)
		hash.Write(sum[:])
	}
	part(leaf.Raw)
	part(authorities)
	for _, name := range p.config.AllowedClientNames.Value() {
		part([]byte(name))
	}
	return fingerprint(hash.Sum(nil))
}

func (p *proxies) knows(mark fingerprint) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.clock.Now().Before(p.verified[mark])
}

func (p *proxies) remember(mark fingerprint, expires time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.verified) >= capacity {
		clear(p.verified)
	}
	until := p.clock.Now().Add(remembered)
	if expires.Before(until) {
		until = expires
	}
	p.verified[mark] = until
}
