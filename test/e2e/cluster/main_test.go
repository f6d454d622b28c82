// Package cluster_test installs Stencil's release on a real cluster, and creates VMs that run there, as users with ordinary roles.
package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

var (
	kube *cluster.Cluster
	// ada has the role edit in the namespaces of the tests, and may use the templates of golden.
	ada *controlplane.User

	namespaces = harness.Namespaces{Prefix: "cluster", Members: map[string]string{editors: "edit"}}
)

const editors = "cluster-editors"

func TestMain(m *testing.M) { harness.Main(m, start) }

func start(ctx context.Context) (stop func() error, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("these tests need root: they start a node in namespaces of its own")
	}
	began := time.Now()
	if kube, err = cluster.Start(ctx, os.Stderr); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "cluster: node ready after %.0f s\n", time.Since(began).Seconds())
	return kube.Stop, prepare(ctx)
}

func prepare(ctx context.Context) error {
	if err := kube.InstallCDI(ctx); err != nil {
		return err
	}
	if err := kube.Install(ctx); err != nil {
		return err
	}
	if err := kube.PushGuest(ctx); err != nil {
		return err
	}
	namespaces.Plane = kube.Plane
	if err := harness.Apply(ctx, kube.Plane, string(cluster.GoldenExample), "-"); err != nil {
		return err
	}
	var err error
	ada, err = gen.User(ctx, kube.Plane, "ada", gen.Group(editors), gen.Role("golden", "view"), gen.UsesTemplates("golden"))
	return err
}
