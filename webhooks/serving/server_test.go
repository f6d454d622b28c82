package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
)

// fixture is a running server, and a client that trusts it.
type fixture struct {
	*Server
	registry *prometheus.Registry
	client   *http.Client
	logs     *syncBuffer
	roots    *x509.CertPool
	// stop ends the context of Start; stopped receives what Start returned.
	stop    context.CancelFunc
	stopped chan error
}

// staticSource serves one certificate.
type staticSource struct{ certificate *tls.Certificate }

func (s staticSource) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.certificate == nil {
		return nil, fmt.Errorf("no certificate")
	}
	return s.certificate, nil
}

// setup modifies the options of the server that start runs.
type setup func(*Options)

// start runs a server with the given webhook handler at /webhook, until the test ends.
func start(t *testing.T, handler admission.Handler, setups ...setup) *fixture {
	t.Helper()
	authority := certificatestest.NewAuthority(t, time.Now().Add(-time.Hour), 24*time.Hour)
	f := &fixture{
		registry: prometheus.NewRegistry(),
		logs:     &syncBuffer{},
		roots:    x509.NewCertPool(),
		stopped:  make(chan error, 1),
	}
	f.roots.AddCert(authority.Certificate)
	options := Options{
		BindAddress:     "127.0.0.1:0",
		Certificates:    staticSource{authority.Serving(t, time.Now().Add(-time.Minute), time.Hour)},
		ShutdownTimeout: 10 * time.Second,
		Registerer:      f.registry,
		Logger:          funcr.New(func(prefix, args string) { fmt.Fprintln(f.logs, prefix, args) }, funcr.Options{Verbosity: 1}),
	}
	for _, change := range setups {
		change(&options)
	}
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	f.Server = server
	server.Register(Webhook{Name: "test", Path: "/webhook", Handler: handler})
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	go func() { f.stopped <- server.Start(ctx) }()
	f.client = newClient(f.roots)
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		cancel()
		select {
		case err := <-f.stopped:
			if err != nil {
				t.Errorf("stopping the server: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server does not stop")
		}
	})
	return f
}

func newClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "localhost"},
			ForceAttemptHTTP2: true,
		},
	}
}

// review is an AdmissionReview as an API server sends it.
func review(t testing.TB, operation admissionv1.Operation, object []byte) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "0815",
			Name:      "web-1",
			Namespace: "team-a",
			Operation: operation,
			Object:    runtime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// post sends a review and returns the HTTP response with its body.
func (f *fixture) post(t testing.TB, query string, body []byte) (*http.Response, []byte) {
	t.Helper()
	response, content, err := f.tryPost(t.Context(), query, body)
	if err != nil {
		t.Fatal(err)
	}
	return response, content
}

func (f *fixture) tryPost(ctx context.Context, query string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+f.Address()+"/webhook"+query, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response, content, err
}

// answer decodes the review in a response.
func answer(t testing.TB, content []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatalf("decoding the answer %q: %v", content, err)
	}
	if got.APIVersion != "admission.k8s.io/v1" || got.Kind != "AdmissionReview" || got.Response == nil {
		t.Fatalf("the answer is not an AdmissionReview: %s", content)
	}
	return got.Response
}

// allow allows everything.
var allow = admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
	return admission.Allowed("")
})

func TestServerAnswers(t *testing.T) {
	f := start(t, admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		if string(request.Object.Raw) == `{"bad":true}` {
			return admission.Denied("bad")
		}
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
			Allowed: true, Patch: []byte(`[{"op":"add","path":"/spec","value":{}}]`),
		}}
	}))
	_, content := f.post(t, "?timeout=10s", review(t, admissionv1.Create, []byte(`{}`)))
	if got := answer(t, content); got.UID != "0815" || !got.Allowed || string(got.Patch) != `[{"op":"add","path":"/spec","value":{}}]` {
		t.Errorf("unexpected answer: %s", content)
	}
	_, content = f.post(t, "?timeout=10s", review(t, admissionv1.Create, []byte(`{"bad":true}`)))
	if got := answer(t, content); got.UID != "0815" || got.Allowed || got.Result.Message != "bad" {
		t.Errorf("unexpected answer: %s", content)
	}
}

func TestServerSpeaks(t *testing.T) {
	cases := map[string]struct {
		http2 bool
		want  string
	}{
		"HTTP/1.1 by default":   {false, "HTTP/1.1"},
		"HTTP/2 where asked to": {true, "HTTP/2.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := start(t, allow, func(o *Options) { o.HTTP2 = tc.http2 })
			response, _ := f.post(t, "", review(t, admissionv1.Create, []byte(`{}`)))
			if response.Proto != tc.want {
				t.Errorf("want %s, got %s", tc.want, response.Proto)
			}
		})
	}
}

func TestServerRejectsOldTLS(t *testing.T) {
	f := start(t, allow)
	for version, accepted := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		connection, err := tls.Dial("tcp", f.Address(), &tls.Config{
			RootCAs: f.roots, ServerName: "localhost", MinVersion: version, MaxVersion: version,
		})
		if err == nil {
			_ = connection.Close()
		}
		if (err == nil) != accepted {
			t.Errorf("%s: want accepted %t, got error %v", tls.VersionName(version), accepted, err)
		}
	}
}

func TestNewSaysWhichAddressIsTaken(t *testing.T) {
	f := start(t, allow)
	_, err := New(Options{BindAddress: f.Address(), Registerer: prometheus.NewRegistry()})
	if err == nil || !strings.Contains(err.Error(), f.Address()) {
		t.Errorf("want an error that names %s, got %v", f.Address(), err)
	}
}

func TestReady(t *testing.T) {
	authority := certificatestest.NewAuthority(t, time.Now().Add(-time.Hour), 24*time.Hour)
	cases := map[string]struct {
		certificate *tls.Certificate
		draining    bool
		want        string
	}{
		"a server that answers is ready": {
			certificate: authority.Serving(t, time.Now().Add(-time.Minute), time.Hour),
		},
		"one without a certificate is not": {want: "shaking hands with the webhook server: remote error: tls: internal error"},
		"nor is one whose certificate has expired": {
			certificate: authority.Serving(t, time.Unix(1e9, 0), time.Hour),
			want:        "the webhook server's certificate is valid from 2001-09-09T01:46:40Z to 2001-09-09T02:46:40Z only",
		},
		"nor one that is about to go": {
			certificate: authority.Serving(t, time.Now().Add(-time.Minute), time.Hour),
			draining:    true,
			want:        "shutting down",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := start(t, allow, func(o *Options) { o.Certificates = staticSource{tc.certificate} })
			if tc.draining {
				f.Drain()
			}
			got := ""
			if err := f.Ready((&http.Request{}).WithContext(t.Context())); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
