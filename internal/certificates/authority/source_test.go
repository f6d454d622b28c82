package authority

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// fixture is a source with dependencies that the test controls.
type fixture struct {
	source      *Source
	signer      *fakeSigner
	publication *fakePublication
	clock       *clocktesting.FakeClock
}

func newFixture(t *testing.T) *fixture {
	s := &fixture{signer: &fakeSigner{}, publication: newFakePublication(), clock: clocktesting.NewFakeClock(noon)}
	s.source = newSource(Options{
		Settling:    settling,
		Publication: s.publication,
		Logger:      testr.New(t),
		Clock:       s.clock,
	}, s.signer)
	return s
}

// observed is what a caller observes of a source.
type observed struct {
	Serving *tls.Certificate
	Ready   string
}

func (s *fixture) observe() observed {
	var o observed
	o.Serving, _ = s.source.GetCertificate(nil)
	if err := s.source.Ready(nil); err != nil {
		o.Ready = err.Error()
	}
	return o
}

// A life of a source, second by second: what a row does happens at its second, then the source advances.
func TestSourceThroughALife(t *testing.T) {
	one := certificatestest.NewAuthority(t, ago(time.Minute), 48*time.Hour)
	two := certificatestest.NewAuthority(t, noon, 48*time.Hour)
	first := one.Serving(t, noon, 24*time.Hour)
	second := two.Serving(t, noon.Add(100*time.Second), 24*time.Hour)
	third := two.Serving(t, noon.Add(200*time.Second), 24*time.Hour)

	s := newFixture(t)
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	since := func(authority *certificatestest.Authority, second int) publication.Authority {
		return publication.Authority{Certificate: authority.Certificate, Since: at(second)}
	}
	both := func(authorities ...publication.Authority) func() {
		return func() {
			s.publication.publish(publishes(render, authorities...), publishes(validate, authorities...))
		}
	}
	none := func() {}
	rows := []struct {
		what   string
		second int
		does   func()
		want   observed
	}{
		{"it starts without a certificate", 0, none,
			observed{nil, "there is no serving certificate yet"}},
		{"the library signs one before the configurations are read", 1, func() { s.signer.sign(first) },
			observed{first, "the webhook configuration cache is not synced"}},
		{"they turn out to trust nobody", 2, both(),
			observed{first, "the authority of the serving certificate is not in the caBundle of MutatingWebhookConfiguration/render, ValidatingWebhookConfiguration/validate"}},
		{"the authority is published in one", 3, func() { s.publication.publish(publishes(render, since(one, 3)), publishes(validate)) },
			observed{first, "the authority of the serving certificate is not in the caBundle of ValidatingWebhookConfiguration/validate"}},
		{"and in the other, where nobody else is trusted: no need to wait", 4, both(since(one, 3)),
			observed{first, ""}},
		{"the authority is replaced and the library has signed again", 100, func() { s.signer.sign(second) },
			observed{first, ""}},
		{"the new authority is published", 101, both(since(two, 101), since(one, 3)),
			observed{first, ""}},
		{"not all API servers may have noticed", 105, none,
			observed{first, ""}},
		{"now they have", 106, none,
			observed{second, ""}},
		{"the new certificate is renewed in its turn", 200, func() { s.signer.sign(third) },
			observed{second, ""}},
		{"it is served once all clocks accept it", 205, none,
			observed{third, ""}},
		{"somebody empties the bundles: nothing better is there to serve, and being unready would help nobody", 300, both(),
			observed{third, ""}},
		{"the configurations are deleted", 301, func() { s.publication.publish() },
			observed{third, ""}},
		{"two days later it is over", 2 * 24 * 3600, none,
			observed{nil, ""}},
	}
	for _, row := range rows {
		s.clock.SetTime(at(row.second))
		row.does()
		s.source.advance()
		if diff := cmp.Diff(row.want, s.observe(), cmp.Comparer(func(a, b *tls.Certificate) bool { return a == b })); diff != "" {
			t.Fatalf("second %d: %s (-want +got):\n%s", row.second, row.what, diff)
		}
	}
}

func TestSourceKeepsAFewCertificates(t *testing.T) {
	served := certificatestest.NewAuthority(t, ago(time.Hour), 48*time.Hour)
	other := certificatestest.NewAuthority(t, ago(time.Hour), 48*time.Hour)
	s := newFixture(t)
	s.publication.publish(publishes(render, trusts(served, time.Hour)))
	first := served.Serving(t, ago(time.Minute), 24*time.Hour)
	s.signer.sign(first)
	s.source.advance()
	for range 3 * maximumLeaves {
		s.signer.sign(other.Serving(t, ago(time.Minute), 24*time.Hour))
		s.source.advance()
		if got := len(s.source.leaves); got > maximumLeaves {
			t.Fatalf("the source keeps %d certificates, want at most %d", got, maximumLeaves)
		}
	}
	if got, _ := s.source.GetCertificate(nil); got != first {
		t.Error("the certificate that is trusted is served no longer")
	}
}

func TestSourceStopsWithItsContext(t *testing.T) {
	s := newFixture(t)
	done := make(chan error, 1)
	ctx, cancel := testContext(t)
	go func() { done <- s.source.Start(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("want no error, got %v", err)
	}
}
