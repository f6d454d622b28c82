package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestHandlerHasADeadlineBeforeTheAPIServers(t *testing.T) {
	var remaining time.Duration
	f := start(t, admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
		deadline, ok := ctx.Deadline()
		if !ok {
			return admission.Errored(http.StatusInternalServerError, errors.New("there is no deadline"))
		}
		remaining = time.Until(deadline)
		return admission.Allowed("")
	}))
	_, content := f.post(t, "?timeout=7s", review(t, admissionv1.Create, []byte(`{}`)))
	if got := answer(t, content); !got.Allowed {
		t.Fatalf("unexpected answer: %s", content)
	}
	// On a busy host some time has already passed, but the remaining time never exceeds the budget.
	if remaining > 6500*time.Millisecond || remaining < 3*time.Second {
		t.Errorf("of 7 s, the handler has %s", remaining)
	}
}

func TestHandlerThatOverrunsItsDeadlineHearsOfIt(t *testing.T) {
	f := start(t, admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
		<-ctx.Done()
		return admission.Errored(http.StatusGatewayTimeout, ctx.Err())
	}))
	_, content := f.post(t, "?timeout=50ms", review(t, admissionv1.Create, []byte(`{}`)))
	got := answer(t, content)
	if got.Allowed || got.Result.Code != http.StatusGatewayTimeout || got.Result.Message != context.DeadlineExceeded.Error() {
		t.Errorf("unexpected answer: %s", content)
	}
}

func TestPanicIsADenialWithoutDetails(t *testing.T) {
	const secret = "hunter2"
	cases := map[string]struct {
		panics func()
		// wantLog is the cause in the log.
		wantLog string
	}{
		"a panic with a value of the handler's own": {
			panics:  func() { panic(fmt.Sprintf("cannot use password %s", secret)) },
			wantLog: "the value of the panic is withheld",
		},
		"a panic with an error": {
			panics:  func() { panic(errors.New(secret)) },
			wantLog: "the value of the panic is withheld",
		},
		"a panic of the Go runtime": {
			panics: func() {
				var empty []int
				_ = empty[len(secret)]
			},
			wantLog: "index out of range [7] with length 0",
		},
		"a panic with nil": {
			panics:  func() { panic(nil) },
			wantLog: "panic called with nil argument",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := start(t, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				tc.panics()
				return admission.Allowed("")
			}))
			_, content := f.post(t, "", review(t, admissionv1.Update, []byte(`{"password":"`+secret+`"}`)))
			got := answer(t, content)
			want := &admissionv1.AdmissionResponse{
				UID: "0815",
				Result: &metav1.Status{
					Status: metav1.StatusFailure,
					Reason: metav1.StatusReasonInternalError,
					Code:   http.StatusInternalServerError,
					Message: "webhook test failed while it handled this request; nothing was changed. " +
						"This is a defect: see the log of stencil-manager for requestID 0815",
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			logs := f.logs.String()
			if strings.Contains(logs, secret) {
				t.Errorf("the log tells the secret:\n%s", logs)
			}
			for _, part := range []string{tc.wantLog, `"requestID"="0815"`, "handler_test.go"} {
				if !strings.Contains(logs, part) {
					t.Errorf("the log does not hold %s:\n%s", part, logs)
				}
			}
			// The server still serves.
			_, content = f.post(t, "", review(t, admissionv1.Update, nil))
			if answer(t, content).UID != "0815" {
				t.Errorf("unexpected answer after a panic: %s", content)
			}
		})
	}
}

func TestOversizeRequestIsDenied(t *testing.T) {
	f := start(t, allow)
	padding := func(size int) []byte {
		return slices.Concat([]byte(`{"padding":"`), bytes.Repeat([]byte("x"), size), []byte(`"}`))
	}
	t.Run("one that just fits is answered", func(t *testing.T) {
		body := review(t, admissionv1.Create, padding(0))
		body = review(t, admissionv1.Create, padding(maximumBody-len(body)))
		if len(body) != maximumBody {
			t.Fatalf("the body has %d bytes", len(body))
		}
		if _, content := f.post(t, "", body); !answer(t, content).Allowed {
			t.Errorf("unexpected answer: %s", content)
		}
	})
	for name, size := range map[string]int{"one byte more": maximumBody, "much more": 12 << 20} {
		t.Run(name+" gets a denial that the API server believes", func(t *testing.T) {
			response, content := f.post(t, "", review(t, admissionv1.Create, padding(size)))
			want := &admissionv1.AdmissionResponse{
				UID: "0815",
				Result: &metav1.Status{
					Status:  metav1.StatusFailure,
					Reason:  metav1.StatusReasonRequestEntityTooLarge,
					Code:    http.StatusRequestEntityTooLarge,
					Message: "the admission request is larger than the 3 MiB that webhook test takes: make the object smaller",
				},
			}
			if diff := cmp.Diff(want, answer(t, content)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if response.StatusCode != http.StatusOK {
				t.Errorf("HTTP status: want 200, got %s", response.Status)
			}
		})
	}
	t.Run("what is no review gets an HTTP error", func(t *testing.T) {
		response, _ := f.post(t, "", bytes.Repeat([]byte("x"), maximumBody+1))
		if response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("HTTP status: want 413, got %s", response.Status)
		}
	})
}

func TestOnlyReviewsAreAnswered(t *testing.T) {
	f := start(t, allow)
	t.Run("another method is denied", func(t *testing.T) {
		response, err := f.client.Get("https://" + f.Address() + "/webhook")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != http.MethodPost {
			t.Errorf("got %s, Allow %q", response.Status, response.Header.Get("Allow"))
		}
	})
	t.Run("another path is not found", func(t *testing.T) {
		response, err := f.client.Post("https://"+f.Address()+"/other", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("got %s", response.Status)
		}
	})
	t.Run("what cannot be decoded is denied", func(t *testing.T) {
		_, content := f.post(t, "", []byte(`{"kind":`))
		if !bytes.Contains(content, []byte(`"allowed":false`)) || !bytes.Contains(content, []byte(`"code":400`)) {
			t.Errorf("unexpected answer: %s", content)
		}
	})
}
