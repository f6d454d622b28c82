package authority

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

const (
	settling = 5 * time.Second
	// long is much longer than the settling time.
	long = time.Hour
)

var (
	noon     = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	render   = publication.Target{Kind: publication.Mutating, Name: "render"}
	validate = publication.Target{Kind: publication.Validating, Name: "validate"}
)

// ago returns the time that much before noon, at which all decisions are made.
func ago(d time.Duration) time.Time {
	return noon.Add(-d)
}

// trusts returns an authority that a configuration has trusted for some time.
func trusts(authority *certificatestest.Authority, lifetime time.Duration) publication.Authority {
	return publication.Authority{Certificate: authority.Certificate, Since: ago(lifetime)}
}

func publishes(configuration publication.Target, authorities ...publication.Authority) publication.Published {
	return publication.Published{Configuration: configuration, Authorities: authorities}
}

func TestChoose(t *testing.T) {
	before := certificatestest.NewAuthority(t, ago(24*long), 48*long)
	after := certificatestest.NewAuthority(t, ago(long), 48*long)
	expired := certificatestest.NewAuthority(t, ago(24*long), 23*long)

	leaves := map[string]*tls.Certificate{
		"old":        before.Serving(t, ago(2*long), 24*long),
		"renewed":    before.Serving(t, ago(long), 24*long),
		"just now":   before.Serving(t, ago(time.Second), 24*long),
		"new":        after.Serving(t, ago(time.Minute), 24*long),
		"new as now": after.Serving(t, ago(time.Second), 24*long),
		"over":       before.Serving(t, ago(2*long), long),
		"to come":    after.Serving(t, noon.Add(time.Minute), 24*long),
		"of expired": expired.Serving(t, ago(2*long), 24*long),
	}

	type want struct {
		Leaf    string
		Trust   trust
		Missing []string
		Next    time.Time
	}
	cases := map[string]struct {
		leaves    []string // oldest first
		present   string
		published []publication.Published
		want      want
	}{
		"there is nothing to serve before the first certificate is signed": {
			published: []publication.Published{publishes(render, trusts(before, long))},
		},
		"a certificate is accepted when its authority has long been published": {
			leaves:    []string{"old"},
			published: []publication.Published{publishes(render, trusts(before, long)), publishes(validate, trusts(before, long))},
			want:      want{Leaf: "old", Trust: seasoned},
		},
		"without configurations nobody calls, and nothing has to wait": {
			leaves: []string{"old", "new"},
			want:   want{Leaf: "new", Trust: seasoned},
		},
		"a renewed certificate of the same authority replaces the one before": {
			leaves: []string{"old", "renewed"}, present: "old",
			published: []publication.Published{publishes(render, trusts(before, long))},
			want:      want{Leaf: "renewed", Trust: seasoned},
		},
		"but not before a clock that is a little behind would accept it": {
			leaves: []string{"old", "just now"}, present: "old",
			published: []publication.Published{publishes(render, trusts(before, long))},
			want:      want{Leaf: "old", Trust: seasoned, Next: noon.Add(4 * time.Second)},
		},
		"a replica that has just started serves its only certificate at once": {
			leaves:    []string{"just now"},
			published: []publication.Published{publishes(render, trusts(before, long))},
			want:      want{Leaf: "just now", Trust: synced, Next: noon.Add(4 * time.Second)},
		},
		"a new authority that nobody has published yet changes nothing": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{publishes(render, trusts(before, long))},
			want:      want{Leaf: "old", Trust: seasoned},
		},
		"one that only one configuration has published changes nothing": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{
				publishes(render, trusts(after, long), trusts(before, long)),
				publishes(validate, trusts(before, long)),
			},
			want: want{Leaf: "old", Trust: seasoned},
		},
		"one that has been published too short a time changes nothing": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{publishes(render, trusts(after, 2*time.Second), trusts(before, long))},
			want:      want{Leaf: "old", Trust: seasoned, Next: noon.Add(3 * time.Second)},
		},
		"the last configuration to publish is the one that counts": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{
				publishes(render, trusts(after, 4*time.Second), trusts(before, long)),
				publishes(validate, trusts(after, time.Second), trusts(before, long)),
			},
			want: want{Leaf: "old", Trust: seasoned, Next: noon.Add(time.Second)},
		},
		"one that has settled everywhere takes over": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{
				publishes(render, trusts(after, 5*time.Second), trusts(before, long)),
				publishes(validate, trusts(after, 6*time.Second), trusts(before, long)),
			},
			want: want{Leaf: "new", Trust: seasoned},
		},
		"when the former authority is published no longer the new one takes over at once": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{publishes(render, trusts(after, 0))},
			want:      want{Leaf: "new", Trust: seasoned},
		},
		"an authority beside it that has expired is no reason to wait": {
			leaves:    []string{"new"},
			published: []publication.Published{publishes(render, trusts(after, 0), trusts(expired, long))},
			want:      want{Leaf: "new", Trust: seasoned},
		},
		"a replica that starts during a rotation serves what it has and is not trusted everywhere": {
			leaves:    []string{"new"},
			published: []publication.Published{publishes(render, trusts(before, long)), publishes(validate, trusts(after, long), trusts(before, long))},
			want:      want{Leaf: "new", Trust: untrusted, Missing: []string{"MutatingWebhookConfiguration/render"}},
		},
		"and waits until what it has was noticed": {
			leaves:    []string{"new as now"},
			published: []publication.Published{publishes(render, trusts(after, time.Second), trusts(before, long))},
			want:      want{Leaf: "new as now", Trust: published, Next: noon.Add(4 * time.Second)},
		},
		"when nobody is published at all the present certificate stays": {
			leaves: []string{"old", "new"}, present: "old",
			published: []publication.Published{publishes(render)},
			want:      want{Leaf: "old", Trust: untrusted, Missing: []string{"MutatingWebhookConfiguration/render"}},
		},
		"or the newest begins when there is no present one": {
			leaves:    []string{"old", "new"},
			published: []publication.Published{publishes(render)},
			want:      want{Leaf: "new", Trust: untrusted, Missing: []string{"MutatingWebhookConfiguration/render"}},
		},
		"a certificate whose time is over makes place for one that is not trusted yet": {
			leaves: []string{"over", "new"}, present: "over",
			published: []publication.Published{publishes(render, trusts(before, long))},
			want:      want{Leaf: "new", Trust: untrusted, Missing: []string{"MutatingWebhookConfiguration/render"}},
		},
		"one whose time has not come is not served": {
			leaves: []string{"to come"},
			want:   want{Next: noon.Add(time.Minute + settling)},
		},
		"an expired authority vouches for nobody": {
			leaves:    []string{"of expired"},
			published: []publication.Published{publishes(render, trusts(expired, long))},
			want:      want{Leaf: "of expired", Trust: untrusted, Missing: []string{"MutatingWebhookConfiguration/render"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var given []*leaf
			names := map[*leaf]string{}
			var present *leaf
			for _, name := range tc.leaves {
				signed, err := newLeaf(leaves[name])
				if err != nil {
					t.Fatal(err)
				}
				given = append(given, signed)
				names[signed] = name
				if name == tc.present {
					present = signed
				}
			}
			chosen := choose(noon, given, present, tc.published, settling)
			got := want{Leaf: names[chosen.leaf], Trust: chosen.trust, Next: chosen.next}
			for _, configuration := range chosen.missing {
				got.Missing = append(got.Missing, configuration.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}
