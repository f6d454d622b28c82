package serving

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// samples returns the count of each series of a metric, keyed by its labels; the value of a gauge or counter, the
// number of observations of a histogram.
func (f *fixture) samples(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := ""
			for _, label := range metric.GetLabel() {
				key += label.GetName() + "=" + label.GetValue() + " "
			}
			switch {
			case metric.GetHistogram() != nil:
				samples[key] = float64(metric.GetHistogram().GetSampleCount())
			case metric.GetCounter() != nil:
				samples[key] = metric.GetCounter().GetValue()
			default:
				samples[key] = metric.GetGauge().GetValue()
			}
		}
	}
	return samples
}

func TestMetricsTellWhatBecameOfRequests(t *testing.T) {
	f := start(t, admission.HandlerFunc(func(_ context.Context, request admission.Request) admission.Response {
		switch request.Operation {
		case admissionv1.Create:
			return admission.Allowed("")
		case admissionv1.Update:
			return admission.Denied("no")
		case admissionv1.Delete:
			return admission.Errored(http.StatusInternalServerError, errors.New("broken"))
		case admissionv1.Connect:
			panic("broken")
		default:
			return admission.Allowed("")
		}
	}))
	for _, operation := range []admissionv1.Operation{
		admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect, "INVENTED",
	} {
		f.post(t, "", review(t, operation, []byte(`{}`)))
	}
	f.post(t, "", []byte(`no review`))
	f.post(t, "", make([]byte, maximumBody+1))

	// The client receives the response before the server has recorded the request.
	want := map[string]float64{
		"operation=CREATE outcome=allowed webhook=test ":  2,
		"operation=UPDATE outcome=denied webhook=test ":   1,
		"operation=DELETE outcome=errored webhook=test ":  1,
		"operation=CONNECT outcome=errored webhook=test ": 1,
		"operation=UNKNOWN outcome=allowed webhook=test ": 1,
		"operation=UNKNOWN outcome=errored webhook=test ": 1,
		"operation=UNKNOWN outcome=denied webhook=test ":  1,
	}
	eventually(t, func() string { return cmp.Diff(want, f.samples(t, "stencil_webhook_duration_seconds")) })
	if diff := cmp.Diff(map[string]float64{"webhook=test ": 1}, f.samples(t, "stencil_webhook_panics_total")); diff != "" {
		t.Errorf("panics (-want +got):\n%s", diff)
	}
}

func TestMetricsTellHowManyRequestsAreInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f := start(t, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		entered <- struct{}{}
		<-leave
		return admission.Allowed("")
	}))
	inFlight := func(want float64) func() string {
		return func() string {
			return cmp.Diff(map[string]float64{"webhook=test ": want}, f.samples(t, "stencil_webhook_in_flight_requests"))
		}
	}
	eventually(t, inFlight(0))
	for range 2 {
		go func() { _, _, _ = f.tryPost(context.Background(), "", review(t, admissionv1.Create, nil)) }()
		<-entered
	}
	eventually(t, inFlight(2))
	close(leave)
	eventually(t, inFlight(0))
}

// eventually waits until the condition returns an empty difference.
func eventually(t *testing.T, difference func() string) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		diff := difference()
		if diff == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("(-want +got):\n%s", diff)
		case <-ticker.C:
		}
	}
}
