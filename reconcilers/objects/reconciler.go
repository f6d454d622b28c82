package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/internal/powers"
)

const (
	controllerName = "objects"
	fieldManager   = objects.FieldManager
	kindVM         = "VirtualMachine"

	// applyTimeout is the timeout of the creation of all objects of a VirtualMachine. A manager that is stopped does not interrupt it: whether an
	// object was created, of which the response is lost, cannot be read for all kinds.
	applyTimeout = 20 * time.Second

	// syncInterval is the delay until a request is tried again while the keys are not synced.
	syncInterval = time.Second

	// maximumNames is the maximum number of objects that an event names.
	maximumNames = 8

	// maximumNote is the maximum length of an event's note in bytes.
	maximumNote = 1 << 10
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// Keys are the stored keys, as cached.
type Keys interface {
	// Synced reports whether the Secret has been read, or does not exist.
	Synced() bool
	// Keys returns the keys; none if the Secret does not exist. They must not be modified.
	Keys() objects.Keys
	// Changed returns a channel that is closed by the next change.
	Changed() <-chan struct{}
}

// Options are the dependencies of a Reconciler.
type Options struct {
	// Config is the manager's. Objects are created as Account, a username that the manager may impersonate.
	Config     *rest.Config
	Account    string
	Keys       Keys
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
	Logger     logr.Logger
}

// Reconciler reconciles VirtualMachines whose objects do not exist yet.
type Reconciler struct {
	wake     *wake
	vms      dynamic.Interface
	creator  dynamic.Interface
	keys     Keys
	recorder events.EventRecorder
	results  *prometheus.CounterVec

	// attempts are the objects that this process has created, or of whose creation the response was lost, and that a stored annotation may still
	// contain, by VirtualMachine. It makes a retry recognize them, also where they cannot be read.
	mutex    sync.Mutex
	attempts map[types.NamespacedName]attempts
}

// New returns a Reconciler. It fails when no client can be made of the configuration, or if the metrics are already registered.
func New(o Options) (*Reconciler, error) {
	own := rest.CopyConfig(o.Config)
	// No client-side limit: the number of workers limits requests, and the API server has limits of its own.
	own.QPS = -1
	r := &Reconciler{keys: o.Keys, recorder: o.Recorder, results: newResults(), attempts: map[types.NamespacedName]attempts{}}
	var errs [3]error
	var served *discovery.DiscoveryClient
	r.vms, errs[0] = dynamic.NewForConfig(own)
	r.creator, errs[1] = dynamic.NewForConfig(powers.As(o.Config, o.Account))
	served, errs[2] = discovery.NewDiscoveryClientForConfig(own)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making the clients of objects: %w", err)
	}
	r.wake = newWake(wake{dynamic: r.vms, served: served, log: o.Logger})
	if err := o.Registerer.Register(r.results); err != nil {
		return nil, fmt.Errorf("registering the metrics of objects: %w", err)
	}
	return r, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.keys.Synced() {
		return reconcile.Result{RequeueAfter: syncInterval}, nil
	}
	s := &state{keys: r.keys.Keys()}
	vm, err := r.vms.Resource(virtualMachines).Namespace(request.Namespace).Get(ctx, request.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.forget(request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading VirtualMachine %s: %w", request, err)
	default:
		s.vm = vm
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	return reconcile.Result{}, r.apply(ctx, s, decide(s))
}

func (r *Reconciler) apply(ctx context.Context, s *state, p plan) error {
	switch {
	case p.problem != "":
		r.results.WithLabelValues(resultFailed).Inc()
		r.event(s, corev1.EventTypeWarning, "ObjectsUnreadable", "the objects of its template cannot be created, and it does not start: %s; delete it and create it again", p.problem)
		// Another replica may have encrypted them with a key that this one has not received yet.
		return errors.New(p.problem)
	case len(p.create) == 0:
		return nil
	}
	left := p.pending
	left.Objects = nil
	var names, problems []string
	var failures []error
	for i, each := range p.create {
		isNew, err := r.create(ctx, s, each)
		switch {
		case err == nil:
			if isNew {
				names = append(names, each.name())
			}
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil
		default:
			left.Objects = append(left.Objects, p.pending.Objects[i])
			r.results.WithLabelValues(resultFailed).Inc()
			var exists existsError
			reason := objects.Explain(err)
			if errors.As(err, &exists) {
				reason = exists.Error()
			}
			problems = append(problems, each.name()+": "+reason)
		}
	}
	if len(problems) > 0 {
		// Events that differ in their notes only are counted as one.
		r.event(s, corev1.EventTypeWarning, "ObjectsNotCreated", "objects of its template cannot be created, and it does not start: %s", strings.Join(problems, "; "))
		failures = append(failures, fmt.Errorf("creating objects of a VirtualMachine: %s", strings.Join(problems, "; ")))
	}
	if len(names) > 0 {
		r.event(s, corev1.EventTypeNormal, "ObjectsCreated", "created %s", excerpt.List(names, maximumNames, "objects"))
	}
	if err := r.update(ctx, s, p, left); err != nil {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// attempt is the result of an attempt to create an object.
type attempt int

const (
	created attempt = iota + 1
	// lost is an attempt without a response.
	lost
)

// attempts are those for one VirtualMachine.
type attempts struct {
	vm      types.UID
	objects map[string]attempt
}

// create creates an object, unless this or another process has created it for the VirtualMachine.
func (r *Reconciler) create(ctx context.Context, s *state, o object) (isNew bool, err error) {
	key := o.resource.Resource + "." + o.resource.Group + "/" + o.manifest.GetName()
	before := r.attempted(s, key)
	if before == created {
		return false, nil
	}
	client := r.creator.Resource(o.resource).Namespace(s.vm.GetNamespace())
	_, err = client.Create(ctx, o.manifest, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		r.results.WithLabelValues(resultCreated).Inc()
		r.remember(s, key, created)
		logf.FromContext(ctx).Info("object created", "kind", o.manifest.GetKind(), "object", o.manifest.GetName())
		return true, nil
	case objects.Temporary(err) && !apierrors.IsTooManyRequests(err) && !utilnet.IsConnectionRefused(err):
		r.remember(s, key, lost)
		return false, err
	case !apierrors.IsAlreadyExists(err):
		return false, err
	}
	found, readErr := client.Get(ctx, o.manifest.GetName(), metav1.GetOptions{})
	switch {
	case readErr == nil && s.own(found):
		return false, nil
	case readErr == nil:
		return false, existsError(fmt.Sprintf("it exists already and was not created for this VirtualMachine; delete it (kubectl delete %s %s -n %s), or create the VirtualMachine with another name",
			o.resource.GroupResource(), o.manifest.GetName(), s.vm.GetNamespace()))
	case apierrors.IsForbidden(readErr) && before == lost:
		// It did not exist when the VirtualMachine was admitted, nor when the lost attempt was made: that attempt has created it.
		r.remember(s, key, created)
		return false, nil
	case apierrors.IsForbidden(readErr):
		return false, existsError(fmt.Sprintf("it exists already, and Stencil may not read for whom it was created; delete it (kubectl delete %s %s -n %s), or create the VirtualMachine with another name",
			o.resource.GroupResource(), o.manifest.GetName(), s.vm.GetNamespace()))
	default:
		return false, readErr
	}
}

// update stores in the VirtualMachine which objects are left.
func (r *Reconciler) update(ctx context.Context, s *state, p plan, left objects.Pending) error {
	patch := s.finished()
	if len(left.Objects) == len(p.pending.Objects) {
		return nil
	}
	if len(left.Objects) > 0 {
		var err error
		if patch, err = s.progressed(left); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the patch of a VirtualMachine: %w", err)
	}
	_, err = r.creator.Resource(virtualMachines).Namespace(s.vm.GetNamespace()).Patch(ctx, s.vm.GetName(), types.JSONPatchType, raw, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("updating VirtualMachine %s/%s, whose objects were created: %w", s.vm.GetNamespace(), s.vm.GetName(), err)
	}
	r.forget(s.name())
	return nil
}

func (r *Reconciler) attempted(s *state, key string) attempt {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if of := r.attempts[s.name()]; of.vm == s.vm.GetUID() {
		return of.objects[key]
	}
	return 0
}

func (r *Reconciler) remember(s *state, key string, result attempt) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.attempts[s.name()].vm != s.vm.GetUID() {
		r.attempts[s.name()] = attempts{vm: s.vm.GetUID(), objects: map[string]attempt{}}
	}
	r.attempts[s.name()].objects[key] = result
}

func (r *Reconciler) forget(vm types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.attempts, vm)
}

// existsError is why an object that exists is not taken over. It contains no values.
type existsError string

func (e existsError) Error() string { return string(e) }

func (r *Reconciler) event(s *state, kind, reason, note string, arguments ...any) {
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: s.vm.GetNamespace(), Name: s.vm.GetName(), UID: s.vm.GetUID()}}
	about.SetGroupVersionKind(virtualMachines.GroupVersion().WithKind(kindVM))
	r.recorder.Eventf(about, nil, kind, reason, "Create", "%s", excerpt.Of(fmt.Sprintf(note, arguments...), maximumNote))
}
