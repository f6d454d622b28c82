package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReady(t *testing.T) {
	cases := map[string]struct {
		answers map[string]string // by path; a path of /readyz that is not here answers 200
		want    string
	}{
		"a process that is ready": {},
		"one that is not tells why, check by check": {
			answers: map[string]string{
				"/readyz":             "[-]certificate failed: reason withheld\n[-]templates failed: reason withheld\n[+]webhooks ok\nhealthz check failed\n",
				"/readyz/certificate": "internal server error: there is no serving certificate yet\n",
				"/readyz/templates":   "internal server error: the template cache is not synced\n",
			},
			want: "not ready: certificate: internal server error: there is no serving certificate yet; " +
				"templates: internal server error: the template cache is not synced",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				if answer, fails := tc.answers[request.URL.Path]; fails {
					http.Error(writer, answer, http.StatusInternalServerError)
				}
			}))
			defer server.Close()
			process := &Process{options: Options{HealthAddress: strings.TrimPrefix(server.URL, "http://")}}
			got := ""
			if err := process.Ready(t.Context()); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
