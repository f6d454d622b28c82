package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/hook"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

const (
	// trackingAnnotation is by what Argo CD recognizes the objects of an application, by default.
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	// manager is the field manager of Argo CD.
	manager = "argocd-controller"

	// The ways to compare an object: with the manifest that was applied last, by a dry run, and by the fields that Argo CD manages, which it does for
	// what it applies on the server.
	clientSide = "client-side"
	serverSide = "server-side"
	structured = "structured"
)

// track adds the annotation by which Argo CD recognizes an object of its application.
func track(object *unstructured.Unstructured, application, namespace string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	kind := object.GroupVersionKind()
	annotations[trackingAnnotation] = fmt.Sprintf("%s:%s/%s:%s/%s", application, kind.Group, kind.Kind, namespace, object.GetName())
	object.SetAnnotations(annotations)
}

// cluster is the cache of a cluster, limited to one namespace and to what the user may list.
type cluster struct {
	namespace string
	config    *rest.Config
	kubectl   *kube.KubectlCmd
	cache     cache.ClusterCache
	scripts   scripts
}

func open(config *rest.Config, o options) (*cluster, error) {
	config.QPS, config.Burst = -1, -1
	kubectl := &kube.KubectlCmd{Log: quiet(), Tracer: tracing.NopTracer{}}
	c := &cluster{namespace: o.namespace, config: config, kubectl: kubectl, scripts: o.scripts}
	c.cache = cache.NewClusterCache(config,
		cache.SetLogr(quiet()), cache.SetKubectl(kubectl), cache.SetNamespaces([]string{o.namespace}), cache.SetRespectRBAC(cache.RespectRbacNormal),
		cache.SetSettings(cache.Settings{ResourceHealthOverride: o.scripts, ResourcesFilter: cache.NewNoopSettings()}),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			managed := strings.HasPrefix(object.GetAnnotations()[trackingAnnotation], o.application+":")
			return managed, managed
		}))
	if err := c.cache.EnsureSynced(); err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	return c, nil
}

// place puts objects that a chart leaves to its release into the namespace of the application, as Argo CD does.
func (c *cluster) place(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		namespaced, err := c.cache.IsNamespaced(object.GroupVersionKind().GroupKind())
		if err != nil {
			return fmt.Errorf("placing %s: %w", object.GetName(), err)
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(c.namespace)
		}
	}
	return nil
}

func managed(resource *cache.Resource) bool {
	is, _ := resource.Info.(bool)
	return is
}

// operation is what a sync did to one object.
type operation struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// refresh is how often a sync that waits for the health of a wave looks at the cluster again.
const refresh = 200 * time.Millisecond

// sync applies the objects, in the order of their waves. Each step starts from what is stored, as in the application controller. The loop of package
// engine reads the stored objects only once: it never sees the health of an object that it has created, so the next wave never begins.
func (c *cluster) sync(ctx context.Context, objects []*unstructured.Unstructured, onServer bool) ([]operation, error) {
	phase, message, results, started := common.OperationRunning, "", []common.ResourceSyncResult(nil), metav1.Now()
	for {
		live, err := c.cache.GetManagedLiveObjs(objects, managed)
		if err != nil {
			return nil, fmt.Errorf("reading the objects: %w", err)
		}
		step, cleanup, err := sync.NewSyncContext("revision", sync.Reconcile(objects, live, c.namespace, c.cache), c.config, c.config, c.kubectl, c.namespace,
			sync.WithInitialState(phase, message, results, started),
			sync.WithLogr(quiet()), sync.WithHealthOverride(c.scripts), sync.WithServerSideApply(onServer), sync.WithServerSideApplyManager(manager))
		if err != nil {
			return nil, fmt.Errorf("beginning to sync: %w", err)
		}
		step.Sync()
		phase, message, results = step.GetState()
		cleanup()
		if phase == common.OperationError {
			return nil, fmt.Errorf("syncing: %s", message)
		}
		if phase.Completed() {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("syncing: %s: %w", message, ctx.Err())
		case <-time.After(refresh):
		}
	}
	slices.SortFunc(results, func(a, b common.ResourceSyncResult) int { return a.Order - b.Order })
	var operations []operation
	for _, each := range results {
		operations = append(operations, operation{Kind: each.ResourceKey.Kind, Name: each.ResourceKey.Name, Status: string(each.Status), Message: each.Message})
	}
	// What was stored meanwhile is read, as it is after a refresh of the application.
	return operations, c.readAgain()
}

func (c *cluster) readAgain() error {
	c.cache.Invalidate()
	if err := c.cache.EnsureSynced(); err != nil {
		return fmt.Errorf("reading the cluster again: %w", err)
	}
	return nil
}

// compare returns what Argo CD shows of the objects. It compares again when one has changed meanwhile, as the application controller does: a dry run
// starts from what is stored now, which differs from what was read when KubeVirt's controllers have just written a status or a finalizer.
func (c *cluster) compare(ctx context.Context, objects []*unstructured.Unstructured) ([]resource, error) {
	for {
		live, err := c.cache.GetManagedLiveObjs(objects, managed)
		if err != nil {
			return nil, fmt.Errorf("reading the objects: %w", err)
		}
		resources, err := c.compareWith(objects, maps.Clone(live)) // It removes from the map.
		if err != nil {
			return nil, err
		}
		if err := c.readAgain(); err != nil {
			return nil, err
		}
		now, err := c.cache.GetManagedLiveObjs(objects, managed)
		if err != nil {
			return nil, fmt.Errorf("reading the objects again: %w", err)
		}
		if maps.EqualFunc(live, now, sameVersion) {
			return resources, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("comparing objects that change all the time: %w", err)
		}
	}
}

func sameVersion(a, b *unstructured.Unstructured) bool {
	return a.GetResourceVersion() == b.GetResourceVersion()
}

func (c *cluster) compareWith(objects []*unstructured.Unstructured, live map[kube.ResourceKey]*unstructured.Unstructured) ([]resource, error) {
	both := sync.Reconcile(objects, live, c.namespace, c.cache)
	applier, cleanup, err := c.kubectl.ManageServerSideDiffDryRuns(c.config)
	if err != nil {
		return nil, fmt.Errorf("preparing dry runs: %w", err)
	}
	defer cleanup()
	var resources []resource
	for i, target := range both.Target {
		object := target
		if object == nil {
			object = both.Live[i]
		}
		each := describe(object)
		if !hook.IsHook(object) { // Argo CD compares no hooks.
			if each.Comparisons, err = c.comparisons(target, both.Live[i], applier); err != nil {
				return nil, fmt.Errorf("comparing %s: %w", each.Name, err)
			}
		}
		if both.Live[i] == nil {
			each.Health = string(health.HealthStatusMissing)
		} else if err := each.evaluate(both.Live[i], c.scripts); err != nil {
			return nil, err
		}
		resources = append(resources, each)
	}
	return resources, nil
}

// comparisons compares an object in all ways.
func (c *cluster) comparisons(target, live *unstructured.Unstructured, applier diff.KubeApplier) (map[string]comparison, error) {
	all := map[string]comparison{}
	for way, option := range map[string]diff.Option{
		clientSide: diff.WithServerSideDiff(false),
		structured: diff.WithStructuredMergeDiff(true),
		serverSide: diff.WithServerSideDiff(true),
	} {
		compared, err := diff.Diff(target, live, option, diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier)),
			diff.WithLogr(quiet()), diff.WithGVKParser(c.cache.GetGVKParser()), diff.WithManager(manager))
		if err != nil {
			return nil, err
		}
		if all[way], err = show(compared, target == nil || live == nil); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// show returns the status of an object, whose difference is that from the stored object to the desired one.
func show(compared *diff.DiffResult, incomplete bool) (comparison, error) {
	if !compared.Modified {
		if incomplete {
			return comparison{Sync: "OutOfSync"}, nil
		}
		return comparison{Sync: "Synced"}, nil
	}
	patch, err := jsonpatch.CreateMergePatch(compared.NormalizedLive, compared.PredictedLive)
	if err != nil {
		return comparison{}, fmt.Errorf("describing a difference: %w", err)
	}
	return comparison{Sync: "OutOfSync", Difference: patch}, nil
}
