package uninstall

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
)

// LeaseDuration is the duration of the Leases of managers: a leader that has not renewed its Lease for that time has stopped.
const LeaseDuration = 30 * time.Second

const (
	// Identity is the holder of a Lease that an uninstallation has taken.
	Identity = "stencil-uninstall"
	// renewal is how often an uninstallation renews its Lease while it runs.
	renewal = 5 * time.Second
	// Silence is the time without a renewal after which an uninstallation that holds the Lease has ended.
	Silence = 3 * renewal
	// expired is the time after which the last holder of a Lease has stopped, whatever the difference between its clock and this one.
	expired = 10 * time.Minute
)

// lock holds the Lease of the leader.
type lock struct {
	client  coordinationclient.LeaseInterface
	name    types.NamespacedName
	hold    time.Duration
	now     func() time.Time
	renewed time.Time
}

// holder returns the manager that leads, or did so last; empty if none does.
func holder(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }

// remaining returns the time in which the holder of a Lease may still act after the Lease was taken.
func remaining(lease *coordinationv1.Lease, now time.Time) time.Duration {
	switch who := holder(lease); {
	case who == "":
		return 0
	case who == Identity && lease.Spec.AcquireTime != nil:
		// An earlier run may have been interrupted while it waited.
		return min(max(lease.Spec.AcquireTime.Add(LeaseDuration).Sub(now), 0), LeaseDuration)
	case lease.Spec.RenewTime != nil && lease.Spec.RenewTime.Add(expired).Before(now):
		return 0
	}
	return max(LeaseDuration, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
}

// take makes the Lease this process's, and returns its last holder and the time in which that may still act.
func (l *lock) take(ctx context.Context) (from string, wait time.Duration, err error) {
	for {
		lease, err := l.client.Get(ctx, l.name.Name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		switch {
		case missing:
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.name.Namespace, Name: l.name.Name}}
		case err != nil:
			return "", 0, fmt.Errorf("reading Lease %s: %w", l.name, err)
		}
		now := l.now()
		// Whatever duration its last holder has written.
		from, wait = holder(lease), min(remaining(lease, now), l.hold)
		if from != Identity {
			lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
			lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To(Identity), &metav1.MicroTime{Time: now}
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(l.hold / time.Second))
		if missing {
			_, err = l.client.Create(ctx, lease, metav1.CreateOptions{})
		} else {
			_, err = l.client.Update(ctx, lease, metav1.UpdateOptions{})
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			// The leader has renewed it in the meantime.
			continue
		case apierrors.IsNotFound(err) && missing:
			// The namespace does not exist, and no manager in it.
			return "", 0, nil
		case err != nil:
			return "", 0, fmt.Errorf("taking Lease %s: %w", l.name, err)
		}
		l.renewed = now
		return from, wait, nil
	}
}

// extend renews the Lease if that is due, or in any case.
func (l *lock) extend(ctx context.Context, anyway bool) error {
	if !anyway && l.now().Sub(l.renewed) < renewal {
		return nil
	}
	from, _, err := l.take(ctx)
	if err == nil && from != Identity && from != "" {
		err = fmt.Errorf("manager %s took Lease %s in the meantime: run it again", from, l.name)
	}
	return err
}
