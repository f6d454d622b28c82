package published_test

import (
	"crypto/tls"
	"net/url"
	"testing"
)

// TestCurves negotiates each curve that FIPS approves with both servers.
func TestCurves(t *testing.T) {
	for name, address := range map[string]string{"stencil-apiserver": stage.APIServerURL(), "stencil-manager": stage.Manager.WebhookURL()} {
		target, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		for _, curve := range []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521} {
			connection, err := tls.Dial("tcp", target.Host, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{curve}}) //nolint:gosec // about curves, not certificates
			if err != nil {
				t.Errorf("%s, %s: %v", name, curve, err)
				continue
			}
			if got := connection.ConnectionState().CurveID; got != curve {
				t.Errorf("%s: %s, want %s", name, got, curve)
			}
			connection.Close()
		}
	}
}
