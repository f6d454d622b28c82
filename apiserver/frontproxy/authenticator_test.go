package frontproxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

// validFrom is when the certificates of the tests begin to be valid.
const validFrom = -time.Hour

func newAuthority(t *testing.T) *certificatestest.Authority {
	t.Helper()
	return certificatestest.NewAuthority(t, time.Now().Add(validFrom), 2*time.Hour)
}

// proxy is a certificate of a proxy, valid for a time from now on.
func proxy(t *testing.T, by *certificatestest.Authority, name string, validFor time.Duration) *x509.Certificate {
	t.Helper()
	return by.Client(t, name, time.Now().Add(validFrom), validFor-validFrom).Leaf
}

// trust is what may change while the server runs.
type trust struct {
	dynamiccertificates.Notifier
	mutex sync.Mutex
	roots *x509.CertPool
	names []string
	// read is called after the authorities have been read.
	read func()
}

func (t *trust) set(a *certificatestest.Authority, names ...string) {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.roots, t.names = pool, names
}

func (t *trust) Name() string { return "test" }

func (t *trust) CurrentCABundleContent() []byte { return nil }

func (t *trust) VerifyOptions() (x509.VerifyOptions, bool) {
	if t.read != nil {
		defer t.read()
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return x509.VerifyOptions{Roots: t.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, t.roots != nil
}

func (t *trust) Value() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.names
}

// stage is an authenticator with its dependencies.
type stage struct {
	*trust
	clock *clocktesting.FakePassiveClock
	// verifications is how often a certificate was verified.
	verifications atomic.Int64
	ask           func(user string, chain ...*x509.Certificate) (name string, groups []string)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{trust: &trust{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	proxies := newProxies(&authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		CAContentProvider:   s.trust,
		AllowedClientNames:  s.trust,
	}, s.clock)
	verifier := proxies.verifier
	proxies.verifier = func(options requestx509.VerifyOptionFunc, then authenticator.Request, names requestx509.StringSliceProvider) authenticator.Request {
		s.verifications.Add(1)
		return verifier(options, then, names)
	}
	tested := proxies.authenticator()
	s.ask = func(user string, chain ...*x509.Certificate) (string, []string) {
		request := httptest.NewRequest(http.MethodPost, "/", nil)
		if user != "" {
			request.Header.Set("X-Remote-User", user)
			request.Header.Set("X-Remote-Group", "developers")
		}
		if chain != nil {
			request.TLS = &tls.ConnectionState{PeerCertificates: chain}
		}
		found, ok, err := tested.AuthenticateRequest(request)
		if err != nil {
			t.Errorf("the authenticators after it are to say what is wrong: %v", err)
		}
		if !ok {
			return "", nil
		}
		return found.User.GetName(), found.User.GetGroups()
	}
	return s
}

// wants sends a request as a user and checks the authenticated user: none when empty.
func (s *stage) wants(t *testing.T, user, want string, verifications int64, chain ...*x509.Certificate) {
	t.Helper()
	before := s.verifications.Load()
	name, groups := s.ask(user, chain...)
	if name != want {
		t.Errorf("the server takes it for %q, want %q", name, want)
	}
	if want != "" && !slices.Equal(groups, []string{"developers", "system:authenticated"}) {
		t.Errorf("groups are %v", groups)
	}
	if got := s.verifications.Load() - before; got != verifications {
		t.Errorf("verified %d times, want %d", got, verifications)
	}
}

func TestACertificateIsVerifiedOnceAndUsersAreReadEveryTime(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good, "front-proxy")
	known := proxy(t, good, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, known)
	s.wants(t, "bob", "bob", 0, known)
	s.wants(t, "", "", 0, known)
	s.wants(t, "ada", "", 0)
	another := proxy(t, good, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, another)
	s.clock.SetTime(s.clock.Now().Add(verificationTTL))
	s.wants(t, "ada", "ada", 1, known)
	s.wants(t, "ada", "ada", 0, known)
}

// TestAStrangerIsNobody repeatedly sends certificates that must be rejected; none of them is cached.
func TestAStrangerIsNobody(t *testing.T) {
	s := newStage(t)
	good, evil := newAuthority(t), newAuthority(t)
	s.set(good, "front-proxy")
	known := proxy(t, good, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, known)
	for name, chain := range map[string][]*x509.Certificate{
		"a certificate of the same name by another authority": {proxy(t, evil, "front-proxy", time.Hour)},
		"one that brings its own authority along":             {proxy(t, evil, "front-proxy", time.Hour), evil.Certificate},
		"one that brings the certificate of the proxy along":  {proxy(t, evil, "front-proxy", time.Hour), known},
		"a certificate for another name":                      {proxy(t, good, "somebody", time.Hour)},
		"a certificate that has expired":                      {proxy(t, good, "front-proxy", -time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s.wants(t, "system:admin", "", 1, chain...)
			s.wants(t, "system:admin", "", 1, chain...)
		})
	}
}

func TestWhatIsTrustedChangesAtOnce(t *testing.T) {
	s := newStage(t)
	old, next := newAuthority(t), newAuthority(t)
	s.set(old, "front-proxy")
	known := proxy(t, old, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, known)
	s.set(next, "front-proxy")
	s.wants(t, "ada", "", 1, known)
	s.wants(t, "ada", "ada", 1, proxy(t, next, "front-proxy", time.Hour))
	s.set(old, "another")
	s.wants(t, "ada", "", 1, known)
	s.set(old)
	s.wants(t, "ada", "ada", 1, known)
}

// TestWhatIsTrustedChangesInBetween changes the authorities and changes them back during the verification of a certificate: the cached evidence is
// what it was verified against.
func TestWhatIsTrustedChangesInBetween(t *testing.T) {
	s := newStage(t)
	good, next := newAuthority(t), newAuthority(t)
	known := proxy(t, good, "front-proxy", time.Hour)
	s.set(good, "front-proxy")
	s.read = func() { s.set(next, "another") }
	s.ask("ada", known)
	s.read = nil
	s.wants(t, "ada", "", 1, known)
	s.read = func() { s.set(good, "front-proxy") }
	s.ask("ada", known)
	s.read = nil
	s.wants(t, "ada", "ada", 1, known)
	s.set(next, "another")
	s.wants(t, "ada", "", 1, known)
}

// TestACertificateIsNotCachedBeyondItsEnd advances the clock of the cache, so that the entry expires; the verification itself uses the real
// clock.
func TestACertificateIsNotCachedBeyondItsEnd(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good)
	known := proxy(t, good, "front-proxy", 5*time.Second)
	s.wants(t, "ada", "ada", 1, known)
	s.clock.SetTime(known.NotAfter.Add(-time.Millisecond))
	s.wants(t, "ada", "ada", 0, known)
	s.clock.SetTime(known.NotAfter)
	before := s.verifications.Load()
	s.ask("ada", known)
	if s.verifications.Load() == before {
		t.Error("it is believed after its end")
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good)
	first := proxy(t, good, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, first)
	for range capacity {
		s.wants(t, "ada", "ada", 1, proxy(t, good, "front-proxy", time.Hour))
	}
	s.wants(t, "ada", "ada", 1, first)
}

func TestManyAtOnce(t *testing.T) {
	s := newStage(t)
	good, next := newAuthority(t), newAuthority(t)
	s.set(good)
	known := proxy(t, good, "front-proxy", time.Hour)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				if name, _ := s.ask("ada", known); name != "ada" && name != "" {
					t.Errorf("it is %q", name)
				}
			}
		})
	}
	wait.Go(func() {
		for range 50 {
			s.set(next)
			s.set(good)
		}
	})
	wait.Wait()
	s.set(next)
	if name, _ := s.ask("ada", known); name != "" {
		t.Errorf("it is %q, by an authority that is not trusted any more", name)
	}
}
