package authority

import (
	"time"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// trust is how far the API servers can be expected to accept a leaf.
type trust int

const (
	// untrusted: a webhook configuration does not have the leaf's authority, or the leaf is not valid now.
	untrusted trust = iota
	// published: every configuration has the authority, but some API server may not have observed it.
	published
	// synced: every API server trusts the authority; the clock of one may be a little behind, and the leaf so new that its validity has not begun
	// there.
	synced
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
	// next is when the decision may change although nothing was published and no leaf added; zero when only that can change it.
	next time.Time
}

// choose selects the leaf to serve at the time now. leaves are ordered, oldest first.
//
// It is the newest of those that are trusted most. When none is trusted at all it is the present one as long as that is valid, and then the newest.
func choose(now time.Time, leaves []*leaf, present *leaf, configurations []publication.Published, settling time.Duration) choice {
	var best choice
	var next time.Time
	for _, candidate := range leaves {
		decision := evaluate(now, candidate, configurations, settling)
		next = earliest(next, decision.next)
		switch {
		case !bundle.ValidAt(candidate.x509, now):
			continue
		case best.leaf == nil, decision.trust > best.trust:
			best = decision
		case decision.trust < best.trust:
			continue
		case decision.trust == untrusted && best.leaf == present:
			continue
		default:
			best = decision
		}
	}
	best.next = next
	return best
}

// evaluate returns how far a single leaf is trusted, and when that may change by itself.
func evaluate(now time.Time, candidate *leaf, configurations []publication.Published, settling time.Duration) choice {
	result := choice{leaf: candidate, trust: seasoned}
	// limit limits the trust to a level until settling has passed since a moment.
	limit := func(level trust, since time.Time) {
		if end := since.Add(settling); now.Before(end) {
			result.trust = min(result.trust, level)
			result.next = earliest(result.next, end)
		}
	}
	limit(synced, candidate.x509.NotBefore)
	for _, configuration := range configurations {
		since, trusted := trustedSince(now, candidate, configuration.Authorities)
		if !trusted {
			result.missing = append(result.missing, configuration.Configuration)
			continue
		}
		limit(published, since)
	}
	if len(result.missing) > 0 || !bundle.ValidAt(candidate.x509, now) {
		result.trust = untrusted
	}
	return result
}

// trustedSince returns since when a configuration vouches for the leaf. When the configuration has no other valid authority, that is the zero time:
// an API server that has not observed the authority yet trusts none, or only authorities with leaves that no replica can serve any more, so that
// there is nothing to wait for.
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

// earliest returns the earlier of two times. A zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
