package certificates_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

func TestRollingRestartLosesNoRequest(t *testing.T) {
	replicas := []*manager.Process{startReplica(t), startReplica(t)}
	s := startStream(t)
	s.awaitMore(t, 100)
	for _, old := range replicas {
		// As a Deployment with maxUnavailable 0 does: a new one starts before the old one stops.
		startReplica(t)
		if err := old.Stop(); err != nil {
			t.Fatal(err)
		}
		s.awaitMore(t, 50)
	}
	s.expectNoFailure(t)
}

func TestRollingRestartDuringARotationLosesNoRequest(t *testing.T) {
	old := startReplica(t, unhurried)
	before := authority(t)
	s := startStream(t)
	s.awaitMore(t, 50)
	kubectl(t, "", "--namespace", install.Namespace, "delete", "secret", authoritySecret)
	// The new replica has no certificate of the former authority.
	fresh := startReplica(t, unhurried)
	after := awaitRotation(t, before, fresh)
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}
	s.awaitMore(t, 50)
	if err := servesBy(t.Context(), fresh, after); err != nil {
		t.Error(err)
	}
	s.expectNoFailure(t)
}

func TestLeaderlessReplicaAnswers(t *testing.T) {
	leader := startReplica(t)
	follower := startReplica(t)
	// The lease of a killed leader does not end at once; the next test must not wait for its end.
	t.Cleanup(func() { releaseLease(t) })
	service.Remove(leader)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	// The API server notices the end of the connections that it has kept a moment later; a request by one of them fails.
	requests := newRequests(t)
	harness.Eventually(t, "the follower answers", func() error {
		return errors.Join(requests.vm(t.Context(), "after-the-leader"), requests.template(t.Context(), "after-the-leader"))
	})
	s := startStream(t)
	s.awaitMore(t, 100)
	if err := follower.Ready(t.Context()); err != nil {
		t.Errorf("the follower is not ready: %v", err)
	}
	s.expectNoFailure(t)
}

// releaseLease deletes the lease of the leader.
func releaseLease(t *testing.T) {
	t.Helper()
	err := newClient(t).CoordinationV1().Leases(install.Namespace).Delete(context.WithoutCancel(t.Context()), "stencil-manager", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("deleting the lease: %v", err)
	}
}

func TestRestartKeepsTheAuthority(t *testing.T) {
	first := startReplica(t)
	before := authority(t)
	bundle, err := caBundle(t.Context(), newClient(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	startReplica(t)
	if !bytes.Equal(before, authority(t)) {
		t.Error("the restart replaced the authority")
	}
	after, err := caBundle(t.Context(), newClient(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bundle, after) {
		t.Errorf("the restart changed the caBundle from\n%s\nto\n%s", bundle, after)
	}
}
