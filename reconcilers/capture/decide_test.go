package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

var created = metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

// making returns the state of a one-minute-old request for shop/web in golden, modified by each function.
func making(changes ...func(*state)) *state {
	s := &state{now: created.Add(time.Minute), request: &v1beta1.VirtualMachineTemplateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "golden", Name: "r", UID: "r-uid", CreationTimestamp: created, Finalizers: []string{v1beta1.FinalizerSnapshotCleanup},
	}}}
	s.request.Spec.VirtualMachineRef = v1beta1.VirtualMachineReference{Namespace: "shop", Name: "web"}
	s.request.Spec.TemplateName = "t"
	for _, change := range changes {
		change(s)
	}
	return s
}

func withVM(s *state) { s.vm = &metav1.PartialObjectMetadata{} }

func withSnapshot(phase string, ready bool) func(*state) {
	return func(s *state) {
		s.snapshot = &snapshot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "capture-r-uid", UID: "s-uid", CreationTimestamp: created, Labels: map[string]string{v1beta1.LabelRequestUID: "r-uid"},
		}}
		s.snapshot.Spec.Source.Kind, s.snapshot.Spec.Source.Name = "VirtualMachine", "web"
		s.snapshot.Status.Phase, s.snapshot.Status.ReadyToUse = phase, ready
		if ready {
			s.snapshot.Status.Content = "c"
		}
	}
}

func recorded(s *state) {
	s.request.Status.SnapshotRef = &v1beta1.SnapshotReference{Namespace: "shop", Name: "capture-r-uid", UID: "s-uid"}
}

func withContent(s *state) {
	s.content = &content{}
	s.content.Spec.Source.VirtualMachine = map[string]any{}
}

func withDisk(name, phase string, owner types.UID) func(*state) {
	return func(s *state) {
		one := disk{name: name}
		if phase != "" {
			one.copy = &dataVolume{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{UID: owner}}}}
			one.copy.Status.Phase, one.copy.Status.Progress = phase, "N/A"
			if owner == "r-uid" {
				s.owned = append(s.owned, metav1.PartialObjectMetadata{ObjectMeta: one.copy.ObjectMeta})
			}
		}
		s.disks = append(s.disks, one)
	}
}

func withTemplate(owner types.UID) func(*state) {
	return func(s *state) {
		s.template = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: "t", UID: "t-uid"}}
		if owner != "" {
			s.template.OwnerReferences = []metav1.OwnerReference{{UID: owner}}
		}
	}
}

func linked(s *state) {
	s.request.OwnerReferences = []metav1.OwnerReference{{Kind: "VirtualMachineTemplate", Name: "t", UID: "t-uid"}}
}

func ended(ready metav1.ConditionStatus) func(*state) {
	return func(s *state) {
		s.request.Status.Conditions = []metav1.Condition{
			{Type: "Progressing", Status: "False", LastTransitionTime: created}, {Type: "Ready", Status: ready, LastTransitionTime: created},
		}
	}
}

func deleted(s *state)   { s.request.DeletionTimestamp = &created }
func unguarded(s *state) { s.request.Finalizers = nil }

func TestDecide(t *testing.T) {
	ready := []func(*state){withSnapshot("Succeeded", true), recorded, withContent}
	with := func(more ...func(*state)) []func(*state) { return append(append([]func(*state){}, ready...), more...) }
	ttl := func(seconds int32) func(*state) {
		return func(s *state) { s.request.Spec.TTLSecondsAfterFinished = &seconds }
	}
	for name, tc := range map[string]struct {
		state []func(*state)
		want  action
	}{
		"a new request is guarded first": {
			state: []func(*state){unguarded, withVM},
			want:  action{step: addFinalizer, reason: "Starting", message: "the request was accepted"},
		},
		"then the snapshot is taken": {
			state: []func(*state){withVM},
			want:  action{step: createSnapshot, reason: "Starting", message: "taking a snapshot of VirtualMachine shop/web"},
		},
		"a machine that does not exist is waited for": {
			want: action{step: wait, reason: "WaitingForMachine", message: "VirtualMachine shop/web does not exist; waiting for it until 2026-11-22T13:00:00Z", again: 15 * time.Second},
		},
		"one that is going ends it": {
			state: []func(*state){withVM, func(s *state) { s.vm.DeletionTimestamp = &created }},
			want:  action{step: fail, reason: "MachineNotFound", message: "VirtualMachine shop/web is being deleted"},
		},
		"a kind that nobody serves is waited for": {
			state: []func(*state){func(s *state) { s.unknown = "VirtualMachineSnapshot (snapshot.kubevirt.io/v1beta1)" }},
			want:  action{step: wait, reason: "WaitingForAPI", message: "waiting until the API server serves VirtualMachineSnapshot (snapshot.kubevirt.io/v1beta1)", again: longestWait},
		},
		"a snapshot that is there is remembered": {
			state: []func(*state){withSnapshot("", false)},
			want:  action{step: recordSnapshot, reason: "WaitingForSnapshot", message: "waiting for VirtualMachineSnapshot shop/capture-r-uid"},
		},
		"somebody else's snapshot is left alone": {
			state: []func(*state){withSnapshot("", false), func(s *state) { s.snapshot.Spec.Source.Name = "db" }},
			want:  action{step: fail, reason: "NameTaken", message: "VirtualMachineSnapshot shop/capture-r-uid exists, and was not taken for this request"},
		},
		"an older snapshot is somebody else's": {
			state: []func(*state){withSnapshot("", false), func(s *state) { s.snapshot.CreationTimestamp = metav1.NewTime(created.Add(-time.Second)) }},
			want:  action{step: fail, reason: "NameTaken", message: "VirtualMachineSnapshot shop/capture-r-uid exists, and was not taken for this request"},
		},
		"in the same namespace the label counts for nothing": {
			state: []func(*state){withSnapshot("", false), func(s *state) { s.request.Spec.VirtualMachineRef.Namespace = "golden" }},
			want:  action{step: fail, reason: "NameTaken", message: "VirtualMachineSnapshot golden/capture-r-uid exists, and was not taken for this request"},
		},
		"a snapshot that is not ready is waited for, with what it says": {
			state: []func(*state){withSnapshot("InProgress", false), recorded, withVM, func(s *state) { s.snapshot.Status.Error.Message = "no freeze" }},
			want:  action{step: wait, reason: "WaitingForSnapshot", message: "waiting for VirtualMachineSnapshot shop/capture-r-uid: InProgress: no freeze", again: longestWait},
		},
		"unless its machine is gone, which KubeVirt would wait for": {
			state: []func(*state){withSnapshot("InProgress", false), recorded},
			want:  action{step: fail, reason: "MachineNotFound", message: "VirtualMachine shop/web was deleted before its snapshot was taken"},
		},
		"a snapshot of which a part is gone ends it": {
			state: []func(*state){withSnapshot("Succeeded", false), recorded, func(s *state) { s.lost = []string{"vs-root", "vs-data"} }},
			want:  action{step: fail, reason: "SnapshotLost", message: "VirtualMachineSnapshot shop/capture-r-uid lost VolumeSnapshots before it had served: vs-root; vs-data"},
		},
		"a snapshot that has failed ends it": {
			state: []func(*state){withSnapshot("Failed", false), recorded, func(s *state) { s.snapshot.Status.Error.Message = "disk on fire" }},
			want:  action{step: fail, reason: "SnapshotFailed", message: "VirtualMachineSnapshot shop/capture-r-uid failed: disk on fire"},
		},
		"a snapshot that is gone ends it": {
			state: []func(*state){recorded, withVM},
			want:  action{step: fail, reason: "SnapshotLost", message: "VirtualMachineSnapshot shop/capture-r-uid was deleted before it had served"},
		},
		"and one of the same name is another": {
			state: []func(*state){withSnapshot("Succeeded", true), recorded, func(s *state) { s.snapshot.UID = "other" }},
			want:  action{step: fail, reason: "SnapshotLost", message: "VirtualMachineSnapshot shop/capture-r-uid was deleted before it had served"},
		},
		"a content that is gone ends it": {
			state: []func(*state){withSnapshot("Succeeded", true), recorded},
			want:  action{step: fail, reason: "SnapshotLost", message: "VirtualMachineSnapshotContent shop/c was deleted before it had served"},
		},
		"disks are copied": {
			state: with(withDisk("d1", "Succeeded", "r-uid"), withDisk("d2", "", "")),
			want:  action{step: createDataVolumes, reason: "WaitingForDataVolumes", message: "copying 2 disks: d2"},
		},
		"somebody else's DataVolume is left alone": {
			state: with(withDisk("d1", "Succeeded", "other")),
			want:  action{step: fail, reason: "NameTaken", message: "DataVolume d1 exists, and was not made for this request"},
		},
		"copies are waited for, with progress": {
			state: with(withDisk("d1", "Succeeded", "r-uid"), withDisk("d2", "CloneInProgress", "r-uid"), func(s *state) { s.disks[1].copy.Status.Progress = "12.5%" }),
			want:  action{step: wait, reason: "WaitingForDataVolumes", message: "1 of 2 disks are copied, waiting for d2 CloneInProgress 12.5%", again: longestWait},
		},
		"a copy that has failed ends it": {
			state: with(withDisk("d1", "Failed", "r-uid")),
			want:  action{step: fail, reason: "DataVolumeFailed", message: "DataVolume d1 failed: CDI gives no cause"},
		},
		"a copy that goes is waited for, and made anew": {
			state: with(withDisk("d1", "Succeeded", "r-uid"), func(s *state) { s.disks[0].copy.DeletionTimestamp = &created }),
			want:  action{step: wait, reason: "WaitingForDataVolumes", message: "0 of 1 disks are copied, waiting for d1 is being deleted, and will be made anew", again: longestWait},
		},
		"with all disks there comes the template": {
			state: with(withDisk("d1", "Succeeded", "r-uid")),
			want:  action{step: createTemplate, reason: "Finishing", message: "making VirtualMachineTemplate t"},
		},
		"a template of that name that was there ends it": {
			state: with(withTemplate("")),
			want:  action{step: fail, reason: "TemplateExists", message: "VirtualMachineTemplate t exists, and this request has not made it; choose another spec.templateName, or delete the template"},
		},
		"the template owns the request": {
			state: with(withTemplate("r-uid")),
			want:  action{step: linkRequest, reason: "Finishing", message: "VirtualMachineTemplate t was created"},
		},
		"and the disks": {
			state: with(withDisk("d1", "Succeeded", "r-uid"), withTemplate("r-uid"), linked),
			want:  action{step: handOver, reason: "Finishing", message: "the disks are handed over to VirtualMachineTemplate t"},
		},
		"a disk that is gone by then ends it": {
			state: with(withDisk("d1", "", ""), withTemplate("r-uid"), linked),
			want:  action{step: fail, reason: "DataVolumeFailed", message: "DataVolume d1, a disk of the template, was deleted"},
		},
		"then the snapshot goes": {
			state: with(withDisk("d1", "Succeeded", "t-uid"), withTemplate("r-uid"), linked),
			want:  action{step: deleteSnapshot},
		},
		"then the request lets go of the template": {
			state: []func(*state){recorded, withTemplate("r-uid"), linked},
			want:  action{step: releaseTemplate},
		},
		"and is finished": {
			state: []func(*state){recorded, withTemplate(""), linked},
			want:  action{step: finish},
		},
		"a template that is gone by then ends it": {
			state: []func(*state){recorded, linked},
			want:  action{step: fail, reason: "TemplateDeleted", message: "VirtualMachineTemplate t was deleted before the request was finished"},
		},
		"a template that is going ends it": {
			state: []func(*state){withTemplate("r-uid"), func(s *state) { s.template.DeletionTimestamp = &created }},
			want:  action{step: fail, reason: "TemplateDeleted", message: "VirtualMachineTemplate t was deleted before the request was finished"},
		},
		"time that is over ends it": {
			state: []func(*state){withSnapshot("InProgress", false), recorded, withVM, func(s *state) {
				s.request.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
				s.request.Status.Conditions = []metav1.Condition{{Type: "Progressing", Status: "True", Message: "waiting for x"}}
			}},
			want: action{step: fail, reason: "Timeout", message: "not finished within 1m0s; the last that was known: waiting for x"},
		},
		"the last look is when time is over": {
			state: []func(*state){withSnapshot("", false), recorded, withVM, func(s *state) { s.request.Spec.Timeout = &metav1.Duration{Duration: 70 * time.Second} }},
			want:  action{step: wait, reason: "WaitingForSnapshot", message: "waiting for VirtualMachineSnapshot shop/capture-r-uid", again: 10 * time.Second},
		},

		"a failed request stays when its template goes": {
			state: []func(*state){ended("False"), withTemplate("r-uid"), linked},
			want:  action{step: unlinkRequest},
		},
		"a failed request leaves no template": {
			state: []func(*state){ended("False"), withTemplate("r-uid")},
			want:  action{step: deleteTemplate},
		},
		"a failed request does not touch another's template": {
			state: []func(*state){ended("False"), withTemplate("")},
			want:  action{step: removeFinalizer},
		},
		"a failed request leaves no disks": {
			state: []func(*state){ended("False"), withDisk("d1", "Succeeded", "r-uid"), withSnapshot("", true), recorded},
			want:  action{step: deleteDataVolumes},
		},
		"a failed request leaves no snapshot": {
			state: []func(*state){ended("False"), withSnapshot("", false)},
			want:  action{step: deleteSnapshot},
		},
		"a failed request does not touch another's snapshot": {
			state: []func(*state){ended("False"), withSnapshot("", false), func(s *state) { s.snapshot.Spec.Source.Name = "db" }},
			want:  action{step: removeFinalizer},
		},
		"a failed request with nothing left rests": {
			state: []func(*state){ended("False"), unguarded, ttl(0)},
			want:  action{step: doNothing},
		},
		"a deleted request leaves nothing": {
			state: []func(*state){deleted, withSnapshot("", false)},
			want:  action{step: deleteSnapshot},
		},
		"a deleted request goes when nothing is left": {
			state: []func(*state){deleted},
			want:  action{step: removeFinalizer},
		},
		"a request that made a template leaves it there": {
			state: []func(*state){ended("True"), deleted, withTemplate(""), linked},
			want:  action{step: removeFinalizer},
		},
		"so does one whose template has lacks": {
			state: []func(*state){ended("False"), withTemplate(""), linked},
			want:  action{step: removeFinalizer},
		},
		"a ready request is released": {
			state: []func(*state){ended("True"), withTemplate(""), linked},
			want:  action{step: removeFinalizer},
		},
		"a ready request without a lifetime stays": {
			state: []func(*state){ended("True"), unguarded},
			want:  action{step: doNothing},
		},
		"a ready request stays for its lifetime": {
			state: []func(*state){ended("True"), unguarded, ttl(90)},
			want:  action{step: doNothing, again: 30 * time.Second},
		},
		"and goes after it": {
			state: []func(*state){ended("True"), unguarded, ttl(60)},
			want:  action{step: deleteRequest},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(making(tc.state...)), cmp.AllowUnexported(action{})); diff != "" {
				t.Errorf("action (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesOfDisksAreShortAndApart(t *testing.T) {
	long := "a-very-long.name-of-a-template-that-goes-on-and-on-and-on-until-no-label-holds-it"
	seen := map[string]bool{}
	for _, name := range []string{
		dataVolumeName("1", "t", "root"), dataVolumeName("2", "t", "root"), dataVolumeName("1", "t", "data"),
		dataVolumeName("1", long, "root"), dataVolumeName("1", long, "data"),
	} {
		if len(name) > 63 || seen[name] {
			t.Errorf("%q is too long, or there twice", name)
		}
		seen[name] = true
	}
	if got := dataVolumeName("1", "t", "root"); got != dataVolumeName("1", "t", "root") || got[:7] != "t-root-" {
		t.Errorf("got %q", got)
	}
}
