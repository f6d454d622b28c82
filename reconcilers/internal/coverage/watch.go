package coverage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// Options are what a Watch needs.
type Options struct {
	// Config, HTTPClient and Mapper are those of the manager.
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	// OwnNamespace is Stencil's own namespace, which no approval selects.
	OwnNamespace string
}

// Watch caches the approvals and the namespaces. It is a manager.Runnable that runs on the leader.
type Watch struct {
	cache    cache.Cache
	excluded []string

	mutex    sync.Mutex
	compiled map[types.UID]*approval.Approval

	selections selections
}

// New returns a Watch that has not started.
func New(options Options) (*Watch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("filling the scheme: %w", err)
	}
	watches, err := cache.New(options.Config, cache.Options{
		HTTPClient:                  options.HTTPClient,
		Mapper:                      options.Mapper,
		Scheme:                      scheme,
		ByObject:                    map[client.Object]cache.ByObject{&v1alpha1.TemplateApproval{}: {}, namespaceMetadata(): {}},
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the watches of approvals and namespaces: %w", err)
	}
	w := &Watch{cache: watches, compiled: map[types.UID]*approval.Approval{}}
	if options.OwnNamespace != "" {
		w.excluded = []string{options.OwnNamespace}
	}
	return w, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// Start watches until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	if err := w.cache.Start(ctx); err != nil {
		return fmt.Errorf("watching approvals and namespaces: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *Watch) NeedLeaderElection() bool { return true }

// Snapshot returns the state of the watches. It returns an error before the first lists have arrived.
func (w *Watch) Snapshot(ctx context.Context) (Snapshot, error) {
	snapshot := Snapshot{cached: &w.selections}
	var err error
	if snapshot.Approvals, err = w.Approvals(ctx); err != nil {
		return snapshot, err
	}
	// No caller changes the objects of the cache, and there may be thousands of namespaces.
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := w.cache.List(ctx, namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return snapshot, fmt.Errorf("listing the namespaces: %w", err)
	}
	for i := range namespaces.Items {
		item := &namespaces.Items[i]
		snapshot.Namespaces = append(snapshot.Namespaces, Namespace{
			Name:            item.Name,
			Labels:          item.Labels,
			ResourceVersion: item.ResourceVersion,
			Approvals:       item.Annotations[v1alpha1.AnnotationApprovals],
			Terminating:     item.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(snapshot.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return snapshot, nil
}

// Approvals returns the approvals, sorted by name. It returns an error before the first list has arrived.
func (w *Watch) Approvals(ctx context.Context) ([]Approval, error) {
	approvals := &v1alpha1.TemplateApprovalList{}
	if err := w.cache.List(ctx, approvals, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the approvals: %w", err)
	}
	return w.compile(approvals.Items), nil
}

// compile compiles approvals that are new or have changed. Compiling takes about a millisecond for each expression.
func (w *Watch) compile(objects []v1alpha1.TemplateApproval) []Approval {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	approvals := make([]Approval, len(objects))
	present := make(map[types.UID]*approval.Approval, len(objects))
	for i := range objects {
		object := &objects[i]
		compiled := w.compiled[object.UID]
		if compiled == nil || compiled.Generation() != object.Generation {
			compiled = Compile(object, w.excluded...)
		}
		present[object.UID] = compiled
		approvals[i] = Approval{compiled, object}
	}
	w.compiled = present
	slices.SortFunc(approvals, func(a, b Approval) int { return cmp.Compare(a.Name(), b.Name()) })
	return approvals
}

// Compile compiles an approval; an invalid one is closed. It does not select the namespaces in excluded.
func Compile(object *v1alpha1.TemplateApproval, excluded ...string) *approval.Approval {
	compiled, err := approval.Compile(object, approval.Excluding(excluded...))
	if err != nil {
		return approval.Closed(object, err, approval.Excluding(excluded...))
	}
	return compiled
}
