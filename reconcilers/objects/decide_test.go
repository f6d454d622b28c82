package objects

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/objects"
)

const (
	webVM = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  namespace: team-a
  name: web-1
  uid: u1
  creationTimestamp: "2026-06-01T12:00:00Z"
  annotations: {template.kubevirt.io/rendered: '{"name":"box"}', note: stays}
spec:
  runStrategy: Always
  template: {metadata: {annotations: {objects.template.kubevirt.io/hold: objects}}, spec: {hostname: web-1}}
`
	webSecret  = `{apiVersion: v1, kind: Secret, metadata: {name: web-1-db}, stringData: {password: open-sesame}}`
	webConfig  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web-1-app}, data: {a: b}}`
	webService = `{apiVersion: v1, kind: Service, metadata: {name: web-1}, spec: {ports: [{port: 80}]}}`
	webPolicy  = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web-1}, spec: {podSelector: {}}}`
)

// encrypted is when the objects were encrypted, a moment before the VM was created.
var encrypted = time.Date(2026, 6, 1, 11, 59, 58, 0, time.UTC)

func testKeys() objects.Keys {
	keys, _ := objects.Keys(nil).Renewed(encrypted.Add(-time.Hour), func(string) bool { return false })
	return keys
}

// resources are the resources of the kinds of these tests.
var resources = map[string]schema.GroupVersionResource{
	"Secret":        {Version: "v1", Resource: "secrets"},
	"ConfigMap":     {Version: "v1", Resource: "configmaps"},
	"Service":       {Version: "v1", Resource: "services"},
	"NetworkPolicy": {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// pendingOf returns manifests in YAML as pending objects.
func pendingOf(t *testing.T, manifests ...string) objects.Pending {
	t.Helper()
	pending := objects.Pending{Sealed: encrypted}
	for _, text := range manifests {
		at := resources[fixture.Object(t, text).GetKind()]
		pending.Objects = append(pending.Objects, objects.Object{Group: at.Group, Version: at.Version, Resource: at.Resource, Manifest: fixture.JSON(t, text)})
	}
	return pending
}

// waitingVM returns the state of a VM whose objects do not exist yet.
func waitingVM(t *testing.T, keys objects.Keys, manifests ...string) *state {
	t.Helper()
	s := &state{vm: fixture.Object(t, webVM), keys: keys}
	text, err := pendingOf(t, manifests...).Seal(keys, s.binding())
	if err != nil {
		t.Fatal(err)
	}
	annotate(s.vm, contract.AnnotationPendingObjects, text)
	return s
}

// annotate sets an annotation, or removes it if the value is empty.
func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[key] = value; value == "" {
		delete(annotations, key)
	}
	object.SetAnnotations(annotations)
}

func TestDecideWithoutObjectsToCreate(t *testing.T) {
	keys := testKeys()
	const changed = "the annotation was written for another VirtualMachine, or changed"
	for _, tc := range []struct {
		name   string
		change func(*state)
		want   string
	}{
		{name: "no VM", change: func(s *state) { s.vm = nil }},
		{name: "a VM that is being deleted", change: func(s *state) { s.vm.SetDeletionTimestamp(&metav1.Time{Time: encrypted}) }},
		{name: "a VM whose objects exist", change: func(s *state) { annotate(s.vm, contract.AnnotationPendingObjects, "") }},
		{name: "a VM without annotations", change: func(s *state) { s.vm.SetAnnotations(nil) }},
		{name: "the annotation of another VM", change: func(s *state) { s.vm.SetName("web-2") }, want: changed},
		{name: "the annotation of another namespace", change: func(s *state) { s.vm.SetNamespace("team-b") }, want: changed},
		{name: "another record", change: func(s *state) { annotate(s.vm, contract.AnnotationRendered, "{}") }, want: changed},
		{name: "an annotation that a user wrote", change: func(s *state) { annotate(s.vm, contract.AnnotationPendingObjects, "none") }, want: "the annotation is not the one that Stencil wrote"},
		{name: "no keys", change: func(s *state) { s.keys = nil }, want: "the key that encrypted them does not exist"},
		{name: "other keys", change: func(s *state) { s.keys = testKeys() }, want: "the key that encrypted them does not exist"},
		{
			name: "a VM that was created later with the annotations of another one", change: func(s *state) { s.vm.SetCreationTimestamp(metav1.NewTime(encrypted.Add(time.Hour))) },
			want: "the annotation was written for a VirtualMachine of the same name that was created 1h0m0s earlier or later",
		},
		{name: "an object that is none", change: func(s *state) {
			text, err := objects.Pending{Sealed: encrypted, Objects: []objects.Object{{Version: "v1", Resource: "secrets", Manifest: json.RawMessage(`"open-sesame"`)}}}.Seal(s.keys, s.binding())
			if err != nil {
				t.Fatal(err)
			}
			annotate(s.vm, contract.AnnotationPendingObjects, text)
		}, want: "an object cannot be decoded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := waitingVM(t, keys, webSecret)
			tc.change(s)
			if got := decide(s); got.problem != tc.want || len(got.create) > 0 || len(got.pending.Objects) > 0 {
				t.Errorf("got %+v, want the problem %q", got, tc.want)
			}
		})
	}
}

func TestDecideMakesObjectsOfTheVM(t *testing.T) {
	forged := `
apiVersion: v1
kind: ConfigMap
metadata:
  name: web-1-app
  namespace: team-b
  labels: {objects.template.kubevirt.io/owner: u2, app: web}
  annotations: {a: b}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: other, uid: u3}, {apiVersion: v1, kind: ConfigMap, name: more, uid: u4, controller: true}]
`
	manifests := []string{webSecret, forged, webPolicy}
	p := decide(waitingVM(t, testKeys(), manifests...))
	if p.problem != "" {
		t.Fatal(p.problem)
	}
	if diff := cmp.Diff(pendingOf(t, manifests...), p.pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	const owned = `, namespace: team-a, ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web-1, uid: u1, controller: true, blockOwnerDeletion: false}]}`
	want := []struct{ resource, name, manifest string }{
		{"/v1, Resource=secrets", "Secret web-1-db", strings.Replace(webSecret, "}, stringData", ", labels: {objects.template.kubevirt.io/owner: u1}"+owned+", stringData", 1)},
		{"/v1, Resource=configmaps", "ConfigMap web-1-app",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: web-1-app, labels: {objects.template.kubevirt.io/owner: u1, app: web}, annotations: {a: b}" + owned + "}"},
		{"networking.k8s.io/v1, Resource=networkpolicies", "NetworkPolicy web-1", strings.Replace(webPolicy, "}, spec", ", labels: {objects.template.kubevirt.io/owner: u1}"+owned+", spec", 1)},
	}
	if len(p.create) != len(want) {
		t.Fatalf("%d objects", len(p.create))
	}
	for i, each := range want {
		got := p.create[i]
		if got.resource.String() != each.resource || got.name() != each.name {
			t.Errorf("object %d is %s in %s", i, got.name(), got.resource)
		}
		if diff := cmp.Diff(fixture.Object(t, each.manifest).Object, got.manifest.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", each.name, diff)
		}
	}
}

func TestOwn(t *testing.T) {
	s := &state{vm: fixture.Object(t, webVM)}
	for name, tc := range map[string]struct {
		metadata string
		want     bool
	}{
		"the VM controls it, and its label has the UID": {"labels: {objects.template.kubevirt.io/owner: u1}, ownerReferences: [{uid: u1, controller: true}]", true},
		"also if it got more labels and owners":         {"labels: {objects.template.kubevirt.io/owner: u1, a: b}, ownerReferences: [{uid: u2}, {uid: u1, controller: true}]", true},
		"without owner and label":                       {"name: a", false},
		"without the label":                             {"ownerReferences: [{uid: u1, controller: true}]", false},
		"with the label of another VM":                  {"labels: {objects.template.kubevirt.io/owner: u2}, ownerReferences: [{uid: u1, controller: true}]", false},
		"with the label only":                           {"labels: {objects.template.kubevirt.io/owner: u1}", false},
		"the VM does not control it":                    {"labels: {objects.template.kubevirt.io/owner: u1}, ownerReferences: [{uid: u1}]", false},
		"an earlier VM of the same name controls it":    {"labels: {objects.template.kubevirt.io/owner: u0}, ownerReferences: [{name: web-1, uid: u0, controller: true}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.own(fixture.Object(t, "metadata: {"+tc.metadata+"}")); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestFinished(t *testing.T) {
	const (
		unchanged = `{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/annotations/objects.template.kubevirt.io~1pending","value":"text"},` +
			`{"op":"remove","path":"/metadata/annotations/objects.template.kubevirt.io~1pending"}`
		all = `,{"op":"remove","path":"/spec/template/metadata/annotations"}`
		one = `,{"op":"remove","path":"/spec/template/metadata/annotations/objects.template.kubevirt.io~1hold"}`
	)
	for _, tc := range []struct{ name, template, want string }{
		{"the hold is the only annotation", "{metadata: {annotations: {objects.template.kubevirt.io/hold: objects}}}", unchanged + all},
		{"the hold has any value", "{metadata: {annotations: {objects.template.kubevirt.io/hold: mine}}}", unchanged + all},
		{"there are others", "{metadata: {annotations: {objects.template.kubevirt.io/hold: objects, a: b}}}", unchanged + one},
		{"there are others only", "{metadata: {annotations: {a: b}}}", unchanged},
		{"there is none", "{metadata: {annotations: {}}}", unchanged},
		{"there is no metadata", "{spec: {}}", unchanged},
		{"there is no template", "null", unchanged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &state{vm: fixture.Object(t, "metadata: {uid: u1, annotations: {objects.template.kubevirt.io/pending: text}}\nspec: {template: "+tc.template+"}")}
			raw, err := json.Marshal(s.finished())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("["+tc.want+"]", string(raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			before, err := json.Marshal(s.vm.Object)
			if err != nil {
				t.Fatal(err)
			}
			after := string(fixture.Patched(t, before, raw))
			if strings.Contains(after, "hold") || strings.Contains(after, "pending") || strings.Contains(tc.template, "a: b") && !strings.Contains(after, `"annotations":{"a":"b"}`) {
				t.Errorf("the VM becomes %s", after)
			}
		})
	}
}

func TestProgressed(t *testing.T) {
	s := waitingVM(t, testKeys(), webSecret, webConfig)
	left := pendingOf(t, webConfig)
	patch, err := s.progressed(left)
	if err != nil {
		t.Fatal(err)
	}
	if len(patch) != 3 {
		t.Fatalf("%d operations", len(patch))
	}
	text, _ := patch[2].Value.(string)
	want := []operation{
		{"test", "/metadata/uid", "u1"},
		{"test", "/metadata/annotations/objects.template.kubevirt.io~1pending", s.pending()},
		{"replace", "/metadata/annotations/objects.template.kubevirt.io~1pending", text},
	}
	if diff := cmp.Diff(want, patch); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The time of the encryption remains: replays are bounded by the creation of the VM.
	got, err := objects.Open(s.keys, s.binding(), text, s.vm.GetCreationTimestamp().Time)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(left, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}

	s.keys = nil
	if _, err := s.progressed(left); err == nil || err.Error() != "encrypting the objects that are left: there is no key to encrypt the objects of the template with" {
		t.Errorf("without keys: %v", err)
	}
}

func TestRenewKeepsKeysWhileVirtualMachinesAreNotKnown(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	old := func(age time.Duration) string { return now.Add(-age).Format("20060102t150405z") + "-aa" }
	used, unused, newest := old(30*24*time.Hour), old(20*24*time.Hour), old(time.Hour)
	keys := objects.Keys{used: make([]byte, 32), unused: make([]byte, 32), newest: make([]byte, 32)}
	for _, tc := range []struct {
		name        string
		known       bool
		inUse       map[string]bool
		want        []string
		wantChanged bool
	}{
		{name: "while they are not known", want: []string{used, unused, newest}},
		{name: "while only some are known", inUse: map[string]bool{used: true}, want: []string{used, unused, newest}},
		{name: "one needs an old key", known: true, inUse: map[string]bool{used: true, "other": true}, want: []string{used, newest}, wantChanged: true},
		{name: "none needs an old key", known: true, want: []string{newest}, wantChanged: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed := rotation{keys: keys, inUse: tc.inUse, known: tc.known}.renew(now)
			want := objects.Keys{}
			for _, id := range tc.want {
				want[id] = keys[id]
			}
			if diff := cmp.Diff(want, got); diff != "" || changed != tc.wantChanged {
				t.Errorf("changed %v (-want +got):\n%s", changed, diff)
			}
		})
	}
}
