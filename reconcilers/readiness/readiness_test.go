package readiness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	permission "github.com/vmstencil/stencil/internal/authorization"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// vmt is a template in namespace golden.
func vmt(t *testing.T, name, text string) *v1beta1.VirtualMachineTemplate {
	t.Helper()
	var object v1beta1.VirtualMachineTemplate
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	object.Namespace, object.Name, object.UID, object.Generation = "golden", name, "uid-1", 3
	return &object
}

// everything is a template that depends on one thing of every kind.
const everything = `
spec:
  parameters:
  - {name: NAME, required: true, generate: expression, from: "vm-[a-z0-9]{5}"}
  - {name: IMAGE, value: fedora}
  - {name: CLAIM, required: true}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {name: u1.medium}
      preference: {kind: VirtualMachinePreference, name: fedora}
      dataVolumeTemplates:
      - {metadata: {name: "root-${NAME}"}, spec: {sourceRef: {kind: DataSource, name: "${IMAGE}"}, storage: {}}}
      - {metadata: {name: snap}, spec: {source: {snapshot: {namespace: images, name: daily}}, storage: {}}}
      - {metadata: {name: clone}, spec: {source: {pvc: {namespace: images, name: base}}, storage: {}}}
      - {metadata: {name: web}, spec: {source: {http: {url: "https://example/x", secretRef: login, certConfigMap: roots, secretExtraHeaders: [token]}}, storage: {}}}
      - {metadata: {name: empty}, spec: {source: {blank: {}}, storage: {}}}
      - {metadata: {name: restored}, spec: {storage: {dataSourceRef: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: nightly}}}}
      - {metadata: {name: copied}, spec: {pvc: {dataSource: {kind: PersistentVolumeClaim, name: base}}}}
      - {metadata: {name: poured}, spec: {storage: {dataSourceRef: {apiGroup: example.org, kind: Pitcher, name: milk}}}}
      template:
        spec:
          domain: {devices: {}}
          networks:
          - {name: default, pod: {}}
          - {name: storage, multus: {networkName: nets/vlan7}}
          volumes:
          - {name: root, dataVolume: {name: "root-${NAME}"}}
          - {name: snap, persistentVolumeClaim: {claimName: snap}}
          - {name: tools, containerDisk: {image: quay.io/tools, imagePullSecret: pull}}
          - {name: data, persistentVolumeClaim: {claimName: "${CLAIM}"}}
          - {name: other, dataVolume: {name: shared}}
          - {name: seed, cloudInitNoCloud: {secretRef: {name: seed}}}
          - {name: answers, sysprep: {configMap: {name: unattend}}}
          - {name: token, serviceAccount: {serviceAccountName: agent}}
          - {name: scratch, emptyDisk: {capacity: 1Gi}}
          accessCredentials:
          - {sshPublicKey: {source: {secret: {secretName: keys}}, propagationMethod: {noCloud: {}}}}
`

// TestEveryListedValueOfAnOpenParameterIsChecked has parameters without a default. Each listed value names other objects.
func TestEveryListedValueOfAnOpenParameterIsChecked(t *testing.T) {
	outlines, problem := sample.Outlines(templatecache.Compile(vmt(t, "listed", `
spec:
  parameters:
  - {name: NAME, required: true}
  - {name: IMAGE, required: true, enum: [fedora, debian, ubuntu]}
  - {name: SIZE, required: true, enum: [u1.small, u1.large]}
  - {name: OTHER, value: one, enum: [one, two]}
  - {name: NETWORK, required: true, pattern: "[a-z]+"}
  virtualMachine:
    metadata: {name: "${NAME}"}
    spec:
      runStrategy: Halted
      instancetype: {name: "${SIZE}"}
      dataVolumeTemplates:
      - {metadata: {name: "${NAME}"}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: "${IMAGE}-${OTHER}"}, storage: {}}}
      - {metadata: {name: "${NAME}-data"}, spec: {source: {pvc: {namespace: golden, name: base}}, storage: {}}}
      template: {spec: {domain: {devices: {}}, networks: [{name: storage, multus: {networkName: "${NETWORK}"}}]}}
`)), map[string][]string{"NETWORK": {"blue", "red"}, "OTHER": {"two"}})
	if problem != nil {
		t.Fatal(problem.Message)
	}
	depends := find(outlines[0], "golden")
	for _, other := range outlines[1:] {
		depends.add(find(other, "golden"))
	}
	base := sources.Key{Kind: sources.Claim, Namespace: "golden", Name: "base"}
	existing := &fakeSources{objects: map[sources.Key]sources.Object{base: {Ready: true}, {Kind: sources.ClusterInstancetype, Name: "u1.small"}: {}}}
	resolver := &resolver{lookup: existing, namespace: "golden"}
	found := resolver.survey(depends)
	var got []string
	for _, one := range list(found) {
		got = append(got, fmt.Sprintf("%s: %s %s", one.what, one.key, one.State))
	}
	want := []string{
		"volume ${NAME}: DataSource golden/fedora-one NotFound",
		"volume ${NAME}-data: PersistentVolumeClaim golden/base Ready",
		"volume ${NAME}: DataSource golden/debian-one NotFound",
		"volume ${NAME}: DataSource golden/ubuntu-one NotFound",
		"instance type: VirtualMachineClusterInstancetype u1.large NotFound",
		"network storage: NetworkAttachmentDefinition golden/${NETWORK} Unknown",
		"network storage: NetworkAttachmentDefinition golden/blue NotFound",
		"network storage: NetworkAttachmentDefinition golden/red NotFound",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestKindsOfInstanceTypesAreReadAsKubeVirtReadsThem(t *testing.T) {
	for written, want := range map[string]sources.Key{
		"":                                   {Kind: sources.ClusterInstancetype, Name: "small"},
		"VirtualMachineClusterInstancetype":  {Kind: sources.ClusterInstancetype, Name: "small"},
		"virtualmachineclusterinstancetypes": {Kind: sources.ClusterInstancetype, Name: "small"},
		"VirtualMachineInstancetype":         {Kind: sources.Instancetype, Namespace: "golden", Name: "small"},
		"virtualmachineinstancetype":         {Kind: sources.Instancetype, Namespace: "golden", Name: "small"},
		"virtualmachineinstancetypes":        {Kind: sources.Instancetype, Namespace: "golden", Name: "small"},
	} {
		matcher := map[string]any{"kind": written, "name": "small"}
		if got := sizing(matcher, "golden", sources.ClusterInstancetype, sources.Instancetype); got[0].Key != want {
			t.Errorf("kind %q is %s, want %s", written, got, want)
		}
	}
}

func TestFindListsEverythingThatATemplateDependsOn(t *testing.T) {
	outline, problem := sample.Outline(templatecache.Compile(vmt(t, "all", everything)))
	if problem != nil {
		t.Fatal(problem.Message)
	}
	found := find(outline, "golden")
	var got []string
	for _, v := range found.volumes {
		got = append(got, fmt.Sprintf("%s: %s %s", v.name, v.Key, v.state.State))
	}
	got = append(got, found.instancetypes[0].String(), found.preferences[0].String())
	for _, n := range found.networks {
		got = append(got, n.name+": "+n.String())
	}
	want := []string{
		"root-${NAME}: DataSource golden/fedora ",
		"snap: VolumeSnapshot images/daily ",
		"clone: PersistentVolumeClaim images/base ",
		"web: HTTP  Remote",
		"web: Secret golden/login Unknown",
		"web: ConfigMap golden/roots Unknown",
		"web: Secret golden/token Unknown",
		"empty: Blank  Ready",
		"restored: VolumeSnapshot golden/nightly ",
		"copied: PersistentVolumeClaim golden/base ",
		"poured: Pitcher.example.org golden/milk ",
		"tools: ContainerDisk  Remote",
		"tools: Secret golden/pull Unknown",
		"data: PersistentVolumeClaim golden/${CLAIM} ",
		"other: DataVolume golden/shared ",
		"seed: Secret golden/seed Unknown",
		"answers: ConfigMap golden/unattend Unknown",
		"token: ServiceAccount golden/agent Unknown",
		"accessCredentials[0]: Secret golden/keys Unknown",
		"VirtualMachineClusterInstancetype u1.medium",
		"VirtualMachinePreference golden/fedora",
		"storage: NetworkAttachmentDefinition nets/vlan7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// fakeSources is a fake lookup.
type fakeSources struct {
	mutex   sync.Mutex
	objects map[sources.Key]sources.Object
	unknown map[sources.Kind]error
}

func (s *fakeSources) Get(key sources.Key) (sources.Object, bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.unknown[key.Kind]; err != nil {
		return sources.Object{}, false, err
	}
	object, found := s.objects[key]
	return object, found, nil
}

func (s *fakeSources) Synced() bool { return true }

func (s *fakeSources) TypeOf(kind sources.Kind) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: string(kind)}
}

func (s *fakeSources) ResourceOf(kind sources.Kind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Resource: string(kind)}
}

func (s *fakeSources) put(key sources.Key, object sources.Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.objects[key] = object
}

func in(kind sources.Kind, name string) sources.Key {
	return sources.Key{Kind: kind, Namespace: "golden", Name: name}
}

// permitted answers for every object.
func permitted(may bool) func(sources.Key) (bool, error) {
	return func(sources.Key) (bool, error) { return may, nil }
}

// What another namespace has is the same for a user who may not get it, whether it exists or not. The index has it all the same.
func TestObjectsOfOtherNamespacesAreReportedToWhoMayGetThem(t *testing.T) {
	elsewhere := sources.Key{Kind: sources.DataSource, Namespace: "images", Name: "fedora"}
	claim := sources.Key{Kind: sources.Claim, Namespace: "images", Name: "disk"}
	link := in(sources.DataSource, "link")
	unreported := is(v1beta1.SourceUnknown, "NotPermitted", "it is in another namespace, and who last wrote the template may not get it, or is not recorded: write the template with that permission").SourceStatus
	behind := unreported
	behind.Message = "DataSource golden/link stands for PersistentVolumeClaim images/disk: " + behind.Message
	there := map[sources.Key]sources.Object{elsewhere: {To: claim, ReadyReported: true, Ready: true}, claim: {Ready: true}, link: {To: claim}}
	missing := map[sources.Key]sources.Object{link: {To: claim}}
	for name, tc := range map[string]struct {
		of      sources.Key
		objects map[sources.Key]sources.Object
		may     bool
		want    v1beta1.SourceStatus
		seen    []sources.Key
	}{
		"one that may be read":                              {elsewhere, there, true, v1beta1.SourceStatus{State: "Ready"}, []sources.Key{elsewhere, {Kind: sources.DataVolume, Namespace: "images", Name: "disk"}, claim}},
		"one that may not":                                  {elsewhere, there, false, unreported, []sources.Key{elsewhere}},
		"one that may not and does not exist":               {elsewhere, missing, false, unreported, []sources.Key{elsewhere}},
		"a DataSource of its own that leads there":          {link, there, false, behind, []sources.Key{link, {Kind: sources.DataVolume, Namespace: "images", Name: "disk"}, claim}},
		"the same, and the claim does not exist":            {link, missing, false, behind, []sources.Key{link, {Kind: sources.DataVolume, Namespace: "images", Name: "disk"}, claim}},
		"a DataSource of its own that CDI reports as ready": {link, map[sources.Key]sources.Object{link: {To: claim, ReadyReported: true, Ready: true}}, false, v1beta1.SourceStatus{State: "Ready"}, []sources.Key{link, {Kind: sources.DataVolume, Namespace: "images", Name: "disk"}, claim}},
		"a DataSource of its own that CDI does not":         {link, map[sources.Key]sources.Object{link: {To: claim, ReadyReported: true, Reason: "NotFound", Message: "PVC not found"}}, false, v1beta1.SourceStatus{State: "NotReady", Reason: "NotFound", Message: "CDI reports that DataSource golden/link is not ready: PVC not found"}, []sources.Key{link, {Kind: sources.DataVolume, Namespace: "images", Name: "disk"}, claim}},
		"an object of its own, without other permission":    {in(sources.Claim, "disk"), map[sources.Key]sources.Object{in(sources.Claim, "disk"): {Ready: true}}, false, v1beta1.SourceStatus{State: "Ready"}, []sources.Key{in(sources.DataVolume, "disk"), in(sources.Claim, "disk")}},
		"an object without a namespace":                     {sources.Key{Kind: sources.ClusterInstancetype, Name: "u1"}, map[sources.Key]sources.Object{{Kind: sources.ClusterInstancetype, Name: "u1"}: {Ready: true}}, false, v1beta1.SourceStatus{State: "Ready"}, []sources.Key{{Kind: sources.ClusterInstancetype, Name: "u1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &resolver{lookup: &fakeSources{objects: tc.objects}, namespace: "golden", may: permitted(tc.may)}
			if diff := cmp.Diff(tc.want, r.resolve(reference{Key: tc.of}).SourceStatus); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.seen, r.seen); diff != "" {
				t.Errorf("the index (-want +got):\n%s", diff)
			}
		})
	}
	if rank, worst := gravest([]dependency{{what: "volume root", SourceStatus: unreported}}); worst != nil {
		t.Errorf("it makes the template %+v", rank)
	}
}

// permissionsOf answers for one user and action.
type permissionsOf struct {
	user   string
	action permission.Action
	err    error
}

func (p permissionsOf) May(_ context.Context, user authenticationv1.UserInfo, action permission.Action) (bool, error) {
	return user.Username == p.user && action == p.action, p.err
}

func TestThePermissionsAreThoseOfTheLastWriter(t *testing.T) {
	const imported = `
spec:
  virtualMachine:
    spec:
      runStrategy: Halted
      dataVolumeTemplates: [{metadata: {name: root}, spec: {sourceRef: {kind: DataSource, name: fedora, namespace: images}, storage: {}}}]
      template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: root}}]}}
`
	for writer, want := range map[string]v1beta1.SourceState{"": "Unknown", "4 ada": "NotFound", "3 ada": "Unknown", "4 eve": "Unknown"} {
		box := vmt(t, "box", imported)
		box.Generation, box.Annotations = 4, map[string]string{contract.AnnotationWrittenBy: writer}
		w, r, _ := start(t, box)
		r.options.Permissions = permissionsOf{user: "ada", action: permission.Action{Verb: permission.Get, Resource: "DataSource", Namespace: "images", Name: "fedora"}}
		passes := r.options.Clock.(*clocktesting.FakeClock)
		// A denial may have been reused, so that it is checked once more soon, also if an event comes first.
		again := []time.Duration{denialInterval, denialInterval - time.Second, permissionInterval}
		if want == "NotFound" {
			again = []time.Duration{permissionInterval}
		}
		for _, interval := range again {
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "golden", Name: "box"}})
			if err != nil || result.RequeueAfter != interval {
				t.Errorf("%q: %+v, %v; want %s", writer, result, err, interval)
			}
			if passes.Step(time.Second); interval < denialInterval {
				passes.Step(interval)
			}
		}
		if got := w.templates[types.NamespacedName{Namespace: "golden", Name: "box"}].Status.Volumes[0].State; got != want {
			t.Errorf("written by %q, the state is %s, want %s", writer, got, want)
		}
	}
	box := vmt(t, "box", imported)
	box.Generation, box.Annotations = 1, map[string]string{contract.AnnotationWrittenBy: "1 ada"}
	w, r, _ := start(t, box)
	r.options.Permissions = permissionsOf{err: errors.New("no answer")}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "golden", Name: "box"}}); err == nil || w.writes != 0 {
		t.Errorf("without an answer it wrote %d times: %v", w.writes, err)
	}
}

func TestTheStateOfASource(t *testing.T) {
	usable := sources.Object{Ready: true}
	judged := func(to sources.Key) sources.Object {
		return sources.Object{ReadyReported: true, Ready: true, To: to, Spec: to}
	}
	fedora, claim, snapshot := in(sources.DataSource, "fedora"), in(sources.Claim, "disk"), in(sources.Snapshot, "daily")
	disk := in(sources.DataVolume, "disk")
	for _, tc := range []struct {
		name    string
		objects map[sources.Key]sources.Object
		unknown map[sources.Kind]error
		of      sources.Key
		want    v1beta1.SourceState
		reason  string
		message string
	}{
		{name: "a DataSource that stands for a bound claim", of: fedora, objects: map[sources.Key]sources.Object{fedora: judged(claim), claim: usable}, want: "Ready"},
		{name: "a DataSource that stands for a snapshot", of: fedora, objects: map[sources.Key]sources.Object{fedora: judged(snapshot), snapshot: usable}, want: "Ready"},
		{name: "a DataSource that is not there", of: fedora, want: "NotFound", reason: "NotFound", message: "DataSource golden/fedora does not exist"},
		{
			name: "a DataSource whose claim is not there", of: fedora, objects: map[sources.Key]sources.Object{fedora: {ReadyReported: true, Reason: "NotFound", To: claim}},
			want: "NotFound", reason: "NotFound", message: "DataSource golden/fedora stands for PersistentVolumeClaim golden/disk: PersistentVolumeClaim golden/disk does not exist",
		},
		{
			name: "a DataSource whose claim is being imported says how far that is", of: fedora,
			objects: map[sources.Key]sources.Object{fedora: {ReadyReported: true, Reason: "ImportInProgress", To: claim}, claim: usable, disk: {Importing: true, Progress: "40%", Reason: "ImportInProgress"}},
			want:    "Importing", reason: "ImportInProgress", message: "DataSource golden/fedora stands for PersistentVolumeClaim golden/disk: DataVolume golden/disk is being filled",
		},
		{
			name: "a DataSource that CDI refuses for a reason of its own", of: fedora,
			objects: map[sources.Key]sources.Object{fedora: {ReadyReported: true, Reason: "NoSource", Message: "no source", To: claim}, claim: usable},
			want:    "NotReady", reason: "NoSource", message: "CDI reports that DataSource golden/fedora is not ready: no source",
		},
		{name: "a DataSource that stands for nothing", of: fedora, objects: map[sources.Key]sources.Object{fedora: {}}, want: "NotReady", reason: "NoSource", message: "DataSource golden/fedora names nothing that it stands for"},
		{
			name: "a DataSource is followed to one other", of: fedora,
			objects: map[sources.Key]sources.Object{fedora: {To: in(sources.DataSource, "latest")}, in(sources.DataSource, "latest"): judged(claim), claim: usable}, want: "Ready",
		},
		{
			name: "and no further", of: fedora,
			objects: map[sources.Key]sources.Object{fedora: {To: in(sources.DataSource, "latest")}, in(sources.DataSource, "latest"): judged(in(sources.DataSource, "third"))},
			want:    "NotReady", reason: "MaxReferenceDepthReached", message: "DataSource golden/fedora names DataSource golden/latest, which names another, and CDI follows one",
		},
		{
			name: "nor into another namespace", of: fedora, objects: map[sources.Key]sources.Object{fedora: {To: sources.Key{Kind: sources.DataSource, Namespace: "other", Name: "x"}}},
			want: "NotReady", reason: "CrossNamespaceReference", message: "DataSource golden/fedora names DataSource other/x, and CDI follows DataSources within a namespace only",
		},
		{name: "nor to itself", of: fedora, objects: map[sources.Key]sources.Object{fedora: {To: fedora}}, want: "NotReady", reason: "SelfReference", message: "DataSource golden/fedora names itself"},
		{
			name: "nor to one that is not there", of: fedora, objects: map[sources.Key]sources.Object{fedora: {To: in(sources.DataSource, "latest")}},
			want: "NotFound", reason: "NotFound", message: "DataSource golden/fedora stands for DataSource golden/latest, which does not exist",
		},
		{name: "a claim that is not bound", of: claim, objects: map[sources.Key]sources.Object{claim: {Reason: "Pending", Message: "it is Pending and not Bound"}}, want: "NotReady", reason: "Pending", message: "PersistentVolumeClaim golden/disk cannot be used: it is Pending and not Bound"},
		{name: "a bound claim whose DataVolume failed", of: claim, objects: map[sources.Key]sources.Object{claim: usable, disk: {Reason: "Error", Message: "404"}}, want: "NotReady", reason: "Error", message: "DataVolume golden/disk cannot be used: 404"},
		{name: "a claim that is being deleted", of: claim, objects: map[sources.Key]sources.Object{claim: {Ready: true, Deleting: true}}, want: "NotReady", reason: "Terminating", message: "PersistentVolumeClaim golden/disk is being deleted"},
		{name: "a DataVolume without its claim", of: disk, objects: map[sources.Key]sources.Object{disk: usable}, want: "NotFound", reason: "NotFound", message: "PersistentVolumeClaim golden/disk does not exist"},
		{name: "a kind that the cluster does not know", of: snapshot, unknown: map[sources.Kind]error{sources.Snapshot: &sources.NotServedError{Kind: sources.Snapshot}}, want: "Unknown", reason: "NotServed", message: "the cluster does not serve the kind VolumeSnapshot"},
		{name: "a kind that may not be listed", of: snapshot, unknown: map[sources.Kind]error{sources.Snapshot: errors.New("forbidden")}, want: "Unknown", reason: "NotKnown", message: "forbidden"},
		{
			name: "a kind that is not watched", of: in("Pitcher.example.org", "milk"), unknown: map[sources.Kind]error{"Pitcher.example.org": &sources.NotWatchedError{Kind: "Pitcher.example.org"}},
			want: "Unknown", reason: "NotRead", message: "the manager does not read objects of the kind Pitcher.example.org: add it to the chart's value readiness.populators",
		},
		{
			name: "an object of a volume populator", of: in("Pitcher.example.org", "milk"), objects: map[sources.Key]sources.Object{in("Pitcher.example.org", "milk"): {Reason: "Empty", Message: "no milk"}},
			want: "NotReady", reason: "Empty", message: "Pitcher.example.org golden/milk cannot be used: no milk",
		},
		{name: "a name that depends on a parameter", of: in(sources.Claim, "${CLAIM}"), want: "Unknown", reason: "ParameterRequired", message: "its name depends on a parameter that has no default"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &resolver{lookup: &fakeSources{objects: tc.objects, unknown: tc.unknown}, namespace: "golden", may: permitted(true)}
			got := r.resolve(reference{Key: tc.of})
			if diff := cmp.Diff(v1beta1.SourceStatus{State: tc.want, Reason: tc.reason, Message: tc.message}, got.SourceStatus); diff != "" {
				t.Error(diff)
			}
			if tc.want == "Importing" && got.progress != "40%" {
				t.Errorf("progress %q", got.progress)
			}
		})
	}
}

func TestTheConditionsOfATemplate(t *testing.T) {
	volumes := func(states ...v1beta1.SourceStatus) v1beta1.TemplateSources {
		var found v1beta1.TemplateSources
		for i, state := range states {
			found.Volumes = append(found.Volumes, v1beta1.TemplateVolume{Volume: fmt.Sprint("v", i), SourceStatus: state})
		}
		return found
	}
	missing := v1beta1.SourceStatus{State: "NotFound", Reason: "NotFound", Message: "it does not exist"}
	for _, tc := range []struct {
		name     string
		observed observation
		// want are the conditions as TYPE=STATUS/REASON.
		want    string
		message string
	}{
		{name: "all is well", observed: observation{found: volumes(v1beta1.SourceStatus{State: "Ready"}, v1beta1.SourceStatus{State: "Remote"})}, want: "Valid=True/Compiled SourcesReady=True/AllReady Ready=True/Reconciled", message: v1beta1.MessageReady},
		{
			name: "it does not compile", observed: observation{invalid: errors.New("bad"), unrendered: &sample.Error{Reason: "NotRendered", Message: "the template does not compile"}},
			want: "Valid=False/InvalidConfiguration SourcesReady=Unknown/NotRendered Ready=False/InvalidConfiguration", message: "bad",
		},
		{name: "a source is missing", observed: observation{found: volumes(missing)}, want: "Valid=True/Compiled SourcesReady=False/NotFound Ready=False/SourcesNotReady", message: "volume v0: it does not exist"},
		{name: "the worst is told", observed: observation{found: volumes(v1beta1.SourceStatus{State: "Importing", Message: "soon"}, missing)}, want: "Valid=True/Compiled SourcesReady=False/NotFound Ready=False/SourcesNotReady", message: "volume v1: it does not exist"},
		{name: "many are counted", observed: observation{found: volumes(missing, missing, missing, missing, missing, missing, missing)}, want: "Valid=True/Compiled SourcesReady=False/NotFound Ready=False/SourcesNotReady", message: "volume v0: it does not exist; volume v1: it does not exist; volume v2: it does not exist; volume v3: it does not exist; volume v4: it does not exist; and 2 more"},
		{name: "nobody knows of a source", observed: observation{found: volumes(v1beta1.SourceStatus{State: "Unknown", Reason: "NotServed", Message: "what is that"})}, want: "Valid=True/Compiled SourcesReady=Unknown/Unknown Ready=Unknown/Unknown", message: "volume v0: what is that"},
		{name: "a person will say", observed: observation{found: volumes(v1beta1.SourceStatus{State: "Unknown", Reason: "ParameterRequired"}, unread)}, want: "Valid=True/Compiled SourcesReady=True/AllReady Ready=True/Reconciled", message: v1beta1.MessageReady},
		{
			name: "a policy refuses it", observed: observation{compliance: &metav1.Condition{Type: "PolicyCompliant", Status: "False", Reason: "PolicyViolations", Message: "too big"}},
			want: "Valid=True/Compiled SourcesReady=True/AllReady Ready=False/PolicyViolations", message: "too big",
		},
		{name: "a dry run is refused", observed: observation{dryRun: &dryRunResult{"False", "Refused", "no"}}, want: "Valid=True/Compiled SourcesReady=True/AllReady DryRunSucceeded=False/Refused Ready=False/DryRunFailed", message: "no"},
		{name: "a dry run waits", observed: observation{dryRun: &dryRunResult{"Unknown", "NotTried", "later"}}, want: "Valid=True/Compiled SourcesReady=True/AllReady DryRunSucceeded=Unknown/NotTried Ready=Unknown/NotTried", message: "later"},
		{
			name: "a dry run needs values of a user", observed: observation{dryRun: &dryRunResult{"Unknown", "ParametersRequired", "IMAGE"}},
			want: "Valid=True/Compiled SourcesReady=True/AllReady DryRunSucceeded=Unknown/ParametersRequired Ready=True/Reconciled", message: v1beta1.MessageReady,
		},
		{
			name: "its own values make no VirtualMachine", observed: observation{unrendered: &sample.Error{Reason: "NotRendered", Message: "no quantity"}},
			want: "Valid=True/Compiled SourcesReady=Unknown/NotRendered Ready=Unknown/NotRendered", message: "no quantity",
		},
		{
			name: "policies were not evaluated yet", observed: observation{unevaluated: true},
			want: "Valid=True/Compiled SourcesReady=True/AllReady Ready=Unknown/NotEvaluated", message: "the policies have not been evaluated yet for this version of the template",
		},
		{
			name: "a policy could not be evaluated", observed: observation{compliance: &metav1.Condition{Type: "PolicyCompliant", Status: "Unknown", Reason: "NotEvaluated", Message: "too slow"}},
			want: "Valid=True/Compiled SourcesReady=True/AllReady Ready=Unknown/NotEvaluated", message: "too slow",
		},
		{
			name: "what is False precedes what is Unknown", observed: observation{unevaluated: true, found: volumes(v1beta1.SourceStatus{State: "Unknown", Reason: "NotServed"}), dryRun: &dryRunResult{"False", "Refused", "no"}},
			want: "Valid=True/Compiled SourcesReady=Unknown/Unknown DryRunSucceeded=False/Refused Ready=False/DryRunFailed", message: "no",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conditions := decide(tc.observed)
			var got []string
			for _, c := range conditions {
				got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
			}
			if joined := strings.Join(got, " "); joined != tc.want {
				t.Errorf("got  %s\nwant %s", joined, tc.want)
			}
			if got := meta.FindStatusCondition(conditions, "Ready").Message; got != tc.message {
				t.Errorf("Ready says %q, want %q", got, tc.message)
			}
		})
	}
}

// world holds the reconciler's inputs and its writes.
type world struct {
	fakeSources
	t         *testing.T
	templates map[types.NamespacedName]*v1beta1.VirtualMachineTemplate
	writes    int
	fail      error
}

func (w *world) template(name types.NamespacedName) *templatecache.Template {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if object := w.templates[name]; object != nil {
		return templatecache.Compile(object)
	}
	return nil
}

type library struct{ *world }

func (l library) Get(namespace, name string) *templatecache.Template {
	return l.template(types.NamespacedName{Namespace: namespace, Name: name})
}
func (l library) Len() int                      { return 1 }
func (l library) Synced() bool                  { return true }
func (l library) Listen(templatecache.Listener) {}

func (w *world) write(_ context.Context, t *templatecache.Template, status *v1beta1.VirtualMachineTemplateStatus) error {
	if w.fail != nil {
		return w.fail
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.writes++
	w.templates[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}].Status = *status
	return nil
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func start(t *testing.T, templates ...*v1beta1.VirtualMachineTemplate) (*world, *Reconciler, *events.FakeRecorder) {
	t.Helper()
	w := &world{t: t, fakeSources: fakeSources{objects: map[sources.Key]sources.Object{}}, templates: map[types.NamespacedName]*v1beta1.VirtualMachineTemplate{}}
	for _, one := range templates {
		w.templates[types.NamespacedName{Namespace: one.Namespace, Name: one.Name}] = one
	}
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	r := newReconciler(Options{Templates: library{w}, Recorder: recorder, Clock: clocktesting.NewFakeClock(noon)}, w, m)
	r.sources = &w.fakeSources
	return w, r, recorder
}

func (w *world) reconcile(r *Reconciler, name string) {
	w.t.Helper()
	if _, err := r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "golden", Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

const fromFedora = `
spec:
  virtualMachine:
    spec:
      runStrategy: Halted
      dataVolumeTemplates: [{metadata: {name: root}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: fedora}, storage: {}}}]
      template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: root}}]}}
`

func TestATemplateFollowsItsSources(t *testing.T) {
	w, r, recorder := start(t, vmt(t, "box", fromFedora))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	w.reconcile(r, "box")
	if got := w.templates[box].Status; meta.IsStatusConditionTrue(got.Conditions, "Ready") || got.Volumes[0].State != "NotFound" {
		t.Fatalf("got %+v", got)
	}
	r.announcer.report(r.identify, true)
	if got := <-recorder.Events; !strings.Contains(got, "Warning SourcesNotReady volume root: DataSource golden/fedora does not exist") {
		t.Errorf("event %s", got)
	}

	if r.isNews(box, templatecache.Compile(w.templates[box])) {
		t.Error("its own write is taken for news")
	}
	w.reconcile(r, "box")
	if w.writes != 1 {
		t.Errorf("%d writes although nothing changed", w.writes)
	}

	if got := r.index.of(in(sources.DataSource, "fedora")); len(got) != 1 || got[0] != box {
		t.Fatalf("nobody would hear of the DataSource: %v", got)
	}
	w.put(in(sources.DataSource, "fedora"), sources.Object{ReadyReported: true, Ready: true, To: in(sources.Claim, "disk")})
	w.put(in(sources.Claim, "disk"), sources.Object{Ready: true})
	w.reconcile(r, "box")
	want := v1beta1.TemplateVolume{Volume: "root", Kind: "DataSource", Namespace: "golden", Name: "fedora", SourceStatus: v1beta1.SourceStatus{State: "Ready"}}
	if diff := cmp.Diff([]v1beta1.TemplateVolume{want}, w.templates[box].Status.Volumes); diff != "" {
		t.Error(diff)
	}
	r.announcer.report(r.identify, true)
	if got := <-recorder.Events; !strings.Contains(got, "Normal Reconciled "+v1beta1.MessageReady) {
		t.Errorf("event %s", got)
	}
	if got := r.index.of(in(sources.Claim, "disk")); len(got) != 1 {
		t.Error("nobody would hear of the claim behind the DataSource")
	}

	delete(w.templates, box)
	w.reconcile(r, "box")
	if got := r.index.of(sources.Key{Kind: sources.DataSource}); len(got) != 0 {
		t.Errorf("a template that is gone is still told: %v", got)
	}
}

func TestATemplateReportsWhetherItLendsItsDisks(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", fromFedora), vmt(t, "near", strings.Replace(fromFedora, "namespace: golden, ", "", 1)))
	r.options.Lending = true
	box, near := types.NamespacedName{Namespace: "golden", Name: "box"}, types.NamespacedName{Namespace: "golden", Name: "near"}
	lent := func(of types.NamespacedName) string {
		one := meta.FindStatusCondition(w.templates[of].Status.Conditions, v1beta1.ConditionDisksLent)
		if one == nil {
			return ""
		}
		return fmt.Sprintf("%s/%s %s", one.Status, one.Reason, one.Message)
	}
	const (
		yes = "True/Lent users in other namespaces who may use the template get copies of its disks"
		no  = "False/NotLent VirtualMachines in other namespaces get this disk only where the ServiceAccount of their namespace may copy from golden: " +
			"spec.dataVolumeTemplates[0].spec.sourceRef: VirtualMachineTemplate golden/box does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend"
	)
	for _, step := range []struct {
		what    string
		labels  map[string]string
		lending bool
		want    string
	}{
		{"without the label", nil, true, no},
		{"with the label", map[string]string{"stencil.kubevirt.io/disk-access": "Lend"}, true, yes},
		{"where no disks are lent", map[string]string{"stencil.kubevirt.io/disk-access": "Lend"}, false, ""},
	} {
		w.templates[box].Labels, r.options.Lending = step.labels, step.lending
		if step.lending && !r.isNews(box, templatecache.Compile(w.templates[box])) {
			t.Errorf("%s: the change of the label is not processed", step.what)
		}
		w.reconcile(r, "box")
		if got := lent(box); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
		w.reconcile(r, "near")
		if got := lent(near); got != "" {
			t.Errorf("%s: a disk of the namespace of the VM: got %q", step.what, got)
		}
	}
}

func TestWhatSomebodyElseWroteIsPutRight(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", fromFedora))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	w.reconcile(r, "box")
	w.templates[box].Status.Volumes = nil
	if !r.isNews(box, templatecache.Compile(w.templates[box])) {
		t.Error("it is taken for the own write")
	}
	w.reconcile(r, "box")
	if len(w.templates[box].Status.Volumes) != 1 || w.writes != 2 {
		t.Errorf("%d writes, %+v", w.writes, w.templates[box].Status.Volumes)
	}
}

func TestWhereKubeVirtServesTheAPI(t *testing.T) {
	w, r, recorder := start(t, vmt(t, "box", fromFedora))
	r.options.External = true
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	// The fake stores what is applied as the whole status.
	write := func() string {
		w.reconcile(r, "box")
		if r.isNews(box, templatecache.Compile(w.templates[box])) {
			t.Error("its own write is taken for news")
		}
		var got []string
		for _, c := range w.templates[box].Status.Conditions {
			got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		return strings.Join(got, " ")
	}
	if got, want := write(), "Valid=True/Compiled SourcesReady=False/NotFound stencil.kubevirt.io/Ready=False/SourcesNotReady"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if diff := cmp.Diff(v1beta1.TemplateSources{}, w.templates[box].Status.TemplateSources); diff != "" {
		t.Errorf("fields that KubeVirt's definition does not have: %s", diff)
	}
	r.announcer.report(r.identify, true)
	if got := <-recorder.Events; !strings.Contains(got, "Warning SourcesNotReady volume root: DataSource golden/fedora does not exist") {
		t.Errorf("event %s", got)
	}

	// KubeVirt's controller writes its condition.
	meta.SetStatusCondition(&w.templates[box].Status.Conditions, metav1.Condition{Type: "Ready", Status: "True", Reason: "Reconciled", Message: v1beta1.MessageReady})
	if r.isNews(box, templatecache.Compile(w.templates[box])) {
		t.Error("the condition of KubeVirt's controller is taken for news")
	}
	w.reconcile(r, "box")
	if w.writes != 1 {
		t.Errorf("%d writes although nothing changed", w.writes)
	}

	w.put(in(sources.DataSource, "fedora"), sources.Object{ReadyReported: true, Ready: true, To: in(sources.Claim, "disk")})
	w.put(in(sources.Claim, "disk"), sources.Object{Ready: true})
	if got, want := write(), "Valid=True/Compiled SourcesReady=True/AllReady stencil.kubevirt.io/Ready=True/Reconciled"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.announcer.report(r.identify, true)
	if got := <-recorder.Events; !strings.Contains(got, "Normal Reconciled "+v1beta1.MessageReady) {
		t.Errorf("event %s", got)
	}
}

func TestATransitionKeepsItsTime(t *testing.T) {
	w, r, _ := start(t, vmt(t, "box", fromFedora))
	box := types.NamespacedName{Namespace: "golden", Name: "box"}
	w.reconcile(r, "box")
	clock := r.options.Clock.(*clocktesting.FakeClock)
	clock.Step(time.Hour)
	w.put(in(sources.DataSource, "fedora"), sources.Object{To: in(sources.Claim, "disk")})
	w.reconcile(r, "box")
	for kind, want := range map[string]time.Time{"Ready": noon, "SourcesReady": noon, "Valid": noon} {
		if got := meta.FindStatusCondition(w.templates[box].Status.Conditions, kind).LastTransitionTime.Time; !got.Equal(want) {
			t.Errorf("%s changed at %s, want %s", kind, got, want)
		}
	}
}

func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	w, r, recorder := start(t, vmt(t, "box", fromFedora))
	w.fail = errors.New("the API server is away")
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "golden", Name: "box"}}); !errors.Is(err, w.fail) {
		t.Fatalf("got %v", err)
	}
	r.announcer.report(r.identify, true)
	if len(recorder.Events) != 0 {
		t.Error("an event tells what was not written")
	}
	w.fail = nil
	w.reconcile(r, "box")
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestMetricsNameWhatIsNotReady(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.observe(types.NamespacedName{Namespace: "golden", Name: "good"}, &metav1.Condition{Status: "True"}, true)
	m.observe(types.NamespacedName{Namespace: "golden", Name: "bad"}, &metav1.Condition{Status: "False", Reason: "SourcesNotReady"}, true)
	m.observe(types.NamespacedName{Namespace: "golden", Name: "foggy"}, &metav1.Condition{Status: "Unknown", Reason: "Unknown"}, false)
	m.observe(types.NamespacedName{Namespace: "golden", Name: "gone"}, &metav1.Condition{Status: "False"}, true)
	m.observe(types.NamespacedName{Namespace: "golden", Name: "gone"}, nil, false)
	want := `
# HELP stencil_template_boot_source_stale VirtualMachineTemplates with an image that is older than the limit of its GoldenImage.
# TYPE stencil_template_boot_source_stale gauge
stencil_template_boot_source_stale 2
# HELP stencil_template_not_ready VirtualMachineTemplates that are not ready, one series each with the reason, for up to 1000 of them.
# TYPE stencil_template_not_ready gauge
stencil_template_not_ready{reason="SourcesNotReady",template="bad",template_namespace="golden"} 1
stencil_template_not_ready{reason="Unknown",template="foggy",template_namespace="golden"} 1
# HELP stencil_template_readiness VirtualMachineTemplates by the status of their condition Ready.
# TYPE stencil_template_readiness gauge
stencil_template_readiness{status="False"} 1
stencil_template_readiness{status="True"} 1
stencil_template_readiness{status="Unknown"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "stencil_template_boot_source_stale", "stencil_template_not_ready", "stencil_template_readiness"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v %v", problems, err)
	}
}
