package defaults

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/vmstencil/stencil/defaulting"
)

// kubevirt is a fake KubeVirt with a version that changes.
type kubevirt struct {
	mu      sync.Mutex
	version string
	changed chan struct{}
}

func (k *kubevirt) Synced() bool { return true }
func (k *kubevirt) Cluster() defaulting.Cluster {
	k.mu.Lock()
	defer k.mu.Unlock()
	return defaulting.Cluster{KubeVirt: k.version}
}
func (k *kubevirt) Object() corev1.ObjectReference {
	return corev1.ObjectReference{Kind: "KubeVirt", Name: "kubevirt", Namespace: "kubevirt"}
}
func (k *kubevirt) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}
func (k *kubevirt) become(version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version = version
	close(k.changed)
	k.changed = make(chan struct{})
}

type reachable struct {
	mu  sync.Mutex
	err error
}

func (r *reachable) Environment(context.Context) (*defaulting.Environment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &environment, r.err
}

func (r *reachable) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func TestAnotherKubeVirtIsToldOnce(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	cluster := &kubevirt{version: "v1.8.0", changed: make(chan struct{})}
	sidecar := &reachable{}
	recorder := events.NewFakeRecorder(10)
	elected := make(chan struct{})
	observer := NewObserver(ObserverOptions{
		Defaulter: sidecar, KubeVirt: cluster, Metrics: metrics, Recorder: recorder, Elected: elected,
		Logger: logr.Discard(), Interval: 5 * time.Millisecond,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- observer.Start(ctx) }()
	await := func(what string, gauge prometheus.Gauge, want float64) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); testutil.ToFloat64(gauge) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the metric is %v, want %v", what, testutil.ToFloat64(gauge), want)
			}
		}
	}

	await("it answers", metrics.up, 1)
	if got := testutil.ToFloat64(metrics.differs); got != 0 {
		t.Errorf("another patch release is taken for another KubeVirt")
	}
	cluster.become("v1.9.1")
	await("the libvirt of another minor", metrics.differs, 1)
	cluster.become("v1.8.1")
	await("its own again", metrics.differs, 0)
	cluster.become("v1.10.1")
	await("another minor", metrics.differs, 1)
	select {
	case event := <-recorder.Events:
		t.Errorf("a replica that does not lead has recorded %s", event)
	default:
	}
	close(elected)
	select {
	case event := <-recorder.Events:
		if !strings.Contains(event, "v1.10.1") || !strings.Contains(event, "v1.8.2, v1.9.0") {
			t.Errorf("the event is %s", event)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	cluster.become("v1.8.3")
	await("the same again", metrics.differs, 0)
	sidecar.set(errors.New("gone"))
	await("it is gone", metrics.up, 0)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := len(recorder.Events); left != 0 {
		t.Errorf("%d more events", left)
	}
}
