package certificates_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/vmstencil/stencil/internal/certificates"
	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

// source serves one certificate, or none.
type source struct{ certificate *tls.Certificate }

func (s source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.certificate == nil {
		return nil, errors.New("there is none")
	}
	return s.certificate, nil
}

func (source) Start(context.Context) error { return nil }
func (source) NeedLeaderElection() bool    { return false }
func (source) Ready(*http.Request) error   { return nil }

func TestRegisterExpiry(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	serving := certificatestest.NewAuthority(t, noon, 48*time.Hour).Serving(t, noon, 24*time.Hour)
	unparsed := &tls.Certificate{Certificate: serving.Certificate, PrivateKey: serving.PrivateKey}
	end := float64(noon.Add(24 * time.Hour).Unix())
	cases := map[string]struct {
		certificate *tls.Certificate
		want        float64
	}{
		"the end of the certificate that is served":       {serving, end},
		"also of one that nobody has parsed yet":          {unparsed, end},
		"0 when there is none":                            {nil, 0},
		"0 when it is empty":                              {&tls.Certificate{}, 0},
		"0 when it cannot be read, as long as that lasts": {&tls.Certificate{Certificate: [][]byte{[]byte("no")}}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			if err := certificates.RegisterExpiry(registry, source{tc.certificate}); err != nil {
				t.Fatal(err)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			if got := families[0].GetMetric()[0].GetGauge().GetValue(); got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
			if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
				t.Errorf("the metric is not named as it should be: %v %v", problems, err)
			}
		})
	}
}
