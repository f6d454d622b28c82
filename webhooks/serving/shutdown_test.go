package serving

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// slow is a handler that signals when a call begins, and returns when leave is closed or its context ends.
type slow struct {
	entered chan struct{}
	leave   chan struct{}
}

func newSlow() *slow {
	return &slow{entered: make(chan struct{}, 1), leave: make(chan struct{})}
}

func (s *slow) Handle(ctx context.Context, _ admission.Request) admission.Response {
	s.entered <- struct{}{}
	select {
	case <-s.leave:
		return admission.Allowed("")
	case <-ctx.Done():
		return admission.Errored(http.StatusInternalServerError, ctx.Err())
	}
}

// response is the result of a request for the client.
type response struct {
	content []byte
	err     error
}

func (f *fixture) postInBackground(t *testing.T) <-chan response {
	body := review(t, admissionv1.Create, nil)
	result := make(chan response, 1)
	go func() {
		_, content, err := f.tryPost(context.Background(), "?timeout=30s", body)
		result <- response{content, err}
	}()
	return result
}

func TestRequestInFlightOutlivesTheEndOfStart(t *testing.T) {
	handler := newSlow()
	f := start(t, handler)
	result := f.postInBackground(t)
	<-handler.entered

	f.stop()
	eventually(t, func() string {
		connection, err := net.DialTimeout("tcp", f.Address(), time.Second)
		if err != nil {
			return ""
		}
		_ = connection.Close()
		return "the server still accepts connections"
	})
	select {
	case got := <-result:
		t.Fatalf("the request ended with the context of Start: %v %s", got.err, got.content)
	case err := <-f.stopped:
		t.Fatalf("Start returned while a request is in flight: %v", err)
	default:
	}
	close(handler.leave)
	got := <-result
	if got.err != nil {
		t.Fatal(got.err)
	}
	if !answer(t, got.content).Allowed {
		t.Errorf("unexpected answer: %s", got.content)
	}
}

func TestRequestThatTakesTooLongIsCutOff(t *testing.T) {
	handler := newSlow()
	f := start(t, handler, func(o *Options) { o.ShutdownTimeout = 50 * time.Millisecond })
	result := f.postInBackground(t)
	<-handler.entered
	f.stop()
	if got := <-result; got.err == nil {
		t.Errorf("want the connection to break, got %s", got.content)
	}
	if err := <-f.stopped; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("want Start to tell that it cut a request off, got %v", err)
	}
	f.stopped <- nil // for the cleanup
}

// A draining server still responds, and closes its connections one by one: every response is the last one on its
// connection.
func TestDrainingServerAnswersAndWindsUpConnections(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			f := start(t, allow, func(o *Options) { o.HTTP2 = http2 })
			reused := func() bool {
				var used httptrace.GotConnInfo
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { used = info }})
				_, content, err := f.tryPost(ctx, "", review(t, admissionv1.Create, nil))
				if err != nil {
					t.Fatal(err)
				}
				if !answer(t, content).Allowed {
					t.Errorf("unexpected answer: %s", content)
				}
				return used.Reused
			}
			reused()
			if !reused() {
				t.Error("a connection is not kept before the server drains")
			}
			f.Drain()
			if !reused() {
				t.Error("the connection was closed before its last answer")
			}
			eventually(t, func() string {
				if reused() {
					return "a connection is kept while the server drains"
				}
				return ""
			})
		})
	}
}

func TestLinger(t *testing.T) {
	cases := map[string]struct {
		delay time.Duration
	}{
		"with a delay the context ends that much later": {10 * time.Second},
		"without one it ends at once":                   {0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			parent, cancel := context.WithCancel(t.Context())
			draining := make(chan struct{})
			lingering := Linger(parent, tc.delay, clock, func() { close(draining) })

			if lingering.Err() != nil {
				t.Fatal("the context ended before its parent")
			}
			cancel()
			<-draining
			if tc.delay > 0 {
				eventually(t, func() string {
					if !clock.HasWaiters() {
						return "nobody waits for the delay to pass"
					}
					return ""
				})
				clock.Step(tc.delay - time.Nanosecond)
				if lingering.Err() != nil {
					t.Fatal("the context ended before the delay was over")
				}
				clock.Step(time.Nanosecond)
			}
			select {
			case <-lingering.Done():
			case <-time.After(20 * time.Second):
				t.Error("the context does not end")
			}
		})
	}
}
