package goldenimage

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

func observed(reason string, architectures ...string) *v1alpha1.GoldenImageStatus {
	status := &v1alpha1.GoldenImageStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Reason: reason}}}
	for _, one := range architectures {
		status.Architectures = append(status.Architectures, v1alpha1.GoldenImageArchitecture{Name: one, Current: &v1alpha1.ImportedImage{ImportedAt: metav1.Now()}})
	}
	return status
}

// TestNoScrapeMissesAnImage scrapes while the status of an image is observed.
func TestNoScrapeMissesAnImage(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Namespace: "golden", Name: "fedora"}
	m.observe(name, observed("Latest", "amd64"))
	var observing sync.WaitGroup
	observing.Go(func() {
		for i := range 20000 {
			m.observe(name, observed([]string{"Latest", "Importing"}[i%2], "amd64"))
		}
	})
	for range 500 {
		if states, imported := testutil.CollectAndCount(m.state), testutil.CollectAndCount(m.imported); states == 0 || imported != 1 {
			t.Fatalf("a scrape found %d states and %d images", states, imported)
		}
	}
	observing.Wait()
}

func TestSeriesThatAreOverAreRemoved(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Namespace: "golden", Name: "fedora"}
	count := func() (n [4]int) {
		for i, one := range []*prometheus.GaugeVec{m.state, m.imported, m.next, m.vms} {
			n[i] = testutil.CollectAndCount(one)
		}
		return n
	}
	status := observed("Latest", "amd64", "arm64")
	status.NextCheckTime = ptr.To(metav1.Now())
	m.observe(name, status)
	m.used(name, &v1alpha1.GoldenImageUsage{VirtualMachines: ptr.To[int32](3)})
	if got := count(); got != [4]int{1, 2, 1, 1} {
		t.Errorf("got %v", got)
	}
	m.observe(name, observed("Stale", "arm64"))
	m.used(name, &v1alpha1.GoldenImageUsage{})
	if got := count(); got != [4]int{1, 1, 0, 0} {
		t.Errorf("got %v", got)
	}
	m.forget(name)
	if got := count(); got != [4]int{} {
		t.Errorf("got %v", got)
	}
}
