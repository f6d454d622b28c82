package frontproxy

import (
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
	// verificationTTL is how long a certificate counts as verified. Results of TokenReviews and SubjectAccessReviews are cached as long.
	verificationTTL = 10 * time.Second
	// capacity bounds how many certificates are cached: there is one for each replica of kube-apiserver.
	capacity = 64
)

// New returns an authenticator of requests from the front proxies of the configuration. It has no result for a request with a certificate of none of
// them: the authenticators after it report what is wrong.
func New(config *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) authenticator.Request {
	return newProxies(config, clock).authenticator()
}

func newProxies(config *authenticatorfactory.RequestHeaderConfig, clock clock.PassiveClock) *proxies {
	return &proxies{
		users:    headerrequest.NewDynamic(config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes),
		verifier: requestx509.NewDynamicCAVerifier,
		config:   config,
		clock:    clock,
		verified: map[evidence]time.Time{},
	}
}

// anyUser is the authenticator after the verification of the certificate. It is reached only if the certificate is valid.
func anyUser(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{}, true, nil
}

// evidence is a certificate and everything against which it was verified, so that it is verified again when any of that changes.
type evidence struct {
	// content is of the certificate and of the names a proxy may have.
	content [sha256.Size]byte
	// roots are the authorities. Providers make a new pool when the authorities change, and return the same one until then.
	roots *x509.CertPool
}

type proxies struct {
	users    authenticator.Request
	verifier func(requestx509.VerifyOptionFunc, authenticator.Request, requestx509.StringSliceProvider) authenticator.Request
	config   *authenticatorfactory.RequestHeaderConfig
	clock    clock.PassiveClock

	mutex sync.Mutex
	// verified maps to the time of expiry. Only valid certificates are added, so that other clients cannot fill it.
	verified map[evidence]time.Time
}

func (p *proxies) authenticator() authenticator.Request {
	return group.NewAuthenticatedGroupAdder(p)
}

// AuthenticateRequest implements authenticator.Request.
func (p *proxies) AuthenticateRequest(request *http.Request) (*authenticator.Response, bool, error) {
	if !p.trusts(request) {
		return nil, false, nil
	}
	return p.users.AuthenticateRequest(request)
}

// trusts reports whether the connection is that of a front proxy. Authorities and names are read once: the cached evidence has to be what was
// verified against, even if it changes, and changes back, meanwhile.
func (p *proxies) trusts(request *http.Request) bool {
	if request.TLS == nil || len(request.TLS.PeerCertificates) == 0 {
		return false
	}
	options, known := p.config.CAContentProvider.VerifyOptions()
	if !known {
		return false
	}
	leaf, names := request.TLS.PeerCertificates[0], headerrequest.StaticStringSlice(p.config.AllowedClientNames.Value())
	found := evidence{content: digest(leaf, names), roots: options.Roots}
	if p.isVerified(found) {
		return true
	}
	read := func() (x509.VerifyOptions, bool) { return options, true }
	verifier := p.verifier(read, authenticator.RequestFunc(anyUser), names)
	if _, good, err := verifier.AuthenticateRequest(request); err != nil || !good {
		return false
	}
	p.store(found, leaf.NotAfter)
	return true
}

func digest(leaf *x509.Certificate, names []string) [sha256.Size]byte {
	hash := sha256.New()
	part := func(content []byte) {
		sum := sha256.Sum256(content)
		hash.Write(sum[:])
	}
	part(leaf.Raw)
	for _, name := range names {
		part([]byte(name))
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func (p *proxies) isVerified(found evidence) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.clock.Now().Before(p.verified[found])
}

func (p *proxies) store(found evidence, expires time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if len(p.verified) >= capacity {
		clear(p.verified)
	}
	until := p.clock.Now().Add(verificationTTL)
	if expires.Before(until) {
		until = expires
	}
	p.verified[found] = until
}
