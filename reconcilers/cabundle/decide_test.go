package cabundle

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/certificates/bundle"
	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

// overlap is the duration of a serving certificate in these tests.
const overlap = 24 * time.Hour

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// holds is a configuration with one webhook for each list of authorities.
func holds(name string, webhooks ...[]*certificatestest.Authority) publication.Configuration {
	configuration := publication.Configuration{Target: publication.Target{Kind: publication.Mutating, Name: name}}
	for _, authorities := range webhooks {
		configuration.Webhooks = append(configuration.Webhooks, publication.Webhook{CABundle: pemOf(authorities...)})
	}
	return configuration
}

func pemOf(authorities ...*certificatestest.Authority) []byte {
	var data []byte
	for _, authority := range authorities {
		data = append(data, authority.PEM()...)
	}
	return data
}

func list(authorities ...*certificatestest.Authority) []*certificatestest.Authority {
	return authorities
}

func TestDecide(t *testing.T) {
	const year = 365 * 24 * time.Hour
	current := certificatestest.NewAuthority(t, ago(time.Hour), year)
	former := certificatestest.NewAuthority(t, ago(8*30*24*time.Hour), year)
	older := certificatestest.NewAuthority(t, ago(9*30*24*time.Hour), year)
	expired := certificatestest.NewAuthority(t, ago(2*year), year)
	ending := certificatestest.NewAuthority(t, ago(time.Hour), time.Hour+time.Minute)
	upcoming := certificatestest.NewAuthority(t, noon.Add(time.Minute), year)
	stable := certificatestest.NewAuthority(t, ago(30*24*time.Hour), year)
	known := map[string]*certificatestest.Authority{
		"current": current, "former": former, "older": older, "expired": expired, "ending": ending, "upcoming": upcoming, "stable": stable,
	}
	leaf := certificatestest.NewAuthority(t, ago(time.Hour), year).Serving(t, ago(time.Hour), year).Leaf

	type want struct {
		Authorities []string
		Outdated    []string
		Again       time.Time
	}
	cases := map[string]struct {
		current        *x509.Certificate
		formers        []replaced
		configurations []publication.Configuration
		want           want
	}{
		"an authority is published in every configuration": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", nil), holds("validate", nil, nil)},
			want:           want{Authorities: []string{"current"}, Outdated: []string{"render", "validate"}},
		},
		"what is published already is left alone": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current)), holds("validate", nil)},
			want:           want{Authorities: []string{"current"}, Outdated: []string{"validate"}},
		},
		"one webhook of several makes a configuration outdated": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current), list(current), nil)},
			want:           want{Authorities: []string{"current"}, Outdated: []string{"render"}},
		},
		"a configuration without webhooks has nothing to hold": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render")},
			want:           want{Authorities: []string{"current"}},
		},
		"after a rotation the former authority stays beside the present one until nothing that it signed is in use": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(former))},
			// It is read for the first time now, so the time at which it went out of use is unknown.
			want: want{Authorities: []string{"current", "former"}, Outdated: []string{"render"}, Again: noon.Add(overlap)},
		},
		"a former authority that was seen to be replaced an hour ago stays that much shorter": {
			current:        current.Certificate,
			formers:        []replaced{{former, ago(time.Hour)}},
			configurations: []publication.Configuration{holds("render", list(current, former))},
			want:           want{Authorities: []string{"current", "former"}, Again: noon.Add(overlap - time.Hour)},
		},
		"it counts from when the present one was made, if the former was seen before that": {
			current:        current.Certificate,
			formers:        []replaced{{former, ago(10 * overlap)}},
			configurations: []publication.Configuration{holds("render", list(current, former))},
			want:           want{Authorities: []string{"current", "former"}, Again: noon.Add(overlap - time.Hour)},
		},
		"one that was replaced longer ago than that goes": {
			current:        stable.Certificate,
			formers:        []replaced{{former, ago(overlap)}},
			configurations: []publication.Configuration{holds("render", list(stable, former))},
			want:           want{Authorities: []string{"stable"}, Outdated: []string{"render"}},
		},
		"one that expires earlier goes then": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current, ending))},
			want:           want{Authorities: []string{"current", "ending"}, Again: noon.Add(time.Minute)},
		},
		"one that has expired goes": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current, expired))},
			want:           want{Authorities: []string{"current"}, Outdated: []string{"render"}},
		},
		"formers stand in the order of their age, whatever order they are found in": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(older, former, current))},
			want:           want{Authorities: []string{"current", "former", "older"}, Outdated: []string{"render"}, Again: noon.Add(overlap)},
		},
		"what one configuration holds the others get too": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current, former)), holds("validate", list(current))},
			want:           want{Authorities: []string{"current", "former"}, Outdated: []string{"validate"}, Again: noon.Add(overlap)},
		},
		"duplicates are dropped": {
			current:        current.Certificate,
			configurations: []publication.Configuration{holds("render", list(current, former, former, current))},
			want:           want{Authorities: []string{"current", "former"}, Outdated: []string{"render"}, Again: noon.Add(overlap)},
		},
		"what was deleted from every configuration comes back from memory": {
			current:        current.Certificate,
			formers:        []replaced{{former, ago(time.Minute)}},
			configurations: []publication.Configuration{holds("render", nil), holds("validate", nil)},
			want:           want{Authorities: []string{"current", "former"}, Outdated: []string{"render", "validate"}, Again: noon.Add(overlap - time.Minute)},
		},
		"a present authority that was remembered as a former one stands once": {
			current:        current.Certificate,
			formers:        []replaced{{current, ago(time.Minute)}},
			configurations: []publication.Configuration{holds("render", list(current))},
			want:           want{Authorities: []string{"current"}},
		},
		"one whose clock is ahead is published all the same": {
			current:        upcoming.Certificate,
			configurations: []publication.Configuration{holds("render", nil)},
			want:           want{Authorities: []string{"upcoming"}, Outdated: []string{"render"}},
		},
		"without a present authority nothing changes": {
			configurations: []publication.Configuration{holds("render", list(former)), holds("validate", nil)},
		},
		"with one that has expired nothing changes, as another is about to be made": {
			current:        expired.Certificate,
			configurations: []publication.Configuration{holds("render", list(former))},
		},
		"a certificate that is no authority is not published": {
			current:        leaf,
			configurations: []publication.Configuration{holds("render", list(former))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			given := state{now: noon, current: tc.current, configurations: tc.configurations}
			for _, each := range tc.formers {
				given.formers = append(given.formers, each.previous())
			}
			planned := decide(given, overlap)
			got := want{Again: planned.again}
			for _, certificate := range planned.authorities {
				for name, authority := range known {
					if authority.Certificate.Equal(certificate) {
						got.Authorities = append(got.Authorities, name)
					}
				}
			}
			for _, configuration := range planned.outdated {
				got.Outdated = append(got.Outdated, configuration.Target.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if len(planned.authorities) > 0 && string(planned.bundle) != string(bundle.Encode(planned.authorities)) {
				t.Error("the bundle is not made of the authorities")
			}
		})
	}
}

// replaced is a former authority in a test.
type replaced struct {
	authority *certificatestest.Authority
	since     time.Time
}

func (r replaced) previous() former {
	return former{r.authority.Certificate, r.since}
}

func TestDecideBoundsTheBundle(t *testing.T) {
	current := certificatestest.NewAuthority(t, ago(time.Minute), 365*24*time.Hour)
	var formers []*certificatestest.Authority
	for i := range 2 * maximumAuthorities {
		formers = append(formers, certificatestest.NewAuthority(t, ago(time.Duration(i+1)*time.Hour), 365*24*time.Hour))
	}
	slices.Reverse(formers) // the oldest stands first
	planned := decide(state{
		now:            noon,
		current:        current.Certificate,
		configurations: []publication.Configuration{holds("render", formers)},
	}, overlap)
	if got := len(planned.authorities); got != maximumAuthorities {
		t.Fatalf("want %d authorities, got %d", maximumAuthorities, got)
	}
	slices.Reverse(formers)
	for i, certificate := range planned.authorities[1:] {
		if !certificate.Equal(formers[i].Certificate) {
			t.Errorf("authority %d is not the former one next in age", i+1)
		}
	}
}

// A second decision with the result of the first has nothing to change.
func TestDecideIsSettledByItsOwnOutcome(t *testing.T) {
	current := certificatestest.NewAuthority(t, ago(time.Minute), 365*24*time.Hour)
	a := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	b := certificatestest.NewAuthority(t, ago(time.Hour), 365*24*time.Hour)
	for name, authorities := range map[string][]*certificatestest.Authority{
		"in one order":                       list(a, b),
		"in the other, of the same validity": list(b, a),
	} {
		t.Run(name, func(t *testing.T) {
			first := decide(state{now: noon, current: current.Certificate, configurations: []publication.Configuration{holds("render", authorities)}}, overlap)
			written := publication.Configuration{
				Target:   publication.Target{Kind: publication.Mutating, Name: "render"},
				Webhooks: []publication.Webhook{{CABundle: first.bundle}},
			}
			second := decide(state{now: noon, current: current.Certificate, formers: first.formers, configurations: []publication.Configuration{written}}, overlap)
			if len(second.outdated) != 0 {
				t.Errorf("%d configurations are outdated again", len(second.outdated))
			}
			if !first.again.Equal(second.again) {
				t.Errorf("the next time has moved from %s to %s", first.again, second.again)
			}
		})
	}
}

func TestAReplicaJoinsWhereTheAuthorityIsMissing(t *testing.T) {
	const year = 365 * 24 * time.Hour
	current := certificatestest.NewAuthority(t, ago(time.Hour), year)
	former := certificatestest.NewAuthority(t, ago(2*time.Hour), year)
	planned := join(state{now: noon, current: current.Certificate, configurations: []publication.Configuration{
		holds("new", nil),
		holds("stale", list(former)),
		holds("partly", list(current), list(former)),
		// The leader adds the former one.
		holds("trusting", list(current)),
	}}, overlap)
	var outdated []string
	for _, each := range planned.outdated {
		outdated = append(outdated, each.Target.Name)
	}
	if diff := cmp.Diff([]string{"new", "stale", "partly"}, outdated); diff != "" {
		t.Errorf("outdated (-want +got):\n%s", diff)
	}
	// A serving certificate of the former authority stays trusted.
	if diff := cmp.Diff(pemOf(current, former), planned.bundle); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
	if planned := join(state{now: noon, configurations: []publication.Configuration{holds("new", nil)}}, overlap); len(planned.outdated) > 0 {
		t.Error("without an authority a configuration is written")
	}
}
