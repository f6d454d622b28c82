package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/transfer"
)

// errKilled is the error of each write of a manager that is killed.
var errKilled = errors.New("killed")

// world is a fake API server with simulations of CDI, nodes and movers, and one object that is reconciled.
type world struct {
	t      *testing.T
	client client.WithWatch
	// key and uid of the object.
	key    types.NamespacedName
	uid    types.UID
	clock  *testingclock.FakePassiveClock
	events *events.FakeRecorder
	// tick is the shortest time between two reconciliations.
	tick time.Duration
	// template is the condition Sealed that was written to the template.
	template *metav1.Condition
	settings Settings

	writes []string
	// killAt is the number of the write at which the manager is killed: after the write if done is true, before it otherwise. It writes nothing afterwards.
	killAt int
	done   bool
	// denied returns an error for a creation before it happens.
	denied func(kind string) error
	// copied is the status of DataVolumes, mover what the mover reports, job the status of Jobs. inspector is what one reports that inspects a package.
	copied    map[string]any
	mover     transfer.State
	inspector transfer.State
	job       batchv1.JobStatus
	// leads returns what the source of a disk leads to. By default each exists, and leads to itself.
	leads func(disks.Source) disks.Resolved
	// revoked is an action that the user ada may not do. She may do all others, and other users none.
	revoked string
	// released counts the movers that were acknowledged.
	released int
}

func (w *world) state(_ context.Context, _ *identity, ip string) (*transfer.State, error) {
	if ip == inspectorIP {
		return &w.inspector, nil
	}
	return &w.mover, nil
}

// Resolve implements powers.Resolver.
func (w *world) Resolve(_ context.Context, source disks.Source) (disks.Resolved, error) {
	if w.leads != nil {
		return w.leads(source), nil
	}
	return disks.Resolved{Source: source, Found: &metav1.ObjectMeta{}}, nil
}

// May implements powers.Actions.
func (w *world) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	return user.Username == "ada" && action.String() != w.revoked, nil
}

func (w *world) acknowledge(context.Context, *identity, string) error {
	w.released++
	return nil
}

// newWorld returns a world with these objects, the first of which is reconciled.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		t: t, key: client.ObjectKeyFromObject(objects[0]), uid: objects[0].GetUID(), clock: testingclock.NewFakePassiveClock(capturedAt.Time), events: events.NewFakeRecorder(100), tick: time.Second, killAt: -1,
		settings: Settings{Namespace: "stencil-system", Image: "mover", MaxDisks: 64, MaxBytes: 1 << 40, Limit: 1, ExamineCaptures: true},
		copied:   map[string]any{"phase": "Succeeded"}, mover: transfer.State{Phase: transfer.Succeeded, Seal: unsealedRoot},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, storagev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"DataVolume", "CDIConfig"} {
		scheme.AddKnownTypeWithName(cdi.WithKind(kind), &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(cdi.WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&v1beta1.VirtualMachineTemplateRequest{}, &v1beta1.VirtualMachineTemplateImport{}, &v1beta1.VirtualMachineTemplateExport{}, &batchv1.Job{}, &corev1.Pod{},
	).WithObjects(objects...).Build()
	return w
}

// guarded is the client of a manager: its writes are counted.
func (w *world) guarded() client.WithWatch {
	killed := false
	write := func(name string, do func() error) error {
		if killed {
			return errKilled
		}
		n := len(w.writes)
		w.writes = append(w.writes, name)
		if n != w.killAt {
			return do()
		}
		if killed = true; w.done {
			if err := do(); err != nil {
				w.t.Errorf("write %d, %s, failed: %v", n, name, err)
			}
		}
		return errKilled
	}
	kindOf := func(object client.Object) string {
		gvk, err := w.client.GroupVersionKindFor(object)
		if err != nil {
			w.t.Fatal(err)
		}
		return gvk.Kind
	}
	return interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if w.denied != nil {
				if err := w.denied(kindOf(object)); err != nil {
					return err
				}
			}
			// Creations of what exists are no writes.
			if stored, _ := object.DeepCopyObject().(client.Object); c.Get(ctx, client.ObjectKeyFromObject(object), stored) == nil {
				return c.Create(ctx, object, o...)
			}
			return write("create "+kindOf(object), func() error {
				object.SetUID(types.UID(kindOf(object) + "-" + object.GetName()))
				return c.Create(ctx, object, o...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			// Deletions of what does not exist are no writes.
			if apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object)) {
				return nil
			}
			return write("delete "+kindOf(object), func() error { return c.Delete(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			return write("patch "+kindOf(object), func() error { return c.Patch(ctx, object, patch, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			return write("patch "+kindOf(object)+" "+sub, func() error { return c.SubResource(sub).Patch(ctx, object, patch, o...) })
		},
	})
}

// manager is a new process that examines captures.
func (w *world) manager() *Captures { return &Captures{w.runner()} }

// runner is a new process.
func (w *world) runner() *runner {
	w.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var written v1beta1.VirtualMachineTemplate
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil || r.URL.Path != "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplates/"+w.key.Name+"/status" {
			w.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		w.template = &written.Status.Conditions[0]
		stored := &v1beta1.VirtualMachineTemplate{}
		if err := w.client.Get(r.Context(), w.key, stored); err != nil {
			w.t.Error(err)
		}
		stored.Status.Conditions = written.Status.Conditions
		if err := w.client.Update(r.Context(), stored); err != nil {
			w.t.Error(err)
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte("{}"))
	}))
	w.t.Cleanup(server.Close)
	statuses, err := statuswriter.New(&rest.Config{Host: server.URL})
	if err != nil {
		w.t.Fatal(err)
	}
	own := w.guarded()
	waiting := &slots{limit: w.settings.Limit, perNamespace: w.settings.Limit, held: map[place]bool{}, waiting: map[place]time.Time{}, recover: func(ctx context.Context) ([]place, error) { return inProgress(ctx, own) }}
	m, err := newMetrics(prometheus.NewRegistry(), waiting.counts)
	if err != nil {
		w.t.Fatal(err)
	}
	return &runner{
		manager: own, cluster: own, permissions: w, sources: w, keys: &keys{key: make([]byte, keySize)}, movers: w, slots: waiting, statuses: statuses, settings: w.settings,
		recorder: w.events, metrics: m, clock: w.clock,
	}
}

// inspectorIP is the address of a mover that inspects a package.
const inspectorIP = "192.0.2.2"

// others are CDI, which copies disks, and the node, which runs movers.
func (w *world) others() {
	w.t.Helper()
	ctx := w.t.Context()
	copies := &unstructured.UnstructuredList{}
	copies.SetGroupVersionKind(cdi.WithKind("DataVolumeList"))
	jobs := &batchv1.JobList{}
	if err := errors.Join(w.client.List(ctx, copies, client.HasLabels{v1beta1.LabelTransferUID}), w.client.List(ctx, jobs)); err != nil {
		w.t.Fatal(err)
	}
	for i := range copies.Items {
		each := &copies.Items[i]
		each.Object["status"] = w.copied
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: each.GetName()}}
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if err := errors.Join(w.client.Update(ctx, each), client.IgnoreAlreadyExists(w.client.Create(ctx, claim))); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range jobs.Items {
		each := &jobs.Items[i]
		each.Status = w.job
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: each.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: each.Name}}}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(each, batchv1.SchemeGroupVersion.WithKind("Job"))}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.0.2.1"}
		if strings.HasSuffix(each.Name, inspection) {
			pod.Status.PodIP = inspectorIP
		}
		if err := errors.Join(w.client.Status().Update(ctx, each), client.IgnoreAlreadyExists(w.client.Create(ctx, pod))); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run reconciles until nothing is due, or so many times, and returns the last error. Time passes as the results say.
func (w *world) run(c reconcile.Reconciler, times int) (err error) {
	w.t.Helper()
	for range times {
		var result reconcile.Result
		result, err = c.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: w.key})
		if errors.Is(err, errKilled) {
			return err
		}
		if err == nil && result == (reconcile.Result{}) {
			return nil
		}
		w.clock.SetTime(w.clock.Now().Add(max(result.RequeueAfter, w.tick)))
		w.others()
	}
	return err
}

// left lists what exists only for the transfer.
func (w *world) left() (names []string) {
	w.t.Helper()
	for _, gvk := range []schema.GroupVersionKind{
		batchv1.SchemeGroupVersion.WithKind("Job"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Service"),
		cdi.WithKind("DataVolume"),
	} {
		for _, each := range w.labelled(gvk) {
			names = append(names, gvk.Kind+" "+each.GetName())
		}
	}
	return names
}

// labelled returns the objects of a kind with the label of a transfer.
func (w *world) labelled(gvk schema.GroupVersionKind) []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind + "List"})
	if err := w.client.List(w.t.Context(), list, client.HasLabels{v1beta1.LabelTransferUID}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}
