package registry

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answering answers each request.
type answering struct{}

func (answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestPlainHTTPIsForLoopbackOnly(t *testing.T) {
	for address, permitted := range map[string]bool{
		"https://registry.example.com/v2/": true,
		"http://127.0.0.1:5000/v2/":        true,
		"http://localhost:5000/v2/":        true,
		"http://[::1]:5000/v2/":            true,
		"http://registry.example.com/v2/":  false,
		"http://10.0.0.1:5000/v2/":         false,
		"http://registry.local/v2/":        false,
		"http://localhost.example.com/v2/": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, plain := range []bool{false, true} {
			response, err := (&guard{answering{}, plain, "--plain-http"}).RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			switch {
			case (permitted || plain) && err != nil:
				t.Errorf("%s: %v", address, err)
			case !permitted && !plain && (err == nil || !strings.Contains(err.Error(), "--plain-http permits it") || temporary(err)):
				t.Errorf("%s: error %v, temporary: %t", address, err, temporary(err))
			}
		}
	}
}

func TestPlainHTTPIsPartOfTheReference(t *testing.T) {
	for plain, want := range map[bool]string{false: "https://registry.example.com/v2/web/blobs/uploads/", true: "http://registry.example.com/v2/web/blobs/uploads/"} {
		r, err := Open("registry.example.com/web:v1", Options{PlainHTTP: plain})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.address("/blobs/uploads/"); got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
}

func TestTransfersEndAfterAttemptsWithoutProgress(t *testing.T) {
	cut := errors.New("connection reset")
	progress := []int64{0, 0, 0, 10, 0, 0, 0, 0, 0, 7}
	var waits []int
	r := &Repository{options: Options{Wait: func(_ context.Context, attempt int) error {
		waits = append(waits, attempt)
		return nil
	}}}
	calls := 0
	err := r.persist(t.Context(), func() (int64, error) {
		calls++
		return progress[calls-1], cut
	})
	if diff := cmp.Diff([]int{1, 2, 3, 1, 2, 3, 4, 5}, waits); diff != "" || !errors.Is(err, cut) || calls != 9 {
		t.Errorf("%d calls, error %v, waits (-want +got):\n%s", calls, err, diff)
	}
}
