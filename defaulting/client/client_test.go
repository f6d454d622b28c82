package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
)

// serve serves a handler on a socket, and returns what ends it.
func serve(t *testing.T, socket string, handler http.HandlerFunc) func() {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }
}

func TestADefaulterThatWasRestartedIsAskedAgain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"cache":"hit"}`)) }
	stop := serve(t, socket, answer)
	c := client.New(socket)
	for range 3 {
		response, err := c.Defaults(context.Background(), &defaulting.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if response.Cache != defaulting.Hit {
			t.Errorf("the answer is %+v", response)
		}
		stop()
		stop = serve(t, socket, answer)
	}
	stop()
	if _, err := c.Defaults(context.Background(), &defaulting.Request{}); err == nil {
		t.Error("a defaulter that is not there has answered")
	}
}

func TestAProblemIsNotAskedAgain(t *testing.T) {
	var asked atomic.Int64
	socket := filepath.Join(t.TempDir(), "s")
	defer serve(t, socket, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"title":"Too Many Requests","status":429}`))
	})()
	_, err := client.New(socket).Defaults(context.Background(), &defaulting.Request{})
	var problem *defaulting.Problem
	if !errors.As(err, &problem) || problem.Status != 429 || problem.RetryAfter != 3*time.Second {
		t.Errorf("got %#v", err)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

func TestADefaulterThatHangsIsWaitedForNoLongerThanTheTimeout(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	released := make(chan struct{})
	defer serve(t, socket, func(http.ResponseWriter, *http.Request) { <-released })()
	defer close(released)
	begin := time.Now()
	_, err := client.New(socket).Defaults(context.Background(), &defaulting.Request{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took < client.Timeout || took > 2*client.Timeout {
		t.Errorf("it took %s", took)
	}
}
