package lending

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	diskcache "github.com/vmstencil/stencil/cache/disks"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/powers"
)

const (
	controllerName = "lending"
	fieldManager   = "stencil-disks"
	kindVM         = "VirtualMachine"

	// syncInterval is the delay until a request is tried again while a cache is not synced, and sourceInterval while a
	// source does not exist.
	syncInterval   = time.Second
	sourceInterval = 5 * time.Second
	// permissionInterval is the delay until a permission is checked again that is missing.
	permissionInterval = time.Minute

	// maximumNote is the maximum length of an event's note in bytes.
	maximumNote = 1 << 10
)

var (
	virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}
	dataVolumes     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
)

// Options are the dependencies of a Reconciler.
type Options struct {
	// Config is the manager's. DataVolumes are created as Account, a username that the manager may impersonate.
	Config     *rest.Config
	Account    string
	Templates  *templatecache.Cache
	Disks      *diskcache.Cache
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
	Logger     logr.Logger
}

// Reconciler reconciles VirtualMachines whose disks are lent.
type Reconciler struct {
	wake      *wake
	vms       dynamic.Interface
	disks     *disks.APIServer
	lender    dynamic.Interface
	templates *templatecache.Cache
	// permissions of users when a disk is lent.
	permissions powers.Permissions
	recorder    events.EventRecorder
	results     *prometheus.CounterVec
}

// New returns a Reconciler. It fails when no client can be made of the configuration, or if the metrics are already registered.
func New(o Options) (*Reconciler, error) {
	own := rest.CopyConfig(o.Config)
	// No client-side limit: the number of workers limits requests, and the API server has limits of its own.
	own.QPS = -1
	r := &Reconciler{templates: o.Templates, recorder: o.Recorder, results: newResults()}
	var errs [5]error
	var served *discovery.DiscoveryClient
	r.vms, errs[0] = dynamic.NewForConfig(own)
	r.lender, errs[1] = dynamic.NewForConfig(powers.As(o.Config, o.Account))
	r.disks, errs[2] = disks.NewAPIServer(own)
	served, errs[3] = discovery.NewDiscoveryClientForConfig(own)
	r.permissions, errs[4] = powers.Checker(own)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making the clients of lent disks: %w", err)
	}
	r.wake = newWake(wake{templates: o.Templates, disks: o.Disks, dynamic: r.vms, served: served, log: o.Logger})
	if err := o.Registerer.Register(r.results); err != nil {
		return nil, fmt.Errorf("registering the metrics of lent disks: %w", err)
	}
	return r, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	switch {
	case !r.wake.disks.Synced() || !r.templates.Synced():
		return reconcile.Result{RequeueAfter: syncInterval}, nil
	case !r.wake.needs(request.NamespacedName):
		return reconcile.Result{}, nil
	}
	s, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	return r.apply(ctx, s, decide(s))
}

func (r *Reconciler) apply(ctx context.Context, s *state, p plan) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	var failures []error
	for _, dataVolume := range p.create {
		_, err := r.lender.Resource(dataVolumes).Namespace(dataVolume.GetNamespace()).Create(ctx, dataVolume, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case err == nil:
			log.Info("disk lent", "dataVolume", dataVolume.GetName(), "template", s.record.Namespace+"/"+s.record.Name)
			r.results.WithLabelValues(resultLent).Inc()
			r.event(s, corev1.EventTypeNormal, "DiskLent", "created DataVolume %s, whose content VirtualMachineTemplate %s/%s lends", dataVolume.GetName(), s.record.Namespace, s.record.Name)
		case apierrors.IsAlreadyExists(err):
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		default:
			r.results.WithLabelValues(resultFailed).Inc()
			r.event(s, corev1.EventTypeWarning, "DiskNotLent", "could not create DataVolume %s: %v", dataVolume.GetName(), err)
			failures = append(failures, fmt.Errorf("creating DataVolume %s/%s: %w", dataVolume.GetNamespace(), dataVolume.GetName(), err))
		}
	}
	for _, each := range p.denials {
		r.results.WithLabelValues(resultDenied).Inc()
		r.event(s, corev1.EventTypeWarning, "DiskNotLent", "KubeVirt must not create DataVolume %s, and it is not lent: %s. To permit KubeVirt to copy from the namespace: %s",
			each.disk.Name, each.reason, each.grant(s.vm.GetNamespace()))
	}
	if len(failures) == 0 && p.waits != "" {
		log.V(1).Info("source is missing", "reason", p.waits)
		return reconcile.Result{RequeueAfter: sourceInterval}, nil
	}
	if len(failures) == 0 && s.revoked {
		return reconcile.Result{RequeueAfter: permissionInterval}, nil
	}
	return reconcile.Result{}, errors.Join(failures...)
}

func (r *Reconciler) event(s *state, kind, reason, note string, arguments ...any) {
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.vm.GetNamespace(), Name: s.vm.GetName(), UID: s.vm.GetUID()}}
	about.SetGroupVersionKind(virtualMachines.GroupVersion().WithKind(kindVM))
	r.recorder.Eventf(about, nil, kind, reason, "Lend", "%s", excerpt.Of(fmt.Sprintf(note, arguments...), maximumNote))
}
