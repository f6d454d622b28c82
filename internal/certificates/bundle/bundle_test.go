package bundle

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	first := certificatestest.NewAuthority(t, noon, time.Hour)
	second := certificatestest.NewAuthority(t, noon, time.Hour)
	key := []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	broken := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	cases := map[string]struct {
		data []byte
		want []*x509.Certificate
	}{
		"nothing holds nothing": {},
		"certificates come in the order in which they stand": {
			data: slices.Concat(second.PEM(), first.PEM()),
			want: []*x509.Certificate{second.Certificate, first.Certificate},
		},
		"text between the blocks does not count": {
			data: slices.Concat([]byte("the first\n"), first.PEM(), []byte("\n\nthe second\n"), second.PEM(), []byte("end")),
			want: []*x509.Certificate{first.Certificate, second.Certificate},
		},
		"other blocks and unreadable certificates are left out": {
			data: slices.Concat(key, broken, first.PEM()),
			want: []*x509.Certificate{first.Certificate},
		},
		"what is no PEM at all holds nothing": {data: []byte("hello")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Parse(tc.data), cmp.Comparer((*x509.Certificate).Equal)); diff != "" {
				t.Errorf("certificates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	first := certificatestest.NewAuthority(t, noon, time.Hour)
	second := certificatestest.NewAuthority(t, noon, time.Hour)
	want := slices.Concat(first.PEM(), second.PEM())
	if diff := cmp.Diff(string(want), string(Encode(Parse(want)))); diff != "" {
		t.Errorf("bundle (-want +got):\n%s", diff)
	}
}

func TestValidity(t *testing.T) {
	certificate := certificatestest.NewAuthority(t, noon, time.Hour).Certificate
	cases := map[string]struct {
		at          time.Time
		wantValid   bool
		wantExpired bool
	}{
		"before its time it is not valid and not expired": {at: noon.Add(-time.Second)},
		"it is valid from its first second":               {at: noon, wantValid: true},
		"it is valid to its last second":                  {at: noon.Add(time.Hour), wantValid: true},
		"after that it has expired":                       {at: noon.Add(time.Hour + time.Second), wantExpired: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ValidAt(certificate, tc.at); got != tc.wantValid {
				t.Errorf("valid: want %t, got %t", tc.wantValid, got)
			}
			if got := Expired(certificate, tc.at); got != tc.wantExpired {
				t.Errorf("expired: want %t, got %t", tc.wantExpired, got)
			}
		})
	}
}
