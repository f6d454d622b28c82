package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/vmstencil/stencil/reconcilers/uninstall"
)

// heldLease is a lease whose holder waits while no API server answers, instead of giving up after the deadline for renewals: a leader that gives up exits, and
// a replica that serves webhooks is missing just when the API server is back. Nothing can be reconciled meanwhile. The first answer decides: another holder
// has changed the lease, so that the update conflicts with it.
type heldLease struct {
	resourcelock.Interface
	// stopping ends when the manager is to stop.
	stopping context.Context
	pause    time.Duration
	// started is when this process started.
	started time.Time
	now     func() time.Time
}

// newLease returns the lease of the managers.
func newLease(ctx context.Context, o *options, config *rest.Config) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the name of the host: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	// A request that hangs is repeated within the deadline.
	config.Timeout = renewDeadline / 2
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for the lease: %w", err)
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	identity := host + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.leaderElectionNamespace, o.leaderElectionID, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: identity})})
	if err != nil {
		return nil, fmt.Errorf("making the lease: %w", err)
	}
	return &heldLease{Interface: lock, stopping: ctx, pause: time.Second, started: time.Now(), now: time.Now}, nil
}

// Get implements resourcelock.Interface. It returns when an API server has answered.
func (l *heldLease) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.await(ctx, func(ctx context.Context) (err error) {
		record, raw, err = l.Interface.Get(ctx)
		return err
	})
	// An uninstallation holds the lease beyond its end, so that the managers which helm is about to delete do not lead. A manager that started later
	// belongs to a new installation; one that the kubelet starts again while the uninstallation runs does not.
	if err == nil && record.HolderIdentity == uninstall.Identity {
		if renewed := record.RenewTime.Time; renewed.Before(l.started) && l.now().Sub(renewed) > uninstall.Silence {
			record.HolderIdentity = ""
		}
	}
	return record, raw, err
}

// Update implements resourcelock.Interface. It returns when an API server has answered.
func (l *heldLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.await(ctx, func(ctx context.Context) error { return l.Interface.Update(ctx, record) })
}

// await repeats a request until an API server has answered, however long that takes, or the manager is to stop. A lease that is released then is not waited for.
func (l *heldLease) await(ctx context.Context, request func(context.Context) error) error {
	if l.stopping.Err() != nil {
		return request(ctx)
	}
	var last error
	err := wait.PollUntilContextCancel(l.stopping, l.pause, true, func(stopping context.Context) (done bool, err error) {
		// Not with the context of the caller, which has the deadline.
		last = request(stopping)
		return !unanswered(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return last
}

// unanswered reports whether an API server was not reached, or could not reach its storage.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
