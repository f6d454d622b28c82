package cabundle

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"slices"
	"time"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// maximumAuthorities is how many authorities a caBundle holds at most. Only rotations that follow each other faster than
// replicas can keep up reach it; then those go that are the longest out of use.
const maximumAuthorities = 10

// former is an authority that is published, or was, and is not the present one.
type former struct {
	certificate *x509.Certificate
	// since is when this process first saw it beside another present authority.
	since time.Time
}

// state is what is gathered.
type state struct {
	now time.Time
	// current is the present authority; nil while there is none.
	current *x509.Certificate
	// formers is what the decision before remembered.
	formers []former
	// configurations are those that exist.
	configurations []publication.Configuration
}

// plan is what to do.
type plan struct {
	// bundle is what every webhook's caBundle should be, in PEM.
	bundle []byte
	// authorities are what bundle is made of.
	authorities []*x509.Certificate
	// outdated are the configurations in which some webhook's caBundle is another.
	outdated []publication.Configuration
	// formers is what to remember until the next decision.
	formers []former
	// again is when the next former authority goes; zero when none will.
	again time.Time
}

// decide says what the caBundles should hold. overlap is how long a serving certificate of a former authority
// may be in use.
func decide(s state, overlap time.Duration) plan {
	// Without a present authority there is nothing better to publish than what stands there.
	if s.current == nil || !s.current.IsCA || bundle.Expired(s.current, s.now) {
		return plan{formers: s.formers}
	}
	var p plan
	for _, candidate := range candidates(s) {
		end := retirement(candidate, s.current, overlap)
		if !s.now.Before(end) {
			continue
		}
		p.formers = append(p.formers, candidate)
	}
	slices.SortStableFunc(p.formers, newestFirst)
	p.formers = p.formers[:min(len(p.formers), maximumAuthorities-1)]

	p.authorities = []*x509.Certificate{s.current}
	for _, each := range p.formers {
		p.authorities = append(p.authorities, each.certificate)
		if end := retirement(each, s.current, overlap); p.again.IsZero() || end.Before(p.again) {
			p.again = end
		}
	}
	p.bundle = bundle.Encode(p.authorities)
	for _, configuration := range s.configurations {
		if outdated(configuration, p.bundle) {
			p.outdated = append(p.outdated, configuration)
		}
	}
	return p
}

// candidates returns every authority but the present one that is remembered or published somewhere, each once.
func candidates(s state) []former {
	var found []former
	add := func(certificate *x509.Certificate, since time.Time) {
		known := slices.ContainsFunc(found, func(f former) bool { return f.certificate.Equal(certificate) })
		if !known && !certificate.Equal(s.current) {
			found = append(found, former{certificate, since})
		}
	}
	for _, each := range s.formers {
		add(each.certificate, each.since)
	}
	for _, configuration := range s.configurations {
		for _, webhook := range configuration.Webhooks {
			for _, certificate := range bundle.Parse(webhook.CABundle) {
				add(certificate, s.now)
			}
		}
	}
	return found
}

// retirement returns when a former authority goes: when it expires, or when nothing that it signed can be in use
// any more. An authority of ours was out of use from the moment the present one was made. When a foreign one,
// say that of another certificate provider, went out of use nobody knows better than that it was not before
// this process saw it.
func retirement(f former, current *x509.Certificate, overlap time.Duration) time.Time {
	replaced := current.NotBefore
	if f.since.After(replaced) {
		replaced = f.since
	}
	if end := replaced.Add(overlap); end.Before(f.certificate.NotAfter) {
		return end
	}
	return f.certificate.NotAfter
}

// newestFirst orders formers by the beginning of their validity, and where that does not tell, by content: the order must be the same
// whoever decides.
func newestFirst(a, b former) int {
	return cmp.Or(
		b.certificate.NotBefore.Compare(a.certificate.NotBefore),
		bytes.Compare(a.certificate.Raw, b.certificate.Raw),
	)
}

// outdated tells whether a webhook of the configuration has another caBundle.
func outdated(configuration publication.Configuration, want []byte) bool {
	return slices.ContainsFunc(configuration.Webhooks, func(webhook publication.Webhook) bool {
		return !bytes.Equal(webhook.CABundle, want)
	})
}
