package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/service"
)

// engine returns the response that a test sets.
type engine struct {
	answer func(body []byte) ([]byte, error)
	ready  bool
}

func (e engine) Serve(_ context.Context, body []byte) ([]byte, error) { return e.answer(body) }

func (e engine) Environment() (defaulting.Environment, bool) {
	return defaulting.Environment{Libvirt: "9.0.0"}, e.ready
}

func (engine) Machines(context.Context) (map[string][]string, error) {
	return map[string][]string{"amd64": {"q35=pc-q35-7.2"}}, nil
}

func handler(e engine) http.Handler {
	return service.New(service.Options{Engine: e, Surveyor: e, Registry: prometheus.NewRegistry(), Log: logr.Discard()})
}

func TestStatusOfEachFailure(t *testing.T) {
	for _, tc := range []struct {
		name       string
		kind       string
		body       string
		err        error
		want       int
		wantDetail string
		wantRetry  string
	}{
		{name: "an answer", body: `{}`, want: 200},
		{name: "something else than JSON", kind: "text/plain", body: `{}`, want: 415, wantDetail: "requests are application/json"},
		{name: "JSON with a character set", kind: "application/json; charset=utf-8", body: `{}`, want: 200},
		{name: "more than a mebibyte", body: strings.Repeat(" ", service.MaxBody+1), want: 413, wantDetail: "a request has at most 1048576 bytes"},
		{name: "exactly a mebibyte", body: strings.Repeat(" ", service.MaxBody), want: 200},
		{name: "what cannot be read", body: `{`, err: defaulting.Malformed("reading the request: %v", io.ErrUnexpectedEOF), want: 400, wantDetail: "reading the request: unexpected EOF"},
		{name: "a VirtualMachine that cannot be", body: `{}`, err: defaulting.Invalid([]defaulting.Cause{{Path: "spec", Detail: "no"}}), want: 422, wantDetail: "the VirtualMachine cannot be defined as specified"},
		{name: "a full queue", body: `{}`, err: defaulting.Busy(1500 * time.Millisecond), want: 429, wantDetail: "too many requests wait for libvirt", wantRetry: "2"},
		{name: "no libvirt", body: `{}`, err: defaulting.Unavailable("libvirt is being started"), want: 503, wantDetail: "libvirt is being started"},
		{name: "a slow libvirt", body: `{}`, err: context.DeadlineExceeded, want: 504, wantDetail: "the answer took too long"},
		{name: "anything else stays inside", body: `{}`, err: errors.New("a secret"), want: 500, wantDetail: "the defaulter failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodPost, "/v1/defaults", strings.NewReader(tc.body))
			request.Header.Set("Content-Type", "application/json")
			if tc.kind != "" {
				request.Header.Set("Content-Type", tc.kind)
			}
			recorder := httptest.NewRecorder()
			handler(engine{answer: func([]byte) ([]byte, error) { return []byte(`{}`), tc.err }}).ServeHTTP(recorder, request)
			if recorder.Code != tc.want {
				t.Fatalf("status is %d, want %d: %s", recorder.Code, tc.want, recorder.Body)
			}
			if got := recorder.Header().Get("Retry-After"); got != tc.wantRetry {
				t.Errorf("Retry-After is %q, want %q", got, tc.wantRetry)
			}
			if tc.want == 200 {
				return
			}
			if got := recorder.Header().Get("Content-Type"); got != defaulting.ProblemType {
				t.Errorf("Content-Type is %q", got)
			}
			var problem defaulting.Problem
			if err := json.Unmarshal(recorder.Body.Bytes(), &problem); err != nil {
				t.Fatal(err)
			}
			if problem.Status != tc.want || problem.Detail != tc.wantDetail {
				t.Errorf("the problem is %+v", problem)
			}
		})
	}
}

func TestReadyIsWhenLibvirtCanBeAsked(t *testing.T) {
	for path, want := range map[string]map[bool]int{
		"/healthz": {false: 200, true: 200}, "/readyz": {false: 503, true: 200}, "/v1/environment": {true: 200}, "/metrics": {true: 200},
		"/v1/defaults": {true: 405}, "/nothing": {true: 404},
	} {
		for ready, status := range want {
			recorder := httptest.NewRecorder()
			handler(engine{ready: ready}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			if recorder.Code != status {
				t.Errorf("%s with libvirt %t is %d, want %d", path, ready, recorder.Code, status)
			}
		}
	}
}

func TestTheOpenAPIDocumentHasEveryField(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths      map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for name, fields := range map[string][]string{
		"Request": fieldsOf(defaulting.Request{}), "Response": fieldsOf(defaulting.Response{}), "Policy": fieldsOf(defaulting.Policy{}),
		"Cluster": fieldsOf(defaulting.Cluster{}), "Environment": fieldsOf(defaulting.Environment{}), "Problem": fieldsOf(defaulting.Problem{}),
	} {
		described := document.Components.Schemas[name].Properties
		for _, field := range fields {
			if _, ok := described[field]; !ok {
				t.Errorf("%s has no %s", name, field)
			}
		}
		if len(described) != len(fields) {
			t.Errorf("%s describes %d fields, and there are %d", name, len(described), len(fields))
		}
	}
	for path := range document.Paths {
		recorder := httptest.NewRecorder()
		handler(engine{ready: true}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if recorder.Code == http.StatusNotFound {
			t.Errorf("%s is described and not served", path)
		}
	}
}
