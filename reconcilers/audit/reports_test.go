package audit

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestReportsThatCannotBeListed checks that only a missing definition of Reports counts as one: after any other error the next audit writes Reports.
func TestReportsThatCannotBeListed(t *testing.T) {
	for name, tc := range map[string]struct {
		err            error
		wantReportless bool
		wantServed     float64
		wantUnwritten  float64
	}{
		"the definition is not installed": {apierrors.NewNotFound(ReportResource.GroupResource(), ""), true, 0, 0},
		"the list fails":                  {errors.New("etcdserver: request timed out"), false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			client := metadatafake.NewSimpleMetadataClient(runtime.NewScheme())
			client.PrependReactor("list", "reports", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			metrics, err := newMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			metrics.served.Set(1)
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
			r := &Reconciler{
				options: Options{Templates: noTemplateCache{}, Clock: clock},
				vms:     &fakePager{}, instances: &fakePager{}, claims: &fakePager{}, kubevirts: &fakePager{}, metrics: metrics,
				reports: &reports{metadata: client},
			}
			if _, err := r.audit(t.Context(), &lastAudit{}, nil, clock.Now()); err != nil {
				t.Fatal(err)
			}
			if got := r.reportless.Load(); got != tc.wantReportless {
				t.Errorf("reportless %v, want %v", got, tc.wantReportless)
			}
			if got := testutil.ToFloat64(metrics.served); got != tc.wantServed {
				t.Errorf("served %v, want %v", got, tc.wantServed)
			}
			if got := testutil.ToFloat64(metrics.failedReports); got != tc.wantUnwritten {
				t.Errorf("unwritten %v, want %v", got, tc.wantUnwritten)
			}
		})
	}
}
