package uninstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/preflight"
	"github.com/vmstencil/stencil/reconcilers/audit"
	"github.com/vmstencil/stencil/reconcilers/capture"
)

const (
	fieldManager = "stencil-uninstall"
	// pageSize is the number of objects that are listed at a time.
	pageSize = 250
	// message of the conditions of requests that end.
	message = "Stencil was uninstalled before the request was finished: create a new request when it is installed again"
)

var (
	requests        = v1beta1.GroupVersion.WithResource("virtualmachinetemplaterequests")
	goldenImages    = v1alpha1.GroupVersion.WithResource("goldenimages")
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
)

// Options configure Run.
type Options struct {
	Config *rest.Config
	// Lease of the leader of the managers.
	Lease types.NamespacedName
	// Hold is the time for which the Lease is held after Run, in whole seconds.
	Hold time.Duration
	// DryRun only reports what would be done.
	DryRun bool
	// Report receives each Step, when it is done.
	Report func(Step)
}

// Step is what was done with an object, or would be done in a dry run.
type Step struct {
	// Action is one word, such as ended.
	Action string `json:"action"`
	Object string `json:"object"`
	Note   string `json:"note,omitempty"`
}

// Run does all steps. If one fails it continues with the others, and returns all errors.
func Run(ctx context.Context, o Options) error {
	config := rest.CopyConfig(o.Config)
	// No client-side limit: there is one request at a time.
	config.QPS = -1
	var errs [4]error
	r := &run{Options: o}
	var leases *coordinationclient.CoordinationV1Client
	var cluster *capture.Cluster
	r.client, errs[0] = dynamic.NewForConfig(config)
	leases, errs[1] = coordinationclient.NewForConfig(config)
	if cluster, errs[2] = capture.NewCluster(config); errs[2] == nil {
		r.captures, errs[3] = capture.New(capture.Options{Cluster: cluster, Registerer: prometheus.NewRegistry()})
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	r.lock = &lock{client: leases.Leases(o.Lease.Namespace), name: o.Lease, hold: o.Hold, now: time.Now}
	return r.run(ctx)
}

// run is the state of Run.
type run struct {
	Options
	client   dynamic.Interface
	captures *capture.Reconciler
	lock     *lock
}

func (r *run) run(ctx context.Context) error {
	if err := r.stop(ctx); err != nil {
		return err
	}
	failures := []error{
		r.captured(ctx),
		r.each(ctx, goldenImages, "", r.release),
		r.each(ctx, audit.ReportResource, audit.ReportSelector, r.deleteReport),
		r.each(ctx, virtualMachines, "", r.pending),
	}
	if !r.DryRun {
		failures = append(failures, r.lock.extend(ctx, true))
	}
	return errors.Join(failures...)
}

// stop takes the Lease and waits until the leader has stopped.
func (r *run) stop(ctx context.Context) error {
	object := "Lease " + r.Lease.String()
	if r.DryRun {
		r.Report(Step{"stop", object, fmt.Sprintf("managers reconcile nothing until %s after the end", r.Hold)})
		return nil
	}
	from, wait, err := r.lock.take(ctx)
	if err != nil {
		return err
	}
	note := "no manager led"
	switch {
	case from == Identity:
		note = "an earlier run has it"
	case from != "":
		note = from + " led"
	}
	if wait > 0 {
		note += fmt.Sprintf("; waiting %s until the leader has stopped", wait.Round(time.Second))
	}
	r.Report(Step{"stopped", object, note})
	over, renewals := time.NewTimer(wait), time.NewTicker(renewal)
	defer over.Stop()
	defer renewals.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			return nil
		case <-renewals.C:
			// The leader exits, and the kubelet starts it again: without renewals that would take the Lease.
			if err := r.lock.extend(ctx, true); err != nil {
				return err
			}
		}
	}
}

// each calls do with every object that a label selector selects; with none if the API server does not serve the kind.
func (r *run) each(ctx context.Context, resource schema.GroupVersionResource, selector string, do func(context.Context, *unstructured.Unstructured) error) error {
	var failures []error
	for options := (metav1.ListOptions{LabelSelector: selector, Limit: pageSize}); ; {
		page, err := r.client.Resource(resource).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			return errors.Join(failures...)
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			// The list took too long. Objects that are done are skipped.
			options.Continue = ""
			continue
		case err != nil:
			return errors.Join(append(failures, fmt.Errorf("listing %s: %w", resource.GroupResource(), err))...)
		}
		for i := range page.Items {
			if !r.DryRun {
				if err := r.lock.extend(ctx, false); err != nil {
					return errors.Join(append(failures, err)...)
				}
			}
			if err := do(ctx, &page.Items[i]); err != nil {
				failures = append(failures, err)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return errors.Join(failures...)
		}
	}
}

// captured has the requests end, if they are Stencil's. KubeVirt's own template component has the same kind and the same finalizer.
func (r *run) captured(ctx context.Context) error {
	definition, err := r.client.Resource(preflight.Definitions).Get(ctx, requests.GroupResource().String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading who owns the definition of %s: %w", requests.GroupResource(), err)
	case definition.GetLabels()[installation.LabelManagedBy] == installation.ByOperator:
		return nil
	}
	return r.each(ctx, requests, "", r.conclude)
}

func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

// conclude has a VirtualMachineTemplateRequest end.
func (r *run) conclude(ctx context.Context, object *unstructured.Unstructured) error {
	var request v1beta1.VirtualMachineTemplateRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &request); err != nil {
		return fmt.Errorf("decoding %s: %w", nameOf(object), err)
	}
	if capture.IsConcluded(&request) {
		return nil
	}
	if r.DryRun {
		r.Report(Step{"end", nameOf(object), "finished if it has a template"})
		return nil
	}
	result, err := r.captures.Conclude(ctx, types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, v1beta1.ReasonUninstalled, message)
	if err != nil {
		return fmt.Errorf("ending %s: %w", nameOf(object), err)
	}
	if result != capture.Untouched {
		r.Report(Step{string(result), nameOf(object), ""})
	}
	return nil
}

// release removes the finalizer of a GoldenImage.
func (r *run) release(ctx context.Context, object *unstructured.Unstructured) error {
	has := func() bool { return slices.Contains(object.GetFinalizers(), v1alpha1.FinalizerGoldenImage) }
	if !has() {
		return nil
	}
	step := Step{Action: "released", Object: nameOf(object)}
	if object.GetDeletionTimestamp() != nil {
		step.Note = "it was being deleted: its DataSources and volumes may be left"
	}
	if r.DryRun {
		step.Action = "release"
		r.Report(step)
		return nil
	}
	client := r.client.Resource(goldenImages).Namespace(object.GetNamespace())
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		finalizers := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(each string) bool { return each == v1alpha1.FinalizerGoldenImage })
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": object.GetResourceVersion()}})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if apierrors.IsConflict(err) {
			current, again := client.Get(ctx, object.GetName(), metav1.GetOptions{})
			if again != nil {
				return again
			}
			object = current
		}
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer of %s: %w", nameOf(object), err)
	}
	r.Report(step)
	return nil
}

func (r *run) deleteReport(ctx context.Context, object *unstructured.Unstructured) error {
	if r.DryRun {
		r.Report(Step{"delete", nameOf(object), ""})
		return nil
	}
	err := r.client.Resource(audit.ReportResource).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", nameOf(object), err)
	}
	r.Report(Step{"deleted", nameOf(object), ""})
	return nil
}

// pending reports a VirtualMachine of which objects have not been created.
func (r *run) pending(_ context.Context, object *unstructured.Unstructured) error {
	if _, has := object.GetAnnotations()[contract.AnnotationPendingObjects]; has {
		r.Report(Step{"warning", nameOf(object), "objects of its template do not exist, and without Stencil it starts without them: stop it, or delete it"})
	}
	return nil
}
