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

// maximumAuthorities is the maximum number of authorities in a caBundle. It is reached only by rotations that follow each other faster than
// replicas take over the new authority; then the oldest authorities are removed.
const maximumAuthorities = 10

// former is an authority that is or was published and is not the current one.
type former struct {
	certificate *x509.Certificate
	// since is when this process first read it beside another current authority.
	since time.Time
}

// state is the input of decide.
type state struct {
	now time.Time
	// current is the current authority; nil if there is none.
	current *x509.Certificate
	// formers are the entries of the previous plan.
	formers []former
	// configurations are the existing ones.
	configurations []publication.Configuration
}

// plan is the result of decide.
type plan struct {
	// bundle is the caBundle of every webhook, in PEM.
	bundle []byte
	// authorities are the certificates in bundle.
	authorities []*x509.Certificate
	// outdated are the configurations in which a webhook has a different caBundle.
	outdated []publication.Configuration
	// formers are the input of the next decision.
	formers []former
	// again is when the next former authority is removed; zero if there is none.
	again time.Time
}

// decide returns the content of the caBundles. overlap is how long a serving certificate of a former authority may be in use.
func decide(s state, overlap time.Duration) plan {
	// Without a valid current authority, the published caBundles stay as they are.
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

// join returns the plan of a replica that may not be the leader: it only writes configurations that lack the current authority. Their caBundle is
// the one that the leader would write, so that the leader changes it at most once more.
func join(s state, overlap time.Duration) plan {
	p := decide(s, overlap)
	p.outdated = slices.DeleteFunc(p.outdated, func(configuration publication.Configuration) bool {
		return !slices.ContainsFunc(configuration.Webhooks, func(webhook publication.Webhook) bool {
			return !bundle.Contains(bundle.Parse(webhook.CABundle), s.current)
		})
	})
	return p
}

// candidates returns the former authorities of the previous plan and the authorities that are published in a configuration, each once,
// without the current one.
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

// retirement returns when a former authority is removed: when it expires, or when nothing that it signed can be in use any more. An
// authority of Stencil's own went out of use when the current one was created. For a foreign one, such as that of another certificate
// provider, that time is unknown; the time at which this process first read it is used if it is later.
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

// newestFirst orders formers by the start of their validity, newest first, and then by content: all replicas must produce the same order.
func newestFirst(a, b former) int {
	return cmp.Or(
		b.certificate.NotBefore.Compare(a.certificate.NotBefore),
		bytes.Compare(a.certificate.Raw, b.certificate.Raw),
	)
}

// outdated reports whether a webhook of the configuration has a different caBundle.
func outdated(configuration publication.Configuration, want []byte) bool {
	return slices.ContainsFunc(configuration.Webhooks, func(webhook publication.Webhook) bool {
		return !bytes.Equal(webhook.CABundle, want)
	})
}
