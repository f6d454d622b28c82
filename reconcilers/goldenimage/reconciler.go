package goldenimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/reconcilers/goldenimage/registry"
	"github.com/vmstencil/stencil/reconcilers/goldenimage/web"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	controllerName = "golden-images"
	fieldManager   = "stencil-golden-images"
	// AllNamespaces in Options.Namespaces stands for every namespace.
	AllNamespaces = "*"

	syncInterval = time.Second
	// cdiInterval is the delay until it is tried again while CDI is not installed.
	cdiInterval = 30 * time.Second

	// maximumNote and maximumMessage are the maximum lengths of an event's note, and of an error and a message in the status, in bytes.
	maximumNote    = 1 << 10
	maximumMessage = 1 << 10
	// pageSize is the number of DataVolumes that are listed at a time.
	pageSize = 250
)

var goldenImages = v1alpha1.GroupVersion.WithResource("goldenimages")

// Options are the dependencies of a Reconciler.
type Options struct {
	// Config is the manager's. DataSources, DataImportCrons and volumes are read and written as Account, a username that the manager may impersonate.
	Config  *rest.Config
	Account string
	// Namespaces are those in which the account has permissions; AllNamespaces stands for all.
	Namespaces []string
	// AllowedNetworks are private networks in which sources may be.
	AllowedNetworks []netip.Prefix
	// ClusterNetworks are networks of the cluster, in which no source is.
	ClusterNetworks []netip.Prefix
	// Templates are those with which channels test images, in dry runs by the manager if DryRun is set.
	Templates Templates
	DryRun    bool
	// Dependents and VirtualMachines are those that use DataSources.
	Dependents      Dependents
	VirtualMachines VirtualMachines
	Recorder        events.EventRecorder
	Registerer      prometheus.Registerer
	Logger          logr.Logger
}

// Reconciler reconciles GoldenImages.
type Reconciler struct {
	wake       *wake
	images     dynamic.Interface
	account    dynamic.Interface
	statuses   *statuswriter.Writer
	registry   *registry.Client
	web        *web.Client
	namespaces []string
	recorder   events.EventRecorder
	metrics    *metrics
	cluster    identity
	tests      tests
	usage      *usage
}

// New returns a Reconciler. It fails when no client can be made of the configuration, or if the metrics are already registered.
func New(o Options) (*Reconciler, error) {
	own := rest.CopyConfig(o.Config)
	// No client-side limit: the number of workers limits requests, and the API server has limits of its own.
	own.QPS = -1
	r := &Reconciler{namespaces: o.Namespaces, recorder: o.Recorder,
		registry: &registry.Client{Allowed: o.AllowedNetworks, Cluster: o.ClusterNetworks},
		web:      &web.Client{Allowed: o.AllowedNetworks, Cluster: o.ClusterNetworks},
	}
	var errs [6]error
	var partial metadata.Interface
	var served *discovery.DiscoveryClient
	r.images, errs[0] = dynamic.NewForConfig(own)
	r.account, errs[1] = dynamic.NewForConfig(powers.As(o.Config, o.Account))
	r.statuses, errs[2] = statuswriter.New(own)
	partial, errs[3] = metadata.NewForConfig(own)
	served, errs[4] = discovery.NewDiscoveryClientForConfig(own)
	r.metrics, errs[5] = newMetrics(o.Registerer)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making the reconciler of golden images: %w", err)
	}
	r.tests = tests{templates: o.Templates, results: map[types.NamespacedName]map[goldenimage.Test]tested{}}
	if o.DryRun {
		r.tests.client = r.images
	}
	r.wake = newWake(partial, served, o.Logger)
	r.wake.listen = r.tests.listen
	r.usage = &usage{
		templates: o.Dependents, vms: o.VirtualMachines, wake: r.wake, images: r.images, statuses: r.statuses, metrics: r.metrics,
		changed: workqueue.NewTyped[types.NamespacedName](),
	}
	return r, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.wake.synced() {
		return reconcile.Result{RequeueAfter: syncInterval}, nil
	}
	r.usage.soon(request.NamespacedName)
	image, err := read(ctx, r.images, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	if image == nil {
		r.metrics.forget(request.NamespacedName)
		r.tests.forget(request.NamespacedName)
		r.web.Forget(request.String())
		return reconcile.Result{}, nil
	}
	if reason, message := r.disabled(request.Namespace); reason != "" {
		if image.DeletionTimestamp != nil {
			// Without permissions or without CDI nothing can be given back, and the namespace could never be deleted.
			return reconcile.Result{}, r.finalizer(ctx, image, false)
		}
		status := *image.Status.DeepCopy()
		goldenimage.Set(&status, image.Generation, v1alpha1.ConditionUpToDate, metav1.ConditionUnknown, reason, message, metav1.Now())
		return reconcile.Result{RequeueAfter: cdiInterval}, r.writeStatus(ctx, image, status)
	}
	return r.reconcile(ctx, image)
}

// read reads a GoldenImage, nil if there is none.
func read(ctx context.Context, client dynamic.Interface, request reconcile.Request) (*v1alpha1.GoldenImage, error) {
	object, err := client.Resource(goldenImages).Namespace(request.Namespace).Get(ctx, request.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading GoldenImage %s: %w", request, err)
	}
	image := &v1alpha1.GoldenImage{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, image); err != nil {
		return nil, fmt.Errorf("decoding GoldenImage %s: %w", request, err)
	}
	return image, nil
}

// disabled returns why no image of a namespace is reconciled; empty if they are.
func (r *Reconciler) disabled(namespace string) (reason, message string) {
	if !slices.Contains(r.namespaces, namespace) && !slices.Contains(r.namespaces, AllNamespaces) {
		return goldenimage.ReasonNotEnabled, fmt.Sprintf("Golden images are not enabled in the namespace: add %s to the chart's value goldenImages.namespaces", namespace)
	}
	if r.wake.sources.Problem() != nil {
		return goldenimage.ReasonCDINotServed, "The cluster does not serve DataSources: install CDI"
	}
	return "", ""
}

func (r *Reconciler) reconcile(ctx context.Context, image *v1alpha1.GoldenImage) (reconcile.Result, error) {
	cluster, err := r.cluster.get(ctx, r.images)
	if err != nil {
		return reconcile.Result{}, err
	}
	var check *goldenimage.Check
	if due, is := goldenimage.NextCheck(image); is && !due.After(time.Now()) {
		check = r.check(ctx, image)
		result := "succeeded"
		if check.Err != nil {
			result = "failed"
		}
		r.metrics.checks.WithLabelValues(result).Inc()
	}
	s, err := r.gather(ctx, image)
	if err != nil {
		return reconcile.Result{}, err
	}
	s.Check, s.Cluster = check, cluster
	plan := goldenimage.Decide(s)
	if len(plan.Tests) > 0 {
		s.Tests = r.tests.run(ctx, image, plan.Status.History, plan.Tests)
		plan = goldenimage.Decide(s)
	}
	if plan.Finalizer {
		if err := r.finalizer(ctx, image, true); err != nil {
			return reconcile.Result{}, err
		}
	}
	status := plan.Status
	failure := r.act(ctx, image, plan.Actions)
	if failure != nil {
		status = goldenimage.Failed(image, plan, failure, metav1.Now())
	}
	if image.DeletionTimestamp == nil {
		if err := r.writeStatus(ctx, image, status); err != nil {
			return reconcile.Result{}, errors.Join(failure, err)
		}
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	for _, event := range plan.Events {
		if event.Reason == goldenimage.EventImported {
			r.metrics.imports.Inc()
		}
		r.event(image, event)
	}
	if !plan.Finalizer {
		return reconcile.Result{}, r.finalizer(ctx, image, false)
	}
	if plan.Again.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(time.Until(plan.Again), time.Second)}, nil
}

// act carries out the actions until one fails.
func (r *Reconciler) act(ctx context.Context, image *v1alpha1.GoldenImage, actions []goldenimage.Action) error {
	log := logf.FromContext(ctx)
	used, err := r.used(ctx, image.Namespace, actions)
	if err != nil {
		return err
	}
	for _, action := range actions {
		if action.Verb == goldenimage.DeleteUnused && used[action.Name] {
			continue
		}
		client := r.account.Resource(action.Resource).Namespace(image.Namespace)
		object := &unstructured.Unstructured{Object: action.Object}
		var err error
		switch action.Verb {
		case goldenimage.Create:
			_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
			if apierrors.IsAlreadyExists(err) {
				if err = nil; action.Resource == goldenimage.DataVolumes {
					err = errors.New("it exists, and was not made for this GoldenImage: delete it, or choose another dataSource")
				}
			}
		case goldenimage.Apply:
			_, err = client.Apply(ctx, action.Name, object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		case goldenimage.Patch:
			var text []byte
			if text, err = json.Marshal(action.Object); err == nil {
				_, err = client.Patch(ctx, action.Name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: fieldManager})
			}
		case goldenimage.Delete, goldenimage.DeleteUnused:
			err = client.Delete(ctx, action.Name, metav1.DeleteOptions{})
		}
		if gone := apierrors.IsNotFound(err) && action.Verb != goldenimage.Create && action.Verb != goldenimage.Apply; err != nil && !gone {
			return fmt.Errorf("%s %s %s/%s: %w", action.Verb, action.Resource.Resource, image.Namespace, action.Name, err)
		}
		log.V(1).Info("written", "verb", action.Verb, "resource", action.Resource.Resource, "object", action.Name)
	}
	return nil
}

// used returns the volumes of a namespace that DataVolumes are being cloned from, in any namespace, if an action depends on it.
func (r *Reconciler) used(ctx context.Context, namespace string, actions []goldenimage.Action) (map[string]bool, error) {
	used := map[string]bool{}
	if !slices.ContainsFunc(actions, func(a goldenimage.Action) bool { return a.Verb == goldenimage.DeleteUnused }) {
		return used, nil
	}
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := r.images.Resource(goldenimage.DataVolumes).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing DataVolumes, of which some may be cloned from old images: %w", err)
		}
		for i := range page.Items {
			source := machine.MapAt(page.Items[i].Object, "spec", "source")
			phase := machine.StringAt(machine.MapAt(page.Items[i].Object, "status"), "phase")
			for _, kind := range []string{"pvc", "snapshot"} {
				if from := machine.MapAt(source, kind); machine.StringAt(from, "namespace") == namespace && phase != "Succeeded" {
					used[machine.StringAt(from, "name")] = true
				}
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return used, nil
		}
	}
}

// finalizer adds the finalizer, or removes it.
func (r *Reconciler) finalizer(ctx context.Context, image *v1alpha1.GoldenImage, wanted bool) error {
	has := slices.Contains(image.Finalizers, v1alpha1.FinalizerGoldenImage)
	if has == wanted || wanted && image.DeletionTimestamp != nil {
		return nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(image.Finalizers), func(one string) bool { return one == v1alpha1.FinalizerGoldenImage })
	if wanted {
		finalizers = append(finalizers, v1alpha1.FinalizerGoldenImage)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": image.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("encoding the finalizers of GoldenImage %s/%s: %w", image.Namespace, image.Name, err)
	}
	_, err = r.images.Resource(goldenImages).Namespace(image.Namespace).Patch(ctx, image.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the finalizers of GoldenImage %s/%s: %w", image.Namespace, image.Name, err)
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, image *v1alpha1.GoldenImage, status v1alpha1.GoldenImageStatus) error {
	name := types.NamespacedName{Namespace: image.Namespace, Name: image.Name}
	status.CheckError = excerpt.Of(status.CheckError, maximumMessage)
	for i := range status.Conditions {
		status.Conditions[i].Message = excerpt.Of(status.Conditions[i].Message, maximumMessage)
	}
	r.metrics.observe(name, &status)
	// Another writer has the usage.
	stored := image.Status
	stored.Usage, status.Usage = nil, nil
	if equality.Semantic.DeepEqual(stored, status) {
		return nil
	}
	return r.statuses.Apply(ctx, statuswriter.GoldenImage(image), fieldManager, status)
}

func (r *Reconciler) event(image *v1alpha1.GoldenImage, event goldenimage.Event) {
	kind := corev1.EventTypeNormal
	if event.Warning {
		kind = corev1.EventTypeWarning
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: image.Name, UID: image.UID}}
	about.SetGroupVersionKind(schema.GroupVersionKind{Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "GoldenImage"})
	// Events of one reason and action about the same objects are counted as one.
	var related runtime.Object
	if event.Volume != "" {
		volume := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: event.Volume}}
		volume.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		related = volume
	}
	r.recorder.Eventf(about, related, kind, event.Reason, "KeepFresh", "%s", excerpt.Of(event.Message, maximumNote))
}
