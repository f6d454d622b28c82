package authority

import (
	"time"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// trust says how far the API servers can be expected to accept a leaf.
type trust int

const (
	// untrusted: a webhook configuration does not hold the leaf's authority, or the leaf is not valid now.
	untrusted trust = iota
	// published: every configuration holds the authority, but some API server may not have noticed.
	published
	// settled: every API server knows the authority; the clock of one may be a little behind ours, and the leaf so
	// new that there its validity has not begun.
	settled
	// seasoned: every API server accepts the leaf.
	seasoned
)

// choice is what to serve.
type choice struct {
	// leaf is nil when there is none to serve.
	leaf  *leaf
	trust trust
	// missing are the configurations that do not vouch for the leaf.
	missing []publication.Target
	// next is when the same question may have another answer though nothing was published and no leaf added; zero
	// when only that can change it.
	next time.Time
}

// choose says which of the leaves, oldest first, to serve at the time now.
//
// It is the newest of those that are trusted furthest. When none is trusted at all it is the present one as long as
// that is valid, and then the newest.
func choose(now time.Time, leaves []*leaf, present *leaf, configurations []publication.Published, settling time.Duration) choice {
	var best choice
	var next time.Time
	for _, candidate := range leaves {
		judged := judge(now, candidate, configurations, settling)
		next = earliest(next, judged.next)
		switch {
		case !bundle.ValidAt(candidate.x509, now):
			continue
		case best.leaf == nil, judged.trust > best.trust:
			best = judged
		case judged.trust < best.trust:
			continue
		case judged.trust == untrusted && best.leaf == present:
			continue
		default:
			best = judged
		}
	}
	best.next = next
	return best
}

// judge says how far a single leaf is trusted, and when that may change by itself.
func judge(now time.Time, candidate *leaf, configurations []publication.Published, settling time.Duration) choice {
	judged := choice{leaf: candidate, trust: seasoned}
	// limit keeps the trust down to a level until settling has passed since a moment.
	limit := func(level trust, since time.Time) {
		if end := since.Add(settling); now.Before(end) {
			judged.trust = min(judged.trust, level)
			judged.next = earliest(judged.next, end)
		}
	}
	limit(settled, candidate.x509.NotBefore)
	for _, configuration := range configurations {
		since, trusted := trustedSince(now, candidate, configuration.Authorities)
		if !trusted {
			judged.missing = append(judged.missing, configuration.Configuration)
			continue
		}
		limit(published, since)
	}
	if len(judged.missing) > 0 || !bundle.ValidAt(candidate.x509, now) {
		judged.trust = untrusted
	}
	return judged
}

// trustedSince returns since when a configuration vouches for the leaf. When it vouches for nobody
// else, that is for ever: an API server that has not noticed yet trusts nobody, or somebody whose leaves nobody can serve
// any more, so that there is nothing to wait for.
func trustedSince(now time.Time, candidate *leaf, authorities []publication.Authority) (since time.Time, trusted bool) {
	others := false
	for _, authority := range authorities {
		switch {
		case candidate.issuedBy(authority.Certificate, now):
			if !trusted || authority.Since.Before(since) {
				since = authority.Since
			}
			trusted = true
		case bundle.ValidAt(authority.Certificate, now):
			others = true
		}
	}
	if !others {
		since = time.Time{}
	}
	return since, trusted
}

// earliest returns the earlier of two times, of which a zero one means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
