package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// fakeLease is a lease in memory, of an API server that may be away.
type fakeLease struct {
	mutex  sync.Mutex
	record resourcelock.LeaderElectionRecord
	away   error
	// attempts counts updates while it is away, written those that were stored.
	attempts, written int
}

func (f *fakeLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.away != nil {
		f.attempts++
		return nil, nil, f.away
	}
	record := f.record
	return &record, []byte(record.HolderIdentity + record.RenewTime.String()), nil
}

func (f *fakeLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return f.Update(ctx, record)
}

func (f *fakeLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.away != nil {
		f.attempts++
		return f.away
	}
	if holder := f.record.HolderIdentity; holder == "other" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "stencil-manager", errors.New("it was changed"))
	}
	f.record = record
	f.written++
	return nil
}

func (f *fakeLease) RecordEvent(string) {}
func (f *fakeLease) Identity() string   { return "me" }
func (f *fakeLease) Describe() string   { return "lease" }

// change changes the lease as another would.
func (f *fakeLease) change(change func(*fakeLease)) (attempts, written int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(f)
	return f.attempts, f.written
}

func look(f *fakeLease) (attempts, written int) { return f.change(func(*fakeLease) {}) }

// elect runs the elector with a deadline of 50 ms. ended is closed when it does not lead any more.
func elect(t *testing.T, f *fakeLease) (stop context.CancelFunc, ended <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &heldLease{Interface: f, stopping: ctx, pause: 5 * time.Millisecond},
		LeaseDuration: 100 * time.Millisecond, RenewDeadline: 50 * time.Millisecond, RetryPeriod: 10 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { close(done) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	t.Cleanup(cancel)
	return cancel, done
}

func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

// errRefused is what a client returns while no API server listens.
var errRefused = errors.New("dial tcp 127.0.0.1:6443: connect: connection refused")

func TestALeaderWaitsForTheAPIServer(t *testing.T) {
	for name, away := range map[string]error{
		"it is not reached":           errRefused,
		"it does not reach etcd":      apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
		"it has too many requests":    apierrors.NewTooManyRequests("try later", 1),
		"it answers, and not in time": apierrors.NewTimeoutError("too slow", 1),
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeLease{}
			_, ended := elect(t, f)
			await(t, "it leads", func() bool { _, written := look(f); return written > 1 })
			f.change(func(f *fakeLease) { f.away = away })
			// More often than fits into the deadline.
			await(t, "it tries again", func() bool { attempts, _ := look(f); return attempts > 40 })
			_, before := f.change(func(f *fakeLease) { f.away = nil })
			await(t, "it renews the lease", func() bool { _, written := look(f); return written > before+2 })
			if over(ended) {
				t.Error("it leads no more")
			}
		})
	}
}

func TestALeaderEndsIfAnotherHasTheLease(t *testing.T) {
	f := &fakeLease{}
	_, ended := elect(t, f)
	await(t, "it leads", func() bool { _, written := look(f); return written > 1 })
	f.change(func(f *fakeLease) { f.away = errRefused })
	await(t, "it tries again", func() bool { attempts, _ := look(f); return attempts > 40 })
	f.change(func(f *fakeLease) { f.away, f.record.HolderIdentity = nil, "other" })
	await(t, "it leads no more", func() bool { return over(ended) })
}

func TestALeaderStopsWhileThereIsNoAPIServer(t *testing.T) {
	f := &fakeLease{}
	stop, ended := elect(t, f)
	await(t, "it leads", func() bool { _, written := look(f); return written > 1 })
	f.change(func(f *fakeLease) { f.away = errRefused })
	await(t, "it tries again", func() bool { attempts, _ := look(f); return attempts > 40 })
	stop()
	await(t, "it has stopped", func() bool { return over(ended) })
}

func TestALeaderReleasesItsLease(t *testing.T) {
	f := &fakeLease{}
	stop, ended := elect(t, f)
	await(t, "it leads", func() bool { _, written := look(f); return written > 1 })
	stop()
	<-ended
	if f.record.HolderIdentity != "" {
		t.Errorf("the lease is held by %q", f.record.HolderIdentity)
	}
}

func TestAnUninstallationsLeaseIsFreeForManagersThatStartLater(t *testing.T) {
	started := time.Now()
	for name, tc := range map[string]struct {
		holder, want string
		// renewed and read are times relative to the start of the manager.
		renewed, read time.Duration
	}{
		"a manager that the uninstallation is about to delete": {uninstall.Identity, uninstall.Identity, time.Second, time.Hour},
		"a manager that starts again during the uninstallation": {
			uninstall.Identity, uninstall.Identity, -time.Second, 0,
		},
		"a manager that starts again between two renewals": {uninstall.Identity, uninstall.Identity, -time.Second, uninstall.Silence - 2*time.Second},
		"a manager of the next installation":               {uninstall.Identity, "", -time.Minute, 0},
		"a manager of the next installation, which waits":  {uninstall.Identity, "", -time.Second, uninstall.Silence},
		"another manager leads":                            {"other", "other", -time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &heldLease{
				stopping: t.Context(), pause: time.Millisecond, started: started, now: func() time.Time { return started.Add(tc.read) },
				Interface: &fakeLease{record: resourcelock.LeaderElectionRecord{HolderIdentity: tc.holder, RenewTime: metav1.NewTime(started.Add(tc.renewed))}},
			}
			record, _, err := lease.Get(t.Context())
			if err != nil || record.HolderIdentity != tc.want {
				t.Errorf("holder %q, %v, want %q", record.HolderIdentity, err, tc.want)
			}
		})
	}
}
