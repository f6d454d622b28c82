package serving

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/types"
)

func TestReadBody(t *testing.T) {
	broken := errors.New("connection reset")
	cases := map[string]struct {
		body      io.Reader
		want      string
		wantError error
	}{
		"no body is an empty one":                           {body: nil},
		"a body of exactly the limit is read":               {body: strings.NewReader("12345678"), want: "12345678"},
		"of a larger one the beginning is returned":         {body: strings.NewReader("123456789abc"), want: "123456789", wantError: errBodyTooLarge},
		"so it is when the length is not announced":         {body: io.MultiReader(strings.NewReader("123456789abc")), want: "123456789", wantError: errBodyTooLarge},
		"a body that breaks off is an error":                {body: io.MultiReader(strings.NewReader("12"), iotest.ErrReader(broken)), wantError: broken},
		"a body that comes in small pieces is put together": {body: iotest.OneByteReader(strings.NewReader("12345678")), want: "12345678"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var buffer bytes.Buffer
			err := readBody(&buffer, httptest.NewRequest("POST", "/", tc.body), 8)
			if !errors.Is(err, tc.wantError) {
				t.Errorf("error: want %v, got %v", tc.wantError, err)
			}
			if got := buffer.String(); !errors.Is(err, broken) && got != tc.want {
				t.Errorf("body: want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestReviewUID(t *testing.T) {
	cases := map[string]struct {
		body string
		want types.UID
	}{
		"the UID of a review that is cut off": {
			body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"42","kind":{"group":"kubev`,
			want: "42",
		},
		"members before it are skipped": {
			body: `{"metadata":{"uid":"no"},"request":{"kind":{"uid":"no"},"names":["uid"],"uid":"42","object":`,
			want: "42",
		},
		"a UID somewhere else is none":    {body: `{"uid":"no","object":{"uid":"no"}`},
		"a request that is not an object": {body: `{"request":["uid","no"]`},
		"a UID that is not a string":      {body: `{"request":{"uid":{}`},
		"a text that is cut off earlier":  {body: `{"request":{"ui`},
		"an array":                        {body: `[{"request":{"uid":"no"}}]`},
		"nothing":                         {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := reviewUID([]byte(tc.body)); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
