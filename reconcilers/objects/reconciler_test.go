package objects

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/objects"
)

// fixedKeys are keys that do not change.
type fixedKeys struct {
	keys     objects.Keys
	unsynced bool
	changed  chan struct{}
}

func (k *fixedKeys) Synced() bool             { return !k.unsynced }
func (k *fixedKeys) Keys() objects.Keys       { return k.keys }
func (k *fixedKeys) Changed() <-chan struct{} { return k.changed }

var errGone = errors.New("dial tcp 10.96.0.1:443: connect: connection refused")

// cluster is a fake API server. As the account in the chart, its clients may not read Secrets.
type cluster struct {
	t          *testing.T
	client     *fake.FakeDynamicClient
	keys       *fixedKeys
	events     *events.FakeRecorder
	reconciler *Reconciler

	// failWith returns errors for requests such as "create secrets web-1-db", before they happen.
	failWith func(request string) error
	// writes are the successful ones. After killAfter of them the manager receives no answer any more, not to the last one either.
	writes    []string
	killAfter int
}

func newCluster(t *testing.T, vm *state, existing ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, keys: &fixedKeys{}, killAfter: -1}
	c.client = fake.NewSimpleDynamicClient(runtime.NewScheme())
	react := clienttesting.ObjectReaction(c.client.Tracker())
	c.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch a := a.(type) {
		case clienttesting.CreateAction:
			name = a.GetObject().(*unstructured.Unstructured).GetName()
		case clienttesting.PatchAction:
			name = a.GetName()
		case clienttesting.GetAction:
			name = a.GetName()
		}
		if len(c.writes) == c.killAfter {
			return true, nil, errGone
		}
		request := fmt.Sprintf("%s %s %s", a.GetVerb(), a.GetResource().Resource, name)
		if c.failWith != nil {
			if err := c.failWith(request); err != nil {
				return true, nil, err
			}
		}
		if strings.HasPrefix(request, "get secrets ") {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), name, errors.New("no permission"))
		}
		_, object, err := react(a)
		if a.GetVerb() == "get" || err != nil {
			return true, object, err
		}
		if c.writes = append(c.writes, request); len(c.writes) == c.killAfter {
			return true, nil, errGone
		}
		return true, object, nil
	})
	if vm != nil {
		c.keys.keys = vm.keys
		c.add(vm.vm)
	}
	for _, each := range existing {
		c.add(fixture.Object(t, each))
	}
	c.start()
	return c
}

func (c *cluster) add(object *unstructured.Unstructured) {
	c.t.Helper()
	resource, found := resources[object.GetKind()]
	if !found {
		resource = virtualMachines
	}
	if object.GetNamespace() == "" {
		object.SetNamespace("team-a")
	}
	if err := c.client.Tracker().Create(resource, object, object.GetNamespace()); err != nil {
		c.t.Fatal(err)
	}
}

// start replaces the manager by a new one without state.
func (c *cluster) start() {
	c.killAfter, c.events = -1, events.NewFakeRecorder(100)
	c.reconciler = &Reconciler{vms: c.client, creator: c.client, keys: c.keys, recorder: c.events, results: newResults(), attempts: map[types.NamespacedName]attempts{}}
}

func (c *cluster) reconcile() string {
	c.t.Helper()
	result, err := c.reconciler.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "web-1"}})
	if result != (reconcile.Result{}) {
		c.t.Errorf("it asks for %+v", result)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// stored returns a stored object; nil if there is none.
func (c *cluster) stored(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	c.t.Helper()
	object, err := c.client.Tracker().Get(resource, "team-a", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

// left returns kinds and names of the objects in the stored annotation, and whether the VM is held back.
func (c *cluster) left() (names []string, held bool) {
	c.t.Helper()
	s := &state{vm: c.stored(virtualMachines, "web-1"), keys: c.keys.keys}
	_, held, _ = unstructured.NestedString(s.vm.Object, "spec", "template", "metadata", "annotations", contract.AnnotationHold)
	p := decide(s)
	if p.problem != "" {
		c.t.Fatal(p.problem)
	}
	for _, each := range p.create {
		names = append(names, each.name())
	}
	return names, held
}

// check compares what was written, what is left, the events and the metrics.
func (c *cluster) check(writes, left, wantEvents []string, created, failed int) {
	c.t.Helper()
	if diff := cmp.Diff(writes, c.writes); diff != "" {
		c.t.Errorf("writes (-want +got):\n%s", diff)
	}
	got, held := c.left()
	if diff := cmp.Diff(left, got); diff != "" {
		c.t.Errorf("left (-want +got):\n%s", diff)
	}
	if held != (len(left) > 0) {
		c.t.Errorf("the VM is held back: %v", held)
	}
	if diff := cmp.Diff(wantEvents, c.received()); diff != "" {
		c.t.Errorf("events (-want +got):\n%s", diff)
	}
	c.counts(created, failed)
}

func (c *cluster) counts(created, failed int) {
	c.t.Helper()
	for result, want := range map[string]int{resultCreated: created, resultFailed: failed} {
		if got := testutil.ToFloat64(c.reconciler.results.WithLabelValues(result)); got != float64(want) {
			c.t.Errorf("stencil_objects_total of %s is %v, want %d", result, got, want)
		}
	}
}

func (c *cluster) received() (received []string) {
	for {
		select {
		case event := <-c.events.Events:
			received = append(received, event)
		default:
			return received
		}
	}
}

const (
	warned     = "Warning ObjectsNotCreated objects of its template cannot be created, and it does not start: "
	failing    = "creating objects of a VirtualMachine: "
	secretRead = "Secret web-1-db: it exists already, and Stencil may not read for whom it was created; delete it (kubectl delete secrets web-1-db -n team-a), or create the VirtualMachine with another name"

	putSecret  = "create secrets web-1-db"
	putConfig  = "create configmaps web-1-app"
	putService = "create services web-1"
	putPolicy  = "create networkpolicies web-1"
	patchVM    = "patch virtualmachines web-1"

	// ownConfig and foreignConfig are objects that exist already.
	ownConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web-1-app, labels: {objects.template.kubevirt.io/owner: u1},
		ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web-1, uid: u1, controller: true}]}, data: {a: b}}`
	foreignConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web-1-app}, data: {a: b}}`
)

func TestReconcile(t *testing.T) {
	secrets, configMaps := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Resource: "configmaps"}
	for _, tc := range []struct {
		name            string
		manifests       []string
		existing        []string
		fails           map[string]error
		want            string
		wantWrites      []string
		wantLeft        []string
		wantEvents      []string
		created, failed int
	}{
		{
			name: "all are created, in their order", manifests: []string{webSecret, webConfig, webService, webPolicy},
			wantWrites: []string{putSecret, putConfig, putService, putPolicy, patchVM}, created: 4,
			wantEvents: []string{"Normal ObjectsCreated created Secret web-1-db, ConfigMap web-1-app, Service web-1, NetworkPolicy web-1"},
		},
		{
			name: "one exists, and was created for the VM", manifests: []string{webSecret, webConfig}, existing: []string{ownConfig},
			wantWrites: []string{putSecret, patchVM}, created: 1, wantEvents: []string{"Normal ObjectsCreated created Secret web-1-db"},
		},
		{
			name: "all exist, and were created for the VM", manifests: []string{webConfig}, existing: []string{ownConfig},
			wantWrites: []string{patchVM},
		},
		{
			name: "one exists, and was created for another VM", manifests: []string{webSecret, webConfig}, existing: []string{strings.ReplaceAll(ownConfig, "u1", "u0")},
			want: failing + "ConfigMap web-1-app: it exists already and was not created for this VirtualMachine; delete it (kubectl delete configmaps web-1-app -n team-a), or create the VirtualMachine with another name",
			wantEvents: []string{
				warned + "ConfigMap web-1-app: it exists already and was not created for this VirtualMachine; delete it (kubectl delete configmaps web-1-app -n team-a), or create the VirtualMachine with another name",
				"Normal ObjectsCreated created Secret web-1-db",
			},
			wantWrites: []string{putSecret, patchVM}, wantLeft: []string{"ConfigMap web-1-app"}, created: 1, failed: 1,
		},
		{
			name: "all exist, and are foreign", manifests: []string{webConfig}, existing: []string{foreignConfig},
			want: failing + "ConfigMap web-1-app: it exists already and was not created for this VirtualMachine; delete it (kubectl delete configmaps web-1-app -n team-a), or create the VirtualMachine with another name",
			wantEvents: []string{
				warned + "ConfigMap web-1-app: it exists already and was not created for this VirtualMachine; delete it (kubectl delete configmaps web-1-app -n team-a), or create the VirtualMachine with another name",
			},
			wantLeft: []string{"ConfigMap web-1-app"}, failed: 1,
		},
		{
			name: "a foreign object of another group", manifests: []string{webPolicy}, existing: []string{webPolicy},
			want: failing + "NetworkPolicy web-1: it exists already and was not created for this VirtualMachine; delete it (kubectl delete networkpolicies.networking.k8s.io web-1 -n team-a), or create the VirtualMachine with another name",
			wantEvents: []string{
				warned + "NetworkPolicy web-1: it exists already and was not created for this VirtualMachine; delete it (kubectl delete networkpolicies.networking.k8s.io web-1 -n team-a), or create the VirtualMachine with another name",
			},
			wantLeft: []string{"NetworkPolicy web-1"}, failed: 1,
		},
		{
			name: "one exists, and cannot be read", manifests: []string{webSecret, webConfig}, existing: []string{webSecret},
			want: failing + secretRead, wantEvents: []string{warned + secretRead, "Normal ObjectsCreated created ConfigMap web-1-app"},
			wantWrites: []string{putConfig, patchVM}, wantLeft: []string{"Secret web-1-db"}, created: 1, failed: 1,
		},
		{
			name: "one exists, and disappears", manifests: []string{webConfig}, fails: map[string]error{
				putConfig: apierrors.NewAlreadyExists(configMaps, "web-1-app"), "get configmaps web-1-app": apierrors.NewNotFound(configMaps, "web-1-app"),
			},
			want: failing + "ConfigMap web-1-app: NotFound", wantEvents: []string{warned + "ConfigMap web-1-app: NotFound"},
			wantLeft: []string{"ConfigMap web-1-app"}, failed: 1,
		},
		{
			name: "several fail, and only these are left", manifests: []string{webSecret, webConfig, webService, webPolicy},
			fails: map[string]error{
				putSecret: apierrors.NewForbidden(secrets, "web-1-db", errors.New("exceeded quota: small")),
				putPolicy: apierrors.NewTooManyRequests("slowly", 1),
			},
			want: failing + `Secret web-1-db: secrets "web-1-db" is forbidden: exceeded quota: small; NetworkPolicy web-1: TooManyRequests`,
			wantEvents: []string{
				warned + `Secret web-1-db: secrets "web-1-db" is forbidden: exceeded quota: small; NetworkPolicy web-1: TooManyRequests`,
				"Normal ObjectsCreated created ConfigMap web-1-app, Service web-1",
			},
			wantWrites: []string{putConfig, putService, patchVM}, wantLeft: []string{"Secret web-1-db", "NetworkPolicy web-1"}, created: 2, failed: 2,
		},
		{
			name: "an invalid object, whose values are not shown", manifests: []string{webSecret},
			fails: map[string]error{putSecret: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "web-1-db", field.ErrorList{
				field.Invalid(field.NewPath("data").Key("password"), "open-sesame", "open-sesame is no password"), field.Required(field.NewPath("type"), "")})},
			want:       failing + "Secret web-1-db: it is invalid (data[password]: FieldValueInvalid, type: FieldValueRequired)",
			wantEvents: []string{warned + "Secret web-1-db: it is invalid (data[password]: FieldValueInvalid, type: FieldValueRequired)"},
			wantLeft:   []string{"Secret web-1-db"}, failed: 1,
		},
		{
			name: "the API server answers no creation", manifests: []string{webSecret, webConfig}, fails: map[string]error{putSecret: errGone, putConfig: errGone},
			want:       failing + "Secret web-1-db: the API server does not answer; ConfigMap web-1-app: the API server does not answer",
			wantEvents: []string{warned + "Secret web-1-db: the API server does not answer; ConfigMap web-1-app: the API server does not answer"},
			wantLeft:   []string{"Secret web-1-db", "ConfigMap web-1-app"}, failed: 2,
		},
		{
			name: "the namespace is being deleted", manifests: []string{webSecret, webConfig},
			fails: map[string]error{putConfig: &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}},
			wantWrites: []string{putSecret}, wantLeft: []string{"Secret web-1-db", "ConfigMap web-1-app"}, created: 1,
		},
		{
			name: "the VM cannot be read", manifests: []string{webSecret}, fails: map[string]error{"get virtualmachines web-1": errGone},
			want: "reading VirtualMachine team-a/web-1: " + errGone.Error(), wantLeft: []string{"Secret web-1-db"},
		},
		{
			name: "the VM was deleted meanwhile", manifests: []string{webSecret}, fails: map[string]error{patchVM: apierrors.NewNotFound(virtualMachines.GroupResource(), "web-1")},
			wantWrites: []string{putSecret}, wantLeft: []string{"Secret web-1-db"}, wantEvents: []string{"Normal ObjectsCreated created Secret web-1-db"}, created: 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, waitingVM(t, testKeys(), tc.manifests...), tc.existing...)
			c.failWith = func(request string) error { return tc.fails[request] }
			if got := c.reconcile(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			c.failWith = nil
			c.check(tc.wantWrites, tc.wantLeft, tc.wantEvents, tc.created, tc.failed)
		})
	}
}

// What exists of other owners stays as it is, and so does the rest of the VM.
func TestNothingElseIsChanged(t *testing.T) {
	vm := waitingVM(t, testKeys(), webSecret, webConfig)
	c := newCluster(t, vm, foreignConfig, `{apiVersion: v1, kind: Service, metadata: {name: web-1}}`)
	c.reconcile()
	if diff := cmp.Diff(fixture.Object(t, strings.Replace(foreignConfig, "name: web-1-app", "name: web-1-app, namespace: team-a", 1)).Object, c.stored(resources["ConfigMap"], "web-1-app").Object); diff != "" {
		t.Errorf("the foreign object (-want +got):\n%s", diff)
	}
	if err := c.client.Tracker().Delete(resources["ConfigMap"], "team-a", "web-1-app"); err != nil {
		t.Fatal(err)
	}
	if got := c.reconcile(); got != "" {
		t.Fatal(got)
	}
	want := fixture.Object(t, strings.Replace(webVM, "annotations: {objects.template.kubevirt.io/hold: objects}", "", 1)).Object
	want["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = map[string]any{}
	if diff := cmp.Diff(want, c.stored(virtualMachines, "web-1").Object); diff != "" {
		t.Errorf("the VM (-want +got):\n%s", diff)
	}
}

func TestReconcileWithoutWork(t *testing.T) {
	c := newCluster(t, waitingVM(t, testKeys(), webSecret))
	key := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "web-1"}}
	c.keys.unsynced = true
	result, err := c.reconciler.Reconcile(t.Context(), key)
	if err != nil || result.RequeueAfter != time.Second || len(c.client.Actions()) > 0 {
		t.Errorf("before the keys are synced: %+v, %v, %v", result, err, c.client.Actions())
	}
	c.keys.unsynced = false
	key.Name = "gone"
	if result, err = c.reconciler.Reconcile(t.Context(), key); err != nil || result != (reconcile.Result{}) {
		t.Errorf("of a VM that does not exist: %+v, %v", result, err)
	}
	c.check(nil, []string{"Secret web-1-db"}, nil, 0, 0)
}

// The replica that encrypted may have received a key before the leader.
func TestAKeyThatArrivesLate(t *testing.T) {
	c := newCluster(t, waitingVM(t, testKeys(), webSecret))
	keys := c.keys.keys
	c.keys.keys = nil
	const problem = "the key that encrypted them does not exist"
	if got := c.reconcile(); got != problem {
		t.Errorf("got %s", got)
	}
	want := []string{"Warning ObjectsUnreadable the objects of its template cannot be created, and it does not start: " + problem + "; delete it and create it again"}
	if diff := cmp.Diff(want, c.received()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	c.counts(0, 1)
	c.keys.keys = keys
	if got := c.reconcile(); got != "" {
		t.Error(got)
	}
	c.check([]string{putSecret, patchVM}, nil, []string{"Normal ObjectsCreated created Secret web-1-db"}, 1, 1)
}

// A Secret cannot be read, so only the process itself recognizes that it created it.
func TestARetryRecognizesWhatTheProcessCreated(t *testing.T) {
	for name, failed := range map[string]error{
		"the API server is gone": errGone,
		"a conflict":             apierrors.NewConflict(virtualMachines.GroupResource(), "web-1", errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, waitingVM(t, testKeys(), webSecret, webConfig))
			c.failWith = func(request string) error {
				if request == patchVM {
					return failed
				}
				return nil
			}
			const updating = "updating VirtualMachine team-a/web-1, whose objects were created: "
			for range 2 {
				if got := c.reconcile(); got != updating+failed.Error() {
					t.Errorf("got %s", got)
				}
			}
			c.failWith = nil
			if got := c.reconcile(); got != "" {
				t.Error(got)
			}
			c.check([]string{putSecret, putConfig, patchVM}, nil, []string{"Normal ObjectsCreated created Secret web-1-db, ConfigMap web-1-app"}, 2, 0)
			if len(c.reconciler.attempts) > 0 {
				t.Errorf("it still retains %v", c.reconciler.attempts)
			}
		})
	}
}

// The patch fails if the VM or its annotation is another one.
func TestAVMThatWasReplacedIsNotReleased(t *testing.T) {
	c := newCluster(t, waitingVM(t, testKeys(), webConfig))
	c.failWith = func(request string) error {
		if request == patchVM {
			replaced := c.stored(virtualMachines, "web-1").DeepCopy()
			replaced.SetUID("u2")
			if err := c.client.Tracker().Update(virtualMachines, replaced, "team-a"); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	if got := c.reconcile(); !strings.HasPrefix(got, "updating VirtualMachine team-a/web-1, whose objects were created: ") {
		t.Errorf("got %s", got)
	}
	c.failWith = nil
	if left, held := c.left(); len(left) != 1 || !held {
		t.Errorf("left %v, held back: %v", left, held)
	}
	// The object of the first one is foreign to the second.
	const foreign = "ConfigMap web-1-app: it exists already and was not created for this VirtualMachine; delete it (kubectl delete configmaps web-1-app -n team-a), or create the VirtualMachine with another name"
	if got := c.reconcile(); got != failing+foreign {
		t.Errorf("got %s", got)
	}
}

func TestTheManagerIsKilledAfterEachWrite(t *testing.T) {
	all := []string{putSecret, putConfig, putService, patchVM}
	for killAfter := range len(all) + 1 {
		t.Run(fmt.Sprint(killAfter), func(t *testing.T) {
			c := newCluster(t, waitingVM(t, testKeys(), webSecret, webConfig, webService))
			c.killAfter = killAfter
			if got := c.reconcile(); got == "" {
				t.Error("it did not fail")
			}
			if !slices.Equal(c.writes, all[:killAfter]) {
				t.Errorf("it wrote %q", c.writes)
			}
			c.start()
			got := c.reconcile()
			switch killAfter {
			case 0:
				if got != "" {
					t.Error(got)
				}
				c.check(all, nil, []string{"Normal ObjectsCreated created Secret web-1-db, ConfigMap web-1-app, Service web-1"}, 3, 0)
				return
			case len(all):
				if got != "" {
					t.Error(got)
				}
				c.check(all, nil, nil, 0, 0)
				return
			}
			if got != failing+secretRead {
				t.Errorf("got %s", got)
			}
			// All others were recognized, or created: no object is created twice.
			wantEvents := []string{warned + secretRead}
			switch killAfter {
			case 1:
				wantEvents = append(wantEvents, "Normal ObjectsCreated created ConfigMap web-1-app, Service web-1")
			case 2:
				wantEvents = append(wantEvents, "Normal ObjectsCreated created Service web-1")
			}
			c.check(all, []string{"Secret web-1-db"}, wantEvents, 3-killAfter, 1)

			// A user deletes the Secret, by the command of the event.
			if err := c.client.Tracker().Delete(resources["Secret"], "team-a", "web-1-db"); err != nil {
				t.Fatal(err)
			}
			if got := c.reconcile(); got != "" {
				t.Error(got)
			}
			c.check(append(slices.Clone(all), putSecret, patchVM), nil, []string{"Normal ObjectsCreated created Secret web-1-db"}, 4-killAfter, 1)
		})
	}
}

func TestAnEventNamesSomeObjectsOnly(t *testing.T) {
	var manifests []string
	for i := range 11 {
		manifests = append(manifests, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-%02d}}`, i))
	}
	c := newCluster(t, waitingVM(t, testKeys(), manifests...))
	if got := c.reconcile(); got != "" {
		t.Fatal(got)
	}
	want := []string{"Normal ObjectsCreated created ConfigMap web-00, ConfigMap web-01, ConfigMap web-02, ConfigMap web-03, ConfigMap web-04, ConfigMap web-05, ConfigMap web-06, ConfigMap web-07 and 3 more objects"}
	if diff := cmp.Diff(want, c.received()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The manager reads VMs itself, and does the rest as the account.
func TestNewActsAsTheAccount(t *testing.T) {
	var mutex sync.Mutex
	var received []string
	vm := waitingVM(t, testKeys(), webConfig)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		received = append(received, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.URL.Query().Get("fieldManager"), r.Header.Get("Impersonate-User"))))
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		raw, err := vm.vm.MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(raw)
	}))
	defer server.Close()
	const account = "system:serviceaccount:stencil-system:stencil-objects"
	registry := prometheus.NewRegistry()
	options := Options{Config: &rest.Config{Host: server.URL}, Account: account, Keys: &fixedKeys{keys: vm.keys}, Recorder: events.NewFakeRecorder(10), Registerer: registry, Logger: logr.Discard()}
	r, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "web-1"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /apis/kubevirt.io/v1/namespaces/team-a/virtualmachines/web-1",
		"POST /api/v1/namespaces/team-a/configmaps stencil-objects " + account,
		"PATCH /apis/kubevirt.io/v1/namespaces/team-a/virtualmachines/web-1 stencil-objects " + account,
	}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if options.Config.Impersonate.UserName != "" {
		t.Error("the configuration of the manager changed")
	}
	if count, err := testutil.GatherAndCount(registry, "stencil_objects_total"); err != nil || count != 2 {
		t.Errorf("stencil_objects_total has %d series, %v", count, err)
	}
	if _, err := New(options); err == nil || !strings.HasPrefix(err.Error(), "registering the metrics of objects: ") {
		t.Errorf("a second one: %v", err)
	}
	options.Config = &rest.Config{Host: "127.0.0.1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}
	if _, err := New(options); err == nil || !strings.HasPrefix(err.Error(), "making the clients of objects: open /does/not/exist") {
		t.Errorf("a configuration that makes no client: %v", err)
	}
}
