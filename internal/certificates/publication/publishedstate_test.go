package publication

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// step is one event of the configuration "render", at a time in seconds after noon.
type step struct {
	at int
	// bundles are the caBundles of its webhooks; nil stands for the configuration's end.
	bundles [][]byte
}

func TestLedger(t *testing.T) {
	a := certificatestest.NewAuthority(t, noon, time.Hour)
	b := certificatestest.NewAuthority(t, noon, time.Hour)
	both := slices.Concat(a.PEM(), b.PEM())
	render := Target{Mutating, "render"}
	published := func(authorities ...Authority) []Published {
		return []Published{{Configuration: render, Authorities: authorities}}
	}
	since := func(authority *certificatestest.Authority, seconds int) Authority {
		return Authority{Certificate: authority.Certificate, Since: noon.Add(time.Duration(seconds) * time.Second)}
	}
	cases := map[string]struct {
		steps []step
		want  []Published
	}{
		"nothing is published before a configuration is seen": {},
		"an authority is published from when it is seen first": {
			steps: []step{{1, [][]byte{a.PEM()}}, {5, [][]byte{both}}, {9, [][]byte{both}}},
			want:  published(since(a, 1), since(b, 5)),
		},
		"an authority that was gone is new when it comes back": {
			steps: []step{{1, [][]byte{both}}, {2, [][]byte{b.PEM()}}, {3, [][]byte{both}}},
			want:  published(since(a, 3), since(b, 1)),
		},
		"only what every webhook trusts is published": {
			steps: []step{{1, [][]byte{both, b.PEM()}}},
			want:  published(since(b, 1)),
		},
		"an empty caBundle publishes nobody": {
			steps: []step{{1, [][]byte{both, nil}}},
			want:  published(),
		},
		"a configuration without webhooks is nobody's concern": {
			steps: []step{{1, [][]byte{a.PEM()}}, {2, [][]byte{}}},
		},
		"neither is one that is deleted": {
			steps: []step{{1, [][]byte{a.PEM()}}, {2, nil}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newPublishedState()
			for _, s := range tc.steps {
				_, changed := l.snapshot()
				if s.bundles == nil {
					l.forget(render)
				} else {
					l.record(configuration(s.bundles), noon.Add(time.Duration(s.at)*time.Second))
				}
				select {
				case <-changed:
				default:
					t.Errorf("second %d: nobody is told of the change", s.at)
				}
			}
			got, _ := l.snapshot()
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(equalAuthorities)); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

func equalAuthorities(a, b []Authority) bool {
	return slices.EqualFunc(a, b, func(a, b Authority) bool {
		return a.Certificate.Equal(b.Certificate) && a.Since.Equal(b.Since)
	})
}

func configuration(bundles [][]byte) Configuration {
	object := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "render"}}
	for _, bundle := range bundles {
		object.Webhooks = append(object.Webhooks, admissionregistrationv1.MutatingWebhook{
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle},
		})
	}
	return ConfigurationOf(object)
}

func TestWithCABundle(t *testing.T) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "one"}, {Name: "two"}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "three"}},
	}
	for _, before := range []Configuration{ConfigurationOf(mutating), ConfigurationOf(validating)} {
		t.Run(before.Target.String()+" gets it in every webhook and the object that was read stays", func(t *testing.T) {
			after := ConfigurationOf(before.WithCABundle([]byte("bundle")))
			if after.Target != before.Target {
				t.Errorf("target: want %s, got %s", before.Target, after.Target)
			}
			for i, webhook := range after.Webhooks {
				if webhook.Name != before.Webhooks[i].Name || string(webhook.CABundle) != "bundle" {
					t.Errorf("webhook %d: got %q with caBundle %q", i, webhook.Name, webhook.CABundle)
				}
			}
			for _, webhook := range ConfigurationOf(before.Object).Webhooks {
				if webhook.CABundle != nil {
					t.Errorf("webhook %s of the object that was read has changed", webhook.Name)
				}
			}
		})
	}
}
