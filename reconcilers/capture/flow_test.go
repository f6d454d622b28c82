package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/internal/fixture"
)

// world is a fake API server with simulated KubeVirt and CDI.
type world struct {
	t        *testing.T
	client   *fake.FakeDynamicClient
	clock    *testingclock.FakePassiveClock
	events   *events.FakeRecorder
	expander expander
	register *prometheus.Registry

	writes []string
	// killAt is the number of the write at which the manager is killed: after the write if done is true, before it otherwise.
	killAt int
	done   bool
	// failWith returns errors for writes and reads before they happen.
	failWith func(verb, resource, name string) error
	// revoked is what user ada may not do, by the number of the write before which the right is lost; everything else ada may. asked are the actions that were checked.
	revoked   string
	revokedAt int
	asked     []string
	uids      int
}

var errKilled = errors.New("killed")

func newWorld(t *testing.T, objects ...string) *world {
	t.Helper()
	w := &world{
		t: t, clock: testingclock.NewFakePassiveClock(created.Time), events: events.NewFakeRecorder(100), register: prometheus.NewRegistry(), killAt: -1,
	}
	lists := map[schema.GroupVersionResource]string{}
	for _, each := range []resource{requests, templates, virtualMachines, snapshots, contents, volumeSnapshots, dataVolumes} {
		lists[each.GroupVersionResource] = each.kind + "List"
	}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	react := clienttesting.ObjectReaction(w.client.Tracker())
	w.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		name := ""
		switch a := a.(type) {
		case clienttesting.CreateAction:
			object := a.GetObject().(*unstructured.Unstructured)
			name = object.GetName()
			w.uids++
			object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
			object.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
		case clienttesting.PatchAction:
			name = a.GetName()
		// Deletions have a name too.
		case clienttesting.GetAction:
			name = a.GetName()
		}
		if w.failWith != nil {
			if err := w.failWith(a.GetVerb(), a.GetResource().Resource, name); err != nil {
				return true, nil, err
			}
		}
		if a.GetVerb() == "get" || a.GetVerb() == "list" || a.GetVerb() == "watch" {
			return false, nil, nil
		}
		n := len(w.writes)
		w.writes = append(w.writes, a.GetVerb()+" "+a.GetResource().Resource+" "+a.GetSubresource())
		if n != w.killAt {
			return false, nil, nil
		}
		if w.done {
			if _, _, err := react(a); err != nil {
				t.Errorf("write %d failed: %v", n, err)
			}
		}
		return true, nil, errKilled
	})
	for _, text := range objects {
		w.add(text)
	}
	return w
}

func (w *world) add(text string) {
	w.t.Helper()
	u := fixture.Object(w.t, text)
	u.SetCreationTimestamp(created)
	if err := w.client.Tracker().Create(gvr(u.GetKind()), u, u.GetNamespace()); err != nil {
		w.t.Fatal(err)
	}
}

func gvr(kind string) schema.GroupVersionResource {
	for _, each := range []resource{requests, templates, virtualMachines, snapshots, contents, volumeSnapshots, dataVolumes} {
		if each.kind == kind {
			return each.GroupVersionResource
		}
	}
	panic(kind)
}

// manager returns a new manager without state.
func (w *world) manager() *Reconciler {
	return &Reconciler{
		gatherer: gatherer{&Cluster{dynamic: w.client, expander: w.expander}, w.clock}, recorder: w.events,
		metrics: func() *metrics {
			w.register = prometheus.NewRegistry()
			m, err := newMetrics(w.register)
			if err != nil {
				w.t.Fatal(err)
			}
			return m
		}(),
		permissions: w, strictSource: true,
	}
}

// May implements powers.Actions.
func (w *world) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	w.asked = append(w.asked, action.String())
	return user.Username == "ada" && (action.String() != w.revoked || len(w.writes) < w.revokedAt), nil
}

// all returns the objects of a kind.
func (w *world) all(of resource) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.client.Tracker().List(of.GroupVersionResource, of.GroupVersion().WithKind(of.kind), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return list.(*unstructured.UnstructuredList).Items
}

func (w *world) names(of resource) (names []string) {
	for _, each := range w.all(of) {
		names = append(names, each.GetNamespace()+"/"+each.GetName())
	}
	slices.Sort(names)
	return names
}

func (w *world) change(of resource, object unstructured.Unstructured) {
	w.t.Helper()
	if err := w.client.Tracker().Update(of.GroupVersionResource, &object, object.GetNamespace()); err != nil {
		w.t.Fatal(err)
	}
}

// simulate simulates KubeVirt and CDI, and collects garbage.
func (w *world) simulate() {
	w.t.Helper()
	for _, each := range w.all(snapshots) {
		if each.Object["status"] == nil {
			each.Object["status"] = map[string]any{"phase": "Succeeded", "readyToUse": true, "virtualMachineSnapshotContentName": "content"}
			w.change(snapshots, each)
			w.add(strings.ReplaceAll(snapshotContent, "SOURCE", each.GetNamespace()))
		}
	}
	if len(w.all(snapshots)) == 0 {
		for _, each := range w.all(contents) {
			if err := w.client.Tracker().Delete(contents.GroupVersionResource, each.GetNamespace(), each.GetName()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	for _, each := range w.all(dataVolumes) {
		if each.Object["status"] == nil {
			each.Object["status"] = map[string]any{"phase": "Succeeded"}
			w.change(dataVolumes, each)
		}
	}
}

// run reconciles until the request needs no more work. A manager that is killed is replaced by a new one.
func (w *world) run(key types.NamespacedName) {
	w.t.Helper()
	manager := w.manager()
	for range 100 {
		result, err := manager.Reconcile(context.Background(), reconcile.Request{NamespacedName: key})
		if errors.Is(err, errKilled) {
			manager = w.manager()
			continue
		}
		w.simulate()
		if err == nil && result.RequeueAfter == 0 {
			return
		}
	}
	w.t.Fatalf("the request does not rest: %v", w.writes)
}

func (w *world) request(key types.NamespacedName) *v1beta1.VirtualMachineTemplateRequest {
	w.t.Helper()
	for _, each := range w.all(requests) {
		if each.GetName() == key.Name {
			request := &v1beta1.VirtualMachineTemplateRequest{}
			if err := decode(&each, request); err != nil {
				w.t.Fatal(err)
			}
			return request
		}
	}
	return nil
}

const (
	vm = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {namespace: shop, name: web, uid: vm-uid}
spec: {template: {spec: {domain: {devices: {}}}}}`

	snapshotContent = `
apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineSnapshotContent
metadata: {namespace: SOURCE, name: content, uid: content-uid}
spec:
  source:
    virtualMachine:
      metadata: {namespace: SOURCE, name: web, uid: vm-uid}
      spec:
        runStrategy: Always
        template:
          spec:
            domain: {devices: {disks: [{name: root}, {name: data}]}}
            volumes:
            - {name: root, dataVolume: {name: web-root}}
            - {name: data, persistentVolumeClaim: {claimName: web-data}}
            - {name: init, cloudInitNoCloud: {userData: "#cloud-config\npassword: hunter2\n"}}
  volumeBackups:
  - volumeName: root
    volumeSnapshotName: vs-root
    persistentVolumeClaim: {spec: {accessModes: [ReadWriteOnce], volumeMode: Block, storageClassName: fast, resources: {requests: {storage: 10Gi}}}}
  - volumeName: data
    volumeSnapshotName: vs-data
    persistentVolumeClaim: {spec: {resources: {requests: {storage: 1Gi}}}}
  - volumeName: persistent-state-for-web
    volumeSnapshotName: vs-state
    persistentVolumeClaim: {spec: {}}
`
)

func templateRequest(namespace, more string) string {
	return `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplateRequest
metadata: {namespace: ` + namespace + `, name: r, uid: r-uid, generation: 1, annotations: {template.kubevirt.io/written-by: 1 ada}}
spec: {virtualMachineRef: {namespace: shop, name: web}, templateName: t, templateLabels: {os: fedora}` + more + `}`
}

var golden = types.NamespacedName{Namespace: "golden", Name: "r"}

// checkReady checks the result of a successful capture, whatever happened before.
func checkReady(t *testing.T, w *world) {
	t.Helper()
	request := w.request(golden)
	if request == nil {
		t.Fatal("the request is gone")
	}
	made := w.all(templates)
	if len(made) != 1 {
		t.Fatalf("there are the templates %v", w.names(templates))
	}
	template := made[0]
	if len(template.GetOwnerReferences()) != 0 || template.GetLabels()["os"] != "fedora" {
		t.Errorf("the template has the owners %v and the labels %v", template.GetOwnerReferences(), template.GetLabels())
	}
	if len(request.Finalizers) != 0 || request.Status.SnapshotRef != nil || request.Status.TemplateRef == nil || request.Status.TemplateRef.Name != "t" ||
		len(request.OwnerReferences) != 1 || request.OwnerReferences[0].UID != template.GetUID() {
		t.Errorf("the request is %+v", request)
	}
	var said []string
	for _, c := range request.Status.Conditions {
		said = append(said, fmt.Sprintf("%s=%s %s: %s (%d)", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration))
	}
	slices.Sort(said)
	if diff := cmp.Diff([]string{
		"Complete=True EverythingCaptured: everything of the VirtualMachine is in the template (1)",
		"Completed=True Reconciled: VirtualMachineTemplate t was made (1)",
		"IdentityFound=False NoIdentity: nothing was found in the template that identifies the captured VirtualMachine (1)",
		"Progressing=False Reconciled: VirtualMachineTemplate t was made (1)",
		"Ready=True Reconciled: VirtualMachineTemplate t was made (1)",
		"SecretsFound=True SecretsKept: users who may read the template can read spec.template.spec.volumes[2].cloudInitNoCloud.userData (password) (1)",
	}, said); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if left := append(w.names(snapshots), w.names(contents)...); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	root, data := dataVolumeName("r-uid", "t", "root"), dataVolumeName("r-uid", "t", "data")
	if diff := cmp.Diff([]string{"golden/" + data, "golden/" + root}, w.names(dataVolumes)); diff != "" {
		t.Errorf("DataVolumes (-want +got):\n%s", diff)
	}
	for _, each := range w.all(dataVolumes) {
		if owners := each.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != template.GetUID() || owners[0].Kind != "VirtualMachineTemplate" {
			t.Errorf("DataVolume %s is owned by %v", each.GetName(), owners)
		}
		if each.GetName() == root {
			want := map[string]any{
				"source":  map[string]any{"snapshot": map[string]any{"namespace": "shop", "name": "vs-root"}},
				"storage": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "12Gi"}}, "storageClassName": "fast", "volumeMode": "Block", "accessModes": []any{"ReadWriteOnce"}},
			}
			if diff := cmp.Diff(want, each.Object["spec"]); diff != "" {
				t.Errorf("DataVolume (-want +got):\n%s", diff)
			}
		}
	}
	text, _ := json.Marshal(template.Object["spec"])
	for _, want := range []string{`"name":"` + root + `","namespace":"golden"`, `"name":"root-${NAME}"`, `"runStrategy":"Always"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the template lacks %s: %s", want, text)
		}
	}
}

// rootSnapshot is larger than requested.
const rootSnapshot = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {namespace: shop, name: vs-root}
status: {restoreSize: 12Gi}`

func TestACaptureFromBeginningToEnd(t *testing.T) {
	w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	w.run(golden)
	checkReady(t, w)
	close(w.events.Events)
	var said []string
	for event := range w.events.Events {
		said = append(said, event)
	}
	started := "Normal CaptureStarted taking a snapshot of VirtualMachine shop/web, to make VirtualMachineTemplate golden/t of it"
	captured := "Normal Captured VirtualMachineTemplate golden/t was created from VirtualMachine shop/web"
	if diff := cmp.Diff([]string{started, started, captured, captured}, said); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(said, w.request(golden).Status), "hunter") {
		t.Error("a secret is told")
	}
	if err := testutil.GatherAndCompare(w.register, strings.NewReader(`
# HELP stencil_captures_total VirtualMachineTemplateRequests that have ended: with a template (ready), with one that refers to objects that its VMs cannot use (incomplete), or without one (failed), and the reason of their condition Ready.
# TYPE stencil_captures_total counter
stencil_captures_total{outcome="ready",reason="Reconciled"} 1
`), "stencil_captures_total"); err != nil {
		t.Error(err)
	}
}

// TestARequestCreatesWhatItsUserMayCreateNow revokes each right before each write.
func TestARequestCreatesWhatItsUserMayCreateNow(t *testing.T) {
	const again = ": create the request again when that is permitted"
	undisturbed := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	undisturbed.run(golden)
	needs := []string{"create virtualmachinetemplaterequests/source shop/web", "create datavolumes in golden", "create virtualmachinetemplates in golden"}
	for _, action := range needs {
		if !slices.Contains(undisturbed.asked, action) {
			t.Errorf("%s is not checked: %v", action, undisturbed.asked)
		}
	}
	creates := func(writes []string) (count int) {
		for _, write := range writes {
			if strings.HasPrefix(write, "create ") {
				count++
			}
		}
		return count
	}
	total := creates(undisturbed.writes)
	for _, action := range needs {
		for n := range undisturbed.writes {
			w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
			w.revoked, w.revokedAt = action, n
			w.run(golden)
			// The rights are checked before each step, and a step may copy several disks.
			if made := creates(w.writes); made == total {
				checkReady(t, w)
				continue
			} else if before := creates(w.writes[:min(n, len(w.writes))]); made > before+1 {
				t.Errorf("%s is revoked before write %d, and %d objects are created afterwards", action, n, made-before)
			}
			ready := meta.FindStatusCondition(w.request(golden).Status.Conditions, v1beta1.ConditionReady)
			if ready == nil || ready.Reason != v1beta1.ReasonNotPermitted || ready.Message != "the user who created it may not "+action+again {
				t.Errorf("%s is revoked before write %d: %+v", action, n, ready)
			}
			if left := slices.Concat(w.names(templates), w.names(snapshots), w.names(dataVolumes), w.request(golden).Finalizers); len(left) > 0 {
				t.Errorf("%s is revoked before write %d: left are %v", action, n, left)
			}
		}
	}
	for name, tc := range map[string]struct {
		namespace, writer string
		lax               bool
		asked             []string
	}{
		"nobody is recorded":              {"golden", "", false, nil},
		"another version is":              {"golden", "2 ada", false, nil},
		"within a namespace":              {"shop", "1 ada", false, []string{"get virtualmachines shop/web", "create virtualmachinesnapshots in shop", "create datavolumes in shop", "create virtualmachinetemplates in shop"}},
		"within one, as KubeVirt does it": {"shop", "1 ada", true, []string{"create datavolumes in shop", "create virtualmachinetemplates in shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			request := strings.Replace(templateRequest(tc.namespace, ""), "template.kubevirt.io/written-by: 1 ada", "template.kubevirt.io/written-by: "+tc.writer, 1)
			w := newWorld(t, vm, rootSnapshot, request)
			r := w.manager()
			r.strictSource = !tc.lax
			err := r.authorized(t.Context(), w.request(types.NamespacedName{Namespace: tc.namespace, Name: "r"}))
			if want := "who created it is not recorded" + again; tc.asked == nil && (err == nil || err.Error() != want) || tc.asked != nil && err != nil {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.asked, w.asked); diff != "" {
				t.Errorf("checked (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("without permissions nothing is created", func(t *testing.T) {
		w := newWorld(t, vm)
		r := w.manager()
		r.permissions = nil
		if err := r.authorized(t.Context(), &v1beta1.VirtualMachineTemplateRequest{}); !errors.Is(err, errNoPermissions) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAManagerThatIsKilledAtAnyWriteIsSucceeded kills the manager before and after each write.
func TestAManagerThatIsKilledAtAnyWriteIsSucceeded(t *testing.T) {
	undisturbed := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	undisturbed.run(golden)
	if len(undisturbed.writes) < 15 {
		t.Fatalf("a capture writes only %v", undisturbed.writes)
	}
	for n, write := range undisturbed.writes {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, %s, done %v", n, write, done), func(t *testing.T) {
				w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
				w.killAt, w.done = n, done
				w.run(golden)
				checkReady(t, w)
			})
		}
	}
}

// TestNothingIsLeftOfACaptureThatEndsAtAnyWrite deletes the request before each write.
func TestNothingIsLeftOfACaptureThatEndsAtAnyWrite(t *testing.T) {
	undisturbed := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
	undisturbed.run(golden)
	for n := range undisturbed.writes {
		t.Run(fmt.Sprintf("the request is deleted at write %d", n), func(t *testing.T) {
			w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
			w.killAt = n
			manager := w.manager()
			for {
				_, err := manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden})
				if errors.Is(err, errKilled) {
					break
				}
				w.simulate()
			}
			for _, each := range w.all(requests) {
				now := metav1.NewTime(w.clock.Now())
				each.SetDeletionTimestamp(&now)
				w.change(requests, each)
			}
			// A released template that owns its disks is not a leftover, even if the status does not report it yet.
			finished := len(w.all(templates)) == 1 && len(w.all(templates)[0].GetOwnerReferences()) == 0
			w.run(golden)
			left := slices.Concat(w.names(snapshots), w.names(contents))
			if !finished {
				for _, each := range w.all(dataVolumes) {
					// DataVolumes that the template owns are deleted with it.
					if owners := each.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "VirtualMachineTemplate" {
						left = append(left, each.GetName())
					}
				}
				left = append(left, w.names(templates)...)
			}
			if len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
			if request := w.request(golden); len(request.Finalizers) > 0 {
				t.Error("the request cannot go")
			}
		})
	}
}

func TestFailures(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "x"}, "x", nil)
	for name, tc := range map[string]struct {
		objects     []string
		more        string
		refuse      func(verb, resource, name string) error
		later       func(w *world)
		wantReason  string
		wantMessage string
	}{
		"a machine that is never created": {
			more: ", timeout: 10m", later: func(w *world) { w.clock.SetTime(created.Add(11 * time.Minute)) },
			wantReason: "Timeout", wantMessage: "not finished within 10m0s; the last that was known: VirtualMachine shop/web does not exist; waiting for it until ",
		},
		"a template of that name":    {objects: []string{vm, "apiVersion: template.kubevirt.io/v1beta1\nkind: VirtualMachineTemplate\nmetadata: {namespace: golden, name: t, uid: other}"}, wantReason: "TemplateExists"},
		"a snapshot that is refused": {objects: []string{vm}, refuse: failing("create", "virtualmachinesnapshots", invalid), wantReason: "CaptureRefused", wantMessage: "creating VirtualMachineSnapshot shop/capture-r-uid"},
		"disks that are refused":     {objects: []string{vm}, refuse: failing("create", "datavolumes", invalid), wantReason: "CaptureRefused", wantMessage: "creating DataVolume golden/"},
		"a template that is refused": {objects: []string{vm}, refuse: failing("create", "virtualmachinetemplates", invalid), wantReason: "CaptureRefused", wantMessage: "creating VirtualMachineTemplate golden/t"},
		"rights that nobody ever gives": {
			objects: []string{vm}, more: ", timeout: 10m", refuse: failing("create", "datavolumes", apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota"))),
			later:      func(w *world) { w.clock.SetTime(created.Add(11 * time.Minute)) },
			wantReason: "Timeout", wantMessage: "not finished within 10m0s; the last that was known: could not create DataVolumes, and tries again",
		},
		"a kind that never comes": {
			objects: []string{vm}, refuse: failing("", "virtualmachinesnapshots", missing("virtualmachinesnapshots")),
			later:      func(w *world) { w.clock.SetTime(created.Add(2 * time.Hour)) },
			wantReason: "Timeout", wantMessage: "not finished within 1h0m0s; the last that was known: waiting until the API server serves VirtualMachineSnapshot (snapshot.kubevirt.io/v1beta1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, templateRequest("golden", tc.more))...)
			w.failWith = tc.refuse
			manager := w.manager()
			for range 30 {
				if _, err := manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden}); err != nil && tc.refuse == nil {
					t.Error(err)
				}
				w.simulate()
			}
			if tc.later != nil {
				tc.later(w)
			}
			w.run(golden)
			conditions := w.request(golden).Status.Conditions
			ready := meta.FindStatusCondition(conditions, "Ready")
			if ready == nil || ready.Reason != tc.wantReason || !strings.Contains(ready.Message, tc.wantMessage) || !meta.IsStatusConditionFalse(conditions, "Progressing") {
				t.Errorf("conditions are %+v", conditions)
			}
			left := slices.Concat(w.names(snapshots), w.names(dataVolumes))
			if tc.wantReason != "TemplateExists" {
				left = append(left, w.names(templates)...)
			}
			if len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
			if len(w.request(golden).Finalizers) > 0 {
				t.Error("the request cannot go")
			}
		})
	}
}

// TestASnapshotOfWhichAPartIsGoneIsNotWaitedFor deletes a VolumeSnapshot of a snapshot that was taken and is not ready.
func TestASnapshotOfWhichAPartIsGoneIsNotWaitedFor(t *testing.T) {
	volumeSnapshot := func(name string) string {
		return "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {namespace: shop, name: " + name + "}"
	}
	w := newWorld(t, vm, templateRequest("golden", ""), strings.ReplaceAll(snapshotContent, "SOURCE", "shop"), volumeSnapshot("vs-root"), volumeSnapshot("vs-state"), `
apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineSnapshot
metadata: {namespace: shop, name: capture-r-uid, uid: s-uid, labels: {`+v1beta1.LabelRequestUID+`: r-uid}}
spec: {source: {kind: VirtualMachine, name: web}}
status: {phase: Succeeded, readyToUse: false, virtualMachineSnapshotContentName: content, error: {message: VolumeSnapshots (vs-data) missing}}`)
	w.run(golden)
	ready := meta.FindStatusCondition(w.request(golden).Status.Conditions, "Ready")
	if ready == nil || ready.Reason != "SnapshotLost" || ready.Message != "VirtualMachineSnapshot shop/capture-r-uid lost VolumeSnapshots before it had served: vs-data" {
		t.Errorf("the condition is %+v", ready)
	}
	if left := append(w.names(snapshots), w.names(contents)...); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestTroubleThatStaysIsToldOnce lets writes fail repeatedly. Each change of a request's status would cause another attempt at once.
func TestTroubleThatStaysIsToldOnce(t *testing.T) {
	for _, tc := range []struct{ verb, resource string }{
		{"create", "virtualmachinesnapshots"}, {"create", "datavolumes"}, {"create", "virtualmachinetemplates"}, {"patch", "datavolumes"},
		{"delete", "virtualmachinesnapshots"}, {"patch", "virtualmachinetemplates"},
	} {
		t.Run(tc.verb+" "+tc.resource, func(t *testing.T) {
			w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
			forbidden := true
			quota := failing(tc.verb, tc.resource, apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota")))
			w.failWith = func(verb, resource, name string) error {
				if forbidden {
					return quota(verb, resource, name)
				}
				return nil
			}
			manager := w.manager()
			attempt := func() error {
				_, err := manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden})
				w.simulate()
				return err
			}
			for range 30 {
				//nolint:errcheck // Until it comes to what is refused, none fails.
				attempt()
			}
			told := meta.FindStatusCondition(w.request(golden).Status.Conditions, "Progressing")
			if told == nil || told.Reason != "Retrying" || !strings.Contains(told.Message, "exceeded quota") {
				t.Fatalf("the condition is %+v", told)
			}
			before := len(w.writes)
			if attempt() == nil {
				t.Error("a step that fails is not tried again at growing intervals")
			}
			if more := w.writes[before:]; len(more) > 0 {
				t.Errorf("another attempt has written %v", more)
			}
			forbidden = false
			w.run(golden)
			checkReady(t, w)
		})
	}
}

func failing(verb, resource string, err error) func(verb, resource, name string) error {
	return func(v, r, _ string) error {
		if r == resource && (verb == "" || v == verb) {
			return err
		}
		return nil
	}
}

// missing returns the error of an API server that does not serve a kind.
func missing(resource string) error {
	return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: resource}, "", "404 page not found", 0, true)
}

func TestAKindThatComesLaterIsUsed(t *testing.T) {
	for _, kind := range []string{"virtualmachinesnapshots", "virtualmachinesnapshotcontents", "datavolumes"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, vm, rootSnapshot, templateRequest("golden", ""))
			w.failWith = failing("", kind, missing(kind))
			manager := w.manager()
			for range 10 {
				if _, err := manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden}); err != nil {
					t.Error(err)
				}
				if w.failWith("get", kind, "") != nil && kind != "virtualmachinesnapshotcontents" {
					w.simulate()
				}
			}
			progressing := meta.FindStatusCondition(w.request(golden).Status.Conditions, "Progressing")
			if progressing == nil || progressing.Reason != "WaitingForAPI" && kind != "virtualmachinesnapshotcontents" {
				t.Errorf("progressing is %+v", progressing)
			}
			w.failWith = nil
			w.run(golden)
			checkReady(t, w)
		})
	}
}

// expanding is a fake virt-api.
type expanding struct {
	got map[string]any
	err error
}

func (e *expanding) Expand(_ context.Context, namespace string, vm map[string]any) (map[string]any, error) {
	e.got = runtime.DeepCopyJSON(vm)
	if e.err != nil {
		return nil, e.err
	}
	spec := vm["spec"].(map[string]any)
	delete(spec, "instancetype")
	spec["template"].(map[string]any)["spec"].(map[string]any)["domain"].(map[string]any)["cpu"] = map[string]any{"sockets": int64(2)}
	return vm, nil
}

func TestInstancetypes(t *testing.T) {
	for name, tc := range map[string]struct {
		more, want string
		err        error
		wantReason string
	}{
		"are expanded":                  {more: ", instancetype: Expand", want: `"cpu":{"sockets":2}`},
		"are kept":                      {more: ", instancetype: Keep", want: `"instancetype":{"name":"u1.large"}`},
		"are kept as a parameter":       {want: `"instancetype":{"name":"${INSTANCETYPE}"}`},
		"that are gone end the request": {more: ", instancetype: Expand", err: apierrors.NewBadRequest("no such revision"), wantReason: "ExpansionFailed"},
		"that nobody can ask about yet": {more: ", instancetype: Expand", err: missing("expand-vm-spec"), wantReason: "WaitingForAPI"},
		"that are asked for in vain":    {more: ", instancetype: Expand", err: errors.New("connection refused"), wantReason: "Retrying"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vm, templateRequest("golden", tc.more))
			kubevirt := &expanding{err: tc.err}
			w.expander = kubevirt
			manager := w.manager()
			for range 20 {
				//nolint:errcheck // What it says is in the conditions.
				manager.Reconcile(t.Context(), reconcile.Request{NamespacedName: golden})
				w.simulate()
				for _, each := range w.all(contents) {
					vm := each.Object["spec"].(map[string]any)["source"].(map[string]any)["virtualMachine"].(map[string]any)
					vm["spec"].(map[string]any)["instancetype"] = map[string]any{"name": "u1.large", "revisionName": "rev"}
					w.change(contents, each)
				}
			}
			ready := meta.FindStatusCondition(w.request(golden).Status.Conditions, "Ready")
			if tc.wantReason != "" {
				if ready == nil || ready.Reason != tc.wantReason || len(w.names(templates)) > 0 {
					t.Errorf("ready is %+v", ready)
				}
				return
			}
			text, _ := json.Marshal(w.all(templates)[0].Object["spec"])
			if ready.Status != "True" || !strings.Contains(string(text), tc.want) || strings.Contains(string(text), "rev\"") {
				t.Errorf("ready is %v, the template %s", ready, text)
			}
			if kubevirt.got != nil {
				metadata := kubevirt.got["metadata"].(map[string]any)
				if metadata["namespace"] != "shop" || metadata["name"] != "web" || kubevirt.got["kind"] != "VirtualMachine" {
					t.Errorf("KubeVirt was asked about %v", kubevirt.got)
				}
			}
		})
	}
}
