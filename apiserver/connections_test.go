package apiserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/vmstencil/stencil/apiserver"
)

// TestConnectionsEndBeforeTheServerDoes sends requests by HTTP/2 one after the other, as kube-apiserver does for its users.
func TestConnectionsEndBeforeTheServerDoes(t *testing.T) {
	shutdown := make(chan struct{})
	server := httptest.NewUnstartedServer(apiserver.WithClosedConnections(http.NotFoundHandler(), shutdown))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	reused := func() (reused bool) {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.ProtoMajor != 2 || response.StatusCode != http.StatusNotFound {
			t.Fatalf("%s %s", response.Proto, response.Status)
		}
		return reused
	}
	for i, want := range []bool{false, true, true} {
		if got := reused(); got != want {
			t.Errorf("request %d: the connection is reused: %t, want %t", i, got, want)
		}
	}
	close(shutdown)
	if !reused() {
		t.Error("the first request during the shutdown has a new connection")
	}
	for range 3 {
		if reused() {
			t.Error("a connection is used again during the shutdown")
		}
	}
}
