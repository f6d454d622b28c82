package transfers

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// ingress serves the package of an exporter at a URL outside of the cluster.
func (e *exporter) ingress(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	e.outside = server.URL + "/package/web.ova"
	e.authorities = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server
}

func TestADownloadFromOutsideOfTheCluster(t *testing.T) {
	e, folder := newExporter(), t.TempDir()
	e.ingress(t, e)
	e.respond = func(w http.ResponseWriter, r *http.Request, nth int) bool {
		if r.TLS == nil {
			t.Error("a request went through the API server")
		}
		if nth == 1 {
			e.cut(w, 0, 1000)
		}
		return false
	}
	pauses(t)
	if code, out, err := e.run(t.Context(), t, folder, "web"); code != 0 || !e.deleted {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	holds(t, folder, map[string][]byte{"web.ova": e.content})
	if got := strings.Join(e.ranges, " "); got != "bytes=0- bytes=1000-" {
		t.Errorf("requests: %s", got)
	}
}

func TestADownloadThroughTheAPIServer(t *testing.T) {
	e, folder := newExporter(), t.TempDir()
	e.ingress(t, http.NotFoundHandler())
	if code, out, err := e.run(t.Context(), t, folder, "web", "--through-api-server"); code != 0 {
		t.Errorf("exit code %d, %v, %s", code, err, out)
	}
	holds(t, folder, map[string][]byte{"web.ova": e.content})
}

func TestADownloadFromOutsideThatFails(t *testing.T) {
	pauses(t)
	redirected := 0
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected++ }))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		change func(*testing.T, *exporter)
		want   string
	}{
		"nothing listens": {func(t *testing.T, e *exporter) { e.ingress(t, e).Close() }, ": --through-api-server connects through the API server"},
		"the certificate of another server": {func(t *testing.T, e *exporter) {
			e.ingress(t, e)
			e.authorities = nil
		}, "certificate signed by unknown authority: --through-api-server connects through the API server"},
		"no certificate": {func(t *testing.T, e *exporter) {
			e.ingress(t, e)
			e.authorities = []byte("x")
		}, "the URL outside of the cluster: the certificate of the server is not in PEM"},
		"without TLS": {func(_ *testing.T, e *exporter) { e.outside = "http://a/package/web.ova" }, `the URL outside of the cluster: "http://a/package/web.ova" is no HTTPS URL`},
		"no route":    {func(t *testing.T, e *exporter) { e.ingress(t, http.NotFoundHandler()) }, "downloading the package: the server could not find the requested resource"},
		"a redirect": {func(t *testing.T, e *exporter) {
			e.ingress(t, http.RedirectHandler(elsewhere.URL, http.StatusFound))
		}, "downloading the package: "},
	} {
		t.Run(name, func(t *testing.T) {
			e, folder := newExporter(), t.TempDir()
			tc.change(t, e)
			code, out, err := e.run(t.Context(), t, folder, "web")
			if code != cli.ExitCluster || err == nil || !strings.Contains(err.Error(), tc.want) || e.deleted || strings.Contains(out+err.Error(), token) {
				t.Errorf("exit code %d, %v, %s, deleted %t", code, err, out, e.deleted)
			}
		})
	}
	if redirected > 0 {
		t.Error("the token was sent elsewhere")
	}
}
