package revisions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/client/clientset"
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/bench/machine"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/manager"
)

// Options are the sizes of the measurement.
type Options struct {
	// Revisions is the number of stored copies.
	Revisions int
	// Log receives the cluster's log, Progress the steps of the benchmark.
	Log      io.Writer
	Progress func(format string, arguments ...any)
}

// Result is what Run has measured.
type Result struct {
	options Options
	// bare is the time of the client, migration that of the manager.
	bare, migration time.Duration
	// memory is that of the manager at the end.
	memory machine.Memory
}

const (
	// writers is also the number of workers of the manager.
	writers = 8
	// limit is how long a wait may take before it is given up.
	limit        = 30 * time.Minute
	pollInterval = 100 * time.Millisecond

	bareNamespace, namespace = "bare", "migrated"
)

// cluster is where objects are created.
type cluster struct {
	kubernetes.Interface
	stencil clientset.Interface
}

// Run measures.
func Run(ctx context.Context, options Options) (result *Result, err error) {
	result = &Result{options: options}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: options.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.InstallVirtualizationCRDs(ctx); err != nil {
		return nil, err
	}
	process, err := install.Beside(ctx, plane, map[string]any{"revisions": map[string]any{"write": true}})
	if err != nil {
		return nil, err
	}
	c, err := newCluster(plane.AdminConfig())
	if err != nil {
		return nil, err
	}
	options.Progress("revisions: storing twice %d copies", options.Revisions)
	if err := c.fill(ctx, options); err != nil {
		return nil, err
	}
	options.Progress("revisions: a client creates, deletes and creates")
	if result.bare, err = c.bare(ctx, options); err != nil {
		return nil, err
	}
	running, err := manager.Start(ctx, process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	options.Progress("revisions: the manager migrates")
	if result.migration, err = c.migrate(ctx, running, options); err != nil {
		return nil, err
	}
	result.memory, err = machine.MemoryOf(running.PID())
	return result, err
}

func newCluster(config *rest.Config) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	plain, err1 := kubernetes.NewForConfig(config)
	stencil, err2 := clientset.NewForConfig(config)
	return &cluster{plain, stencil}, errors.Join(err1, err2)
}

// copyOf returns a stored copy; version is that of the object in it.
func copyOf(namespace, name, version string) *appsv1.ControllerRevision {
	const object = `{"apiVersion":"instancetype.kubevirt.io/%s","kind":"VirtualMachineClusterInstancetype","metadata":{"creationTimestamp":null,"generation":1,"name":"six",` +
		`"uid":"8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10"},"spec":{"cpu":{"guest":6,"model":"host-model"},"memory":{"guest":"6Gi"}}}`
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: runtime.RawExtension{Raw: fmt.Appendf(nil, object, version)}}
}

func name(number int) string {
	return fmt.Sprintf("vm-%d-six-8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10-1", number)
}

func (c *cluster) fill(ctx context.Context, options Options) error {
	for _, each := range []string{bareNamespace, namespace} {
		if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: each}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", each, err)
		}
		if err := load.Each(ctx, options.Revisions, writers, func(ctx context.Context, number int) error {
			return c.create(ctx, copyOf(each, name(number), "v1alpha2"))
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) create(ctx context.Context, r *appsv1.ControllerRevision) error {
	_, err := c.AppsV1().ControllerRevisions(r.Namespace).Create(ctx, r, metav1.CreateOptions{})
	return err
}

// bare makes the writes of a migration, and no decision.
func (c *cluster) bare(ctx context.Context, options Options) (time.Duration, error) {
	began := time.Now()
	err := load.Each(ctx, options.Revisions, writers, func(ctx context.Context, number int) error {
		if err := c.create(ctx, copyOf(bareNamespace, name(number)+"-bak", "v1beta1")); err != nil {
			return err
		}
		if err := c.AppsV1().ControllerRevisions(bareNamespace).Delete(ctx, name(number), metav1.DeleteOptions{}); err != nil {
			return err
		}
		return c.create(ctx, copyOf(bareNamespace, name(number), "v1beta1"))
	})
	return time.Since(began), err
}

// migrate returns the time from the change of the mode to the condition Complete.
func (c *cluster) migrate(ctx context.Context, running *manager.Process, options Options) (time.Duration, error) {
	migrations := c.stencil.StencilV1alpha1().RevisionMigrations()
	// The manager creates the object, and reports at its start.
	if err := c.await(ctx, running, func(m *v1alpha1.RevisionMigration) bool { return m.Status.ObservedGeneration == m.Generation }); err != nil {
		return 0, err
	}
	began := time.Now()
	changed, err := migrations.Patch(ctx, v1alpha1.RevisionMigrationName, types.MergePatchType, []byte(`{"spec":{"mode":"Apply","rate":0,"namespaces":["`+namespace+`"]}}`), metav1.PatchOptions{})
	if err != nil {
		return 0, fmt.Errorf("changing the mode: %w", err)
	}
	var passed time.Duration
	err = c.await(ctx, running, func(m *v1alpha1.RevisionMigration) bool {
		passed = time.Since(began)
		for _, condition := range m.Status.Conditions {
			if condition.Type == v1alpha1.ConditionPassComplete && condition.ObservedGeneration == changed.Generation && condition.Reason != v1alpha1.ReasonPassRunning {
				return m.Status.Migrated != nil && int(*m.Status.Migrated) == options.Revisions
			}
		}
		return false
	})
	return passed, err
}

func (c *cluster) await(ctx context.Context, running *manager.Process, done func(*v1alpha1.RevisionMigration) bool) error {
	err := running.Poll(ctx, pollInterval, limit, func() (bool, error) {
		m, err := c.stencil.StencilV1alpha1().RevisionMigrations().Get(ctx, v1alpha1.RevisionMigrationName, metav1.GetOptions{})
		// It does not exist before the first pass.
		return err == nil && done(m), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the RevisionMigration: %w\n%s", err, running.Logs())
	}
	return nil
}
