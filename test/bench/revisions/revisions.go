package revisions

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/api/client/clientset"
	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/revision"
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
	// bare and equal of the client, with plain objects and with objects like the ones of the manager.
	bare, equal, migration cost
	// memory of the manager at the end.
	memory machine.Memory
}

const (
	// writers is also the number of workers of the manager.
	writers = 8
	// limit is how long a wait may take before it is given up.
	limit        = 30 * time.Minute
	pollInterval = 100 * time.Millisecond

	bareNamespace, equalNamespace, namespace = "bare", "equal", "migrated"

	// The names of the processes, of which the client is this one.
	client, manages, serves, stores = "", "stencil-manager", "kube-apiserver", "etcd"
)

// cost is what a migration has taken.
type cost struct {
	time time.Duration
	// processor is the processor time of each process.
	processor map[string]time.Duration
}

// measure measures work, which returns its own time.
func measure(work func() (time.Duration, error)) (cost, error) {
	before, err := machine.CPU(manages, serves, stores)
	if err != nil {
		return cost{}, err
	}
	taken, err := work()
	if err != nil {
		return cost{}, err
	}
	used, err := machine.CPU(manages, serves, stores)
	for name := range used {
		used[name] -= before[name]
	}
	return cost{taken, used}, err
}

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
	if result.bare, err = c.byClient(ctx, options, bareNamespace, bare); err != nil {
		return nil, err
	}
	// The caches of the API server retain what it has served, so that a collection of its garbage takes longer after each part.
	if err := plane.RestartAPIServer(ctx); err != nil {
		return nil, err
	}
	if result.equal, err = c.byClient(ctx, options, equalNamespace, equal); err != nil {
		return nil, err
	}
	if err := plane.RestartAPIServer(ctx); err != nil {
		return nil, err
	}
	if err := c.fill(ctx, options, namespace); err != nil {
		return nil, err
	}
	running, err := manager.Start(ctx, process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	options.Progress("revisions: the manager migrates")
	// The manager creates the object, and reports at its start.
	if err := c.await(ctx, running, func(m *v1alpha1.RevisionMigration) bool { return m.Status.ObservedGeneration == m.Generation }); err != nil {
		return nil, err
	}
	if result.migration, err = measure(func() (time.Duration, error) { return c.migrate(ctx, running, options) }); err != nil {
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

// data returns the data of a stored copy; version is that of the object in it.
func data(version string) []byte {
	const object = `{"apiVersion":"instancetype.kubevirt.io/%s","kind":"VirtualMachineClusterInstancetype","metadata":{"creationTimestamp":null,"generation":1,"name":"six",` +
		`"uid":"8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10"},"spec":{"cpu":{"guest":6,"model":"host-model"},"memory":{"guest":"6Gi"}}}`
	return fmt.Appendf(nil, object, version)
}

// copyOf returns a stored copy; version is that of the object in it.
func copyOf(namespace, name, version string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: runtime.RawExtension{Raw: data(version)}}
}

func name(number int) string {
	return fmt.Sprintf("vm-%d-six-8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10-1", number)
}

// byClient measures a client that migrates copies by itself, one after the other in each of its workers. It leaves none.
func (c *cluster) byClient(ctx context.Context, options Options, namespace string, migrate func(ctx context.Context, revisions appsclient.ControllerRevisionInterface, namespace, name string) error) (cost, error) {
	if err := c.fill(ctx, options, namespace); err != nil {
		return cost{}, err
	}
	options.Progress("revisions: a client migrates in namespace %s", namespace)
	revisions := c.AppsV1().ControllerRevisions(namespace)
	taken, err := measure(func() (time.Duration, error) {
		began := time.Now()
		err := load.Each(ctx, options.Revisions, writers, func(ctx context.Context, number int) error {
			return migrate(ctx, revisions, namespace, name(number))
		})
		return time.Since(began), err
	})
	if err != nil {
		return cost{}, err
	}
	// The inventory of the manager would have them.
	return taken, load.Each(ctx, options.Revisions, writers, func(ctx context.Context, number int) error {
		return errors.Join(revisions.Delete(ctx, name(number), metav1.DeleteOptions{}), revisions.Delete(ctx, name(number)+backupSuffix, metav1.DeleteOptions{}))
	})
}

func (c *cluster) fill(ctx context.Context, options Options, namespace string) error {
	options.Progress("revisions: storing %d copies in namespace %s", options.Revisions, namespace)
	if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	revisions := c.AppsV1().ControllerRevisions(namespace)
	return load.Each(ctx, options.Revisions, writers, func(ctx context.Context, number int) error {
		_, err := revisions.Create(ctx, copyOf(namespace, name(number), "v1alpha2"), metav1.CreateOptions{})
		return err
	})
}

// backupSuffix ends the name of a backup. That of the manager has as many characters.
const backupSuffix = "-bak-0123456789"

// bare makes the writes of a migration, and no decision.
func bare(ctx context.Context, revisions appsclient.ControllerRevisionInterface, namespace, name string) error {
	if _, err := revisions.Create(ctx, copyOf(namespace, name+backupSuffix, "v1beta1"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := revisions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := revisions.Create(ctx, copyOf(namespace, name, "v1beta1"), metav1.CreateOptions{})
	return err
}

// equal makes the same writes, with objects like those of the manager, and no decision.
func equal(ctx context.Context, revisions appsclient.ControllerRevisionInterface, namespace, name string) error {
	const key = "stencil.kubevirt.io/revision-backup"
	labels := map[string]string{
		revision.LabelGeneration: "1", revision.LabelKind: "VirtualMachineClusterInstancetype", revision.LabelName: "six",
		revision.LabelUID: "8d1a7b0e-2a33-4c53-9b2a-3d1c9b1f6a10", revision.LabelVersion: string(revision.Target),
	}
	original, err := json.Marshal(map[string]any{
		"name": name, "uid": labels[revision.LabelUID], "sha256": strings.Repeat("0", sha256.Size*2), "orphan": true,
		"converted": json.RawMessage(data("v1beta1")), "convertedLabels": labels,
	})
	if err != nil {
		return err
	}
	backup := copyOf(namespace, name+backupSuffix, "v1alpha2")
	backup.Labels, backup.Annotations = map[string]string{key: "true"}, map[string]string{key: string(original)}
	if _, err := revisions.Create(ctx, backup, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := revisions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	converted := copyOf(namespace, name, "v1beta1")
	converted.Labels, converted.Annotations = labels, map[string]string{key: backup.Name}
	_, err = revisions.Create(ctx, converted, metav1.CreateOptions{})
	return err
}

// migrate returns the time from the change of the mode to the condition Complete.
func (c *cluster) migrate(ctx context.Context, running *manager.Process, options Options) (time.Duration, error) {
	migrations := c.stencil.StencilV1alpha1().RevisionMigrations()
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
