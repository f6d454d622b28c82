package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
)

// serve serves a handler on a socket, and returns a function that stops it.
func serve(t *testing.T, socket string, handler http.HandlerFunc) func() {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	// The server does not own the listener until its goroutine runs.
	return func() { _, _ = server.Close(), listener.Close() }
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

// TestAnswersAreThoseToTheirRequests sends concurrent requests, cancels some of them, and restarts a defaulter with varying response
// styles.
func TestAnswersAreThoseToTheirRequests(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	var count atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		number := count.Add(1)
		if number%7 == 0 {
			w.Header().Set("Connection", "close")
		}
		if number%5 == 0 {
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(body)
	}
	stop := serve(t, socket, answer)
	defer func() { stop() }()
	c := client.New(socket)
	var (
		asking   sync.WaitGroup
		answered atomic.Int64
	)
	for asker := range 8 {
		asking.Go(func() {
			for number := range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				if number%3 == 0 {
					time.AfterFunc(time.Duration(rand.IntN(500))*time.Microsecond, cancel)
				}
				sent := fmt.Sprintf(`{"asker":%d,"number":%d,"filling":%q}`, asker, number, strings.Repeat("x", number*20))
				got, err := c.Raw(ctx, []byte(sent))
				cancel()
				if err == nil {
					answered.Add(1)
					if string(got) != sent {
						t.Errorf("the answer to %.40s is %.40s", sent, got)
					}
				}
			}
		})
	}
	for range 10 {
		time.Sleep(5 * time.Millisecond)
		stop()
		stop = serve(t, socket, answer)
	}
	asking.Wait()
	if answered.Load() == 0 {
		t.Error("nobody was answered")
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	var peers sync.Map
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }),
		ConnState: func(conn net.Conn, _ http.ConnState) { peers.Store(conn, true) },
	}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	c := client.New(socket)
	for range 10 {
		if _, err := c.Raw(context.Background(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	connections := 0
	peers.Range(func(any, any) bool { connections++; return true })
	if connections != 1 {
		t.Errorf("%d connections were made", connections)
	}
}

func TestWhoeverLosesPatienceIsAnsweredAtOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	released := make(chan struct{})
	defer serve(t, socket, func(http.ResponseWriter, *http.Request) { <-released })()
	defer close(released)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	begin := time.Now()
	if _, err := client.New(socket).Raw(ctx, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > client.Timeout {
		t.Errorf("it took %s", took)
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"an answer without end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "it has more than 8388608 bytes"},
		"an answer that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		}, "unexpected EOF"},
		"an error that is no problem": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusBadGateway)
		}, "the answer is 502 Bad Gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			defer serve(t, socket, tc.answer)()
			if _, err := client.New(socket).Raw(context.Background(), []byte("{}")); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
