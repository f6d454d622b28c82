package capture_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/test/install"
)

// TestAManagerThatIsKilledIsSucceeded has one capture at each step when the manager is killed.
func TestAManagerThatIsKilledIsSucceeded(t *testing.T) {
	s := real.on(t)
	captures := make([]*capture, len(steps))
	for i := range steps {
		captures[i] = s.pair(t)
	}
	var releases []func()
	for i, step := range steps {
		releases = append(releases, captures[i].hold(t, step))
		captures[i].begin(t, "")
	}
	for i, step := range steps {
		captures[i].reach(t, step)
	}
	if err := s.platform.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	// KubeVirt and CDI continue while there is no manager.
	for _, release := range releases {
		release()
	}
	if err := s.platform.StartManager(); err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			captures[i].captured(t)
			madeOnce(t, captures[i])
		})
	}
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// leader returns the holder of the managers' lease; empty when there is none.
func (s *stage) leader(t *testing.T) string {
	t.Helper()
	lease, err := s.client.Resource(leases).Namespace(install.Namespace).Get(context.WithoutCancel(t.Context()), "stencil-manager", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}

// TestTwoManagersMakeNothingTwice runs two replicas during captures, and kills the leader in the middle.
//
//suite:long
func TestTwoManagersMakeNothingTwice(t *testing.T) {
	s := real.on(t)
	if err := s.platform.StopManager(); err != nil {
		t.Fatal(err)
	}
	// The other tests get their manager back when both replicas have ended.
	t.Cleanup(func() {
		if err := s.platform.StartManager(); err != nil {
			t.Error(err)
		}
	})
	first, err := s.platform.StartReplica("--leader-elect=true")
	if err != nil {
		t.Fatal(err)
	}
	var was string
	eventually(t, "somebody leads", func() string {
		if was = s.leader(t); was == "" {
			return "nobody leads"
		}
		return ""
	})
	second, err := s.platform.StartReplica("--leader-elect=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})

	// Some are between two steps when the leader is killed, some wait for the storage, and some begin without a leader.
	captures := make([]*capture, 6)
	for i := range captures {
		captures[i] = s.pair(t)
	}
	for _, c := range captures {
		c.filled(t)
	}
	held, copied, running, late := captures[0], captures[1], captures[2:4], captures[4:]
	releases := []func(){held.hold(t, at("while the snapshot is taken")), copied.hold(t, at("while the disks are copied"))}
	held.begin(t, "")
	copied.begin(t, "")
	held.reach(t, at("while the snapshot is taken"))
	copied.reach(t, at("while the disks are copied"))
	for _, c := range running {
		c.begin(t, "")
	}
	eventually(t, "every capture has asked for a snapshot", func() string {
		for _, c := range running {
			if len(s.all(t, snapshots, c.shop)) == 0 {
				return "no snapshot is asked for in " + c.shop
			}
		}
		return ""
	})
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		release()
	}
	for _, c := range late {
		// The API server may have a connection to the replica that was killed.
		eventually(t, "the request is stored", func() string {
			return s.kubectl(t, s.owner, request(c.golden, "r", c.shop, "web", ""), "create", "-f", "-").Stderr
		})
	}
	for _, c := range captures {
		c.captured(t)
	}
	madeOnce(t, captures...)
	if now := s.leader(t); now == was || now == "" {
		t.Errorf("%q leads, after %q was killed", now, was)
	}
}
