package frontproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clocktesting "k8s.io/utils/clock/testing"
)

// authority signs the certificates of proxies.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

var serial atomic.Int64

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key = issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	return a
}

// proxy is a certificate of a proxy, valid for a time.
func (a *authority) proxy(t *testing.T, name string, validFor time.Duration) *x509.Certificate {
	t.Helper()
	certificate, _ := issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(validFor), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
	return certificate
}

func issue(t *testing.T, wanted *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wanted.SerialNumber = big.NewInt(serial.Add(1))
	wanted.NotBefore = time.Now().Add(-time.Hour)
	if wanted.NotAfter.IsZero() {
		wanted.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := wanted, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, wanted, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// trust is what may change while the server runs, and counts how often a certificate is verified.
type trust struct {
	dynamiccertificates.Notifier
	mutex         sync.Mutex
	content       []byte
	names         []string
	verifications atomic.Int64
}

func (t *trust) set(a *authority, names ...string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.content, t.names = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}), names
}

func (t *trust) Name() string { return "test" }

func (t *trust) CurrentCABundleContent() []byte {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.content
}

func (t *trust) VerifyOptions() (x509.VerifyOptions, bool) {
	t.verifications.Add(1)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(t.CurrentCABundleContent())
	return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
}

func (t *trust) Value() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.names
}

// stage is an authenticator with what it depends on.
type stage struct {
	*trust
	clock *clocktesting.FakePassiveClock
	ask   func(person string, chain ...*x509.Certificate) (name string, groups []string)
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{trust: &trust{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	tested := New(&authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		CAContentProvider:   s.trust,
		AllowedClientNames:  s.trust,
	}, s.clock)
	s.ask = func(person string, chain ...*x509.Certificate) (string, []string) {
		request := httptest.NewRequest(http.MethodPost, "/", nil)
		if person != "" {
			request.Header.Set("X-Remote-User", person)
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

// wants asks as a person and checks who that is to the server: nobody when empty.
func (s *stage) wants(t *testing.T, person, want string, verifications int64, chain ...*x509.Certificate) {
	t.Helper()
	before := s.verifications.Load()
	name, groups := s.ask(person, chain...)
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

func TestACertificateIsVerifiedOnceAndPeopleAreReadEveryTime(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good, "front-proxy")
	proxy := good.proxy(t, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, proxy)
	s.wants(t, "bob", "bob", 0, proxy)
	s.wants(t, "", "", 0, proxy)
	s.wants(t, "ada", "", 0)
	another := good.proxy(t, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, another)
	s.clock.SetTime(s.clock.Now().Add(remembered))
	s.wants(t, "ada", "ada", 1, proxy)
	s.wants(t, "ada", "ada", 0, proxy)
}

// TestAStrangerIsNobody comes again and again with what must not be believed; nothing of it is remembered.
func TestAStrangerIsNobody(t *testing.T) {
	s := newStage(t)
	good, evil := newAuthority(t), newAuthority(t)
	s.set(good, "front-proxy")
	proxy := good.proxy(t, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, proxy)
	for name, chain := range map[string][]*x509.Certificate{
		"a certificate of the same name by another authority": {evil.proxy(t, "front-proxy", time.Hour)},
		"one that brings its own authority along":             {evil.proxy(t, "front-proxy", time.Hour), evil.certificate},
		"one that brings the certificate of the proxy along":  {evil.proxy(t, "front-proxy", time.Hour), proxy},
		"a certificate for another name":                      {good.proxy(t, "somebody", time.Hour)},
		"a certificate that has expired":                      {good.proxy(t, "front-proxy", -time.Minute)},
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
	proxy := old.proxy(t, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, proxy)
	s.set(next, "front-proxy")
	s.wants(t, "ada", "", 1, proxy)
	s.wants(t, "ada", "ada", 1, next.proxy(t, "front-proxy", time.Hour))
	s.set(old, "another")
	s.wants(t, "ada", "", 1, proxy)
	s.set(old)
	s.wants(t, "ada", "ada", 1, proxy)
}

// TestACertificateIsNotRememberedBeyondItsEnd has the clock of the memory go on, by which it is forgotten; that it has expired is
// seen by the real one.
func TestACertificateIsNotRememberedBeyondItsEnd(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good)
	proxy := good.proxy(t, "front-proxy", 5*time.Second)
	s.wants(t, "ada", "ada", 1, proxy)
	s.clock.SetTime(proxy.NotAfter.Add(-time.Millisecond))
	s.wants(t, "ada", "ada", 0, proxy)
	s.clock.SetTime(proxy.NotAfter)
	before := s.verifications.Load()
	s.ask("ada", proxy)
	if s.verifications.Load() == before {
		t.Error("it is believed after its end")
	}
}

func TestTheMemoryIsBounded(t *testing.T) {
	s := newStage(t)
	good := newAuthority(t)
	s.set(good)
	first := good.proxy(t, "front-proxy", time.Hour)
	s.wants(t, "ada", "ada", 1, first)
	for range capacity {
		s.wants(t, "ada", "ada", 1, good.proxy(t, "front-proxy", time.Hour))
	}
	s.wants(t, "ada", "ada", 1, first)
}

func TestManyAtOnce(t *testing.T) {
	s := newStage(t)
	good, next := newAuthority(t), newAuthority(t)
	s.set(good)
	proxy := good.proxy(t, "front-proxy", time.Hour)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				if name, _ := s.ask("ada", proxy); name != "ada" && name != "" {
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
	if name, _ := s.ask("ada", proxy); name != "" {
		t.Errorf("it is %q, by an authority that is not trusted any more", name)
	}
}
