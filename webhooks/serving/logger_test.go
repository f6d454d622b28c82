package serving

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Lines are those of controller-runtime's own logger, whichever way they are written.
func TestRequestLogger(t *testing.T) {
	request := &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "17", Namespace: "team-a", Name: "web-1"}}
	var lines []string
	base := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{LogCaller: funcr.All}).WithName("render")
	for _, requested := range []*admission.Request{request, nil} {
		got, want := requestLogger(base, requested), base
		if requested != nil {
			want = admission.DefaultLogConstructor(base, requested)
		}
		// Both write from one line, so that the caller that is logged is the same.
		var written [2][]string
		for i, logger := range []interface {
			Info(string, ...any)
			Error(error, string, ...any)
		}{got, want} {
			lines = nil
			logger.Info("seen", "a", 1)
			logger.Error(errors.New("odd"), "failed", "b", 2)
			written[i] = lines
		}
		if diff := cmp.Diff(written[1], written[0]); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		for i, logger := range []interface{ Info(string, ...any) }{got.WithValues("c", 3).WithName("inner"), want.WithValues("c", 3).WithName("inner")} {
			lines = nil
			logger.Info("derived")
			written[i] = lines
		}
		if diff := cmp.Diff(written[1], written[0]); diff != "" {
			t.Errorf("lines of a derived logger (-want +got):\n%s", diff)
		}
		if got.V(9).Enabled() != want.V(9).Enabled() || got.Enabled() != want.Enabled() {
			t.Error("levels differ")
		}
	}
}
