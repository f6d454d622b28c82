package transfer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/seal"
	"github.com/vmstencil/stencil/transfer"
)

var (
	capturedAt   = metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	requestKey   = types.NamespacedName{Namespace: "shop", Name: "golden"}
	unsealedRoot = &transfer.Seal{Sealed: seal.False, Count: 1, Lines: []string{"golden-root: /etc/machine-id (machine ID)"}}
)

const capturedVM = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "${NAME}"}, "spec": {
	"dataVolumeTemplates": [
		{"metadata": {"name": "root-${NAME}"}, "spec": {"source": {"pvc": {"name": "golden-root"}}}},
		{"metadata": {"name": "tools-${NAME}"}, "spec": {"source": {"pvc": {"name": "golden-tools"}}}},
		{"metadata": {"name": "other-${NAME}"}, "spec": {"source": {"pvc": {"name": "of-another", "namespace": "shop"}}}}],
	"template": {"spec": {
		"domain": {"devices": {"disks": [{"name": "root", "disk": {}}, {"name": "tools", "cdrom": {}}, {"name": "other", "disk": {}}]}},
		"volumes": [{"name": "root", "dataVolume": {"name": "root-${NAME}"}}, {"name": "tools", "dataVolume": {"name": "tools-${NAME}"}}, {"name": "other", "dataVolume": {"name": "other-${NAME}"}}]}}}}`

func dataVolume(name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(cdi.WithKind("DataVolume"))
	made.SetNamespace("shop")
	made.SetName(name)
	made.SetOwnerReferences(owners)
	return made
}

// newCaptureWorld has the request of a captured template.
func newCaptureWorld(t *testing.T) *world {
	t.Helper()
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplate", Name: "golden", UID: "template-1"}
	template := &v1beta1.VirtualMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden", UID: owner.UID, Generation: 3}}
	template.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(capturedVM)}
	request := &v1beta1.VirtualMachineTemplateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "golden", UID: "request-1", Generation: 1, CreationTimestamp: capturedAt, OwnerReferences: []metav1.OwnerReference{owner},
	}}
	request.Status.TemplateRef = &corev1.LocalObjectReference{Name: "golden"}
	request.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonReconciled, LastTransitionTime: capturedAt}}
	return newWorld(t, request, template, dataVolume("golden-root", owner), dataVolume("golden-tools", owner), dataVolume("of-another"))
}

// sealed returns the condition of the request.
func (w *world) sealed() *metav1.Condition {
	w.t.Helper()
	request := &v1beta1.VirtualMachineTemplateRequest{}
	if err := w.client.Get(w.t.Context(), requestKey, request); err != nil {
		w.t.Fatal(err)
	}
	return meta.FindStatusCondition(request.Status.Conditions, v1beta1.ConditionSealed)
}

func (w *world) line() string {
	c := w.sealed()
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

// change changes the request.
func (w *world) change(change func(*v1beta1.VirtualMachineTemplateRequest)) {
	w.t.Helper()
	request := &v1beta1.VirtualMachineTemplateRequest{}
	if err := w.client.Get(w.t.Context(), requestKey, request); err != nil {
		w.t.Fatal(err)
	}
	change(request)
	written := request.DeepCopy()
	err := w.client.Update(w.t.Context(), written)
	request.ResourceVersion = written.ResourceVersion
	if err = errors.Join(err, w.client.Status().Update(w.t.Context(), request)); err != nil {
		w.t.Fatal(err)
	}
}

const found = "False NotSealed golden-root: /etc/machine-id (machine ID)"

func TestTheDisksOfACaptureAreExamined(t *testing.T) {
	w := newCaptureWorld(t)
	c := w.manager()
	if err := w.run(c, 3); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "transfer-request-1"}, job); err != nil {
		t.Fatal(err)
	}
	volumes := job.Spec.Template.Spec.Volumes
	if len(volumes) != 2 || volumes[1].PersistentVolumeClaim == nil || !volumes[1].PersistentVolumeClaim.ReadOnly || volumes[1].PersistentVolumeClaim.ClaimName != "transfer-request-1-0" {
		t.Errorf("the mover has the volumes %+v", volumes)
	}
	if owners := job.OwnerReferences; len(owners) != 1 || owners[0].Kind != "VirtualMachineTemplateRequest" || owners[0].UID != "request-1" {
		t.Errorf("the Job has the owners %v", owners)
	}
	policy := &networkingv1.NetworkPolicy{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "transfer-request-1"}, policy); err != nil {
		t.Fatal(err)
	}
	if len(policy.Spec.Egress) > 0 || len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].From) != 1 {
		t.Errorf("the mover may connect to %+v and accept %+v", policy.Spec.Egress, policy.Spec.Ingress)
	}
	if held, _ := c.slots.counts(); held != 1 {
		t.Errorf("%d transfers are in progress", held)
	}
	if err := w.run(c, 20); err != nil {
		t.Fatal(err)
	}
	if got := w.line(); got != found {
		t.Errorf("got %s, want %s", got, found)
	}
	// The template was changed meanwhile: the report is about what the capture has created.
	want := metav1.Condition{Type: "Sealed", Status: "False", Reason: "NotSealed", Message: "golden-root: /etc/machine-id (machine ID)", ObservedGeneration: 1, LastTransitionTime: w.template.LastTransitionTime}
	if diff := cmp.Diff(&want, w.template); diff != "" {
		t.Error(diff)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if held, waiting := c.slots.counts(); held+waiting > 0 {
		t.Errorf("%d transfers are in progress, %d wait", held, waiting)
	}
	if got := <-w.events.Events; got != "Warning NotSealed golden-root: /etc/machine-id (machine ID)" || len(w.events.Events) > 0 {
		t.Errorf("event %s, and %d more", got, len(w.events.Events))
	}
	writes := len(w.writes)
	if err := w.run(c, 1); err != nil || len(w.writes) > writes {
		t.Errorf("it is examined again: %v, %v", err, w.writes[writes:])
	}
	w.change(func(r *v1beta1.VirtualMachineTemplateRequest) {
		r.Annotations = map[string]string{contract.AnnotationSealAcknowledged: "true"}
	})
	if err := w.run(c, 5); err != nil {
		t.Fatal(err)
	}
	if got := w.sealed(); got.Reason != "Acknowledged" || w.template.Reason != "Acknowledged" || w.template.ObservedGeneration != 1 {
		t.Errorf("the request has %+v, the template %+v", got, w.template)
	}
}

// TestAnotherManagerConcludesAnExamination kills the manager before and after each of its writes.
func TestAnotherManagerConcludesAnExamination(t *testing.T) {
	whole := newCaptureWorld(t)
	if err := whole.run(whole.manager(), 20); err != nil {
		t.Fatal(err)
	}
	if len(whole.writes) < 9 {
		t.Errorf("writes: %v", whole.writes)
	}
	for n, name := range whole.writes {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %t", n, name, done), func(t *testing.T) {
				w := newCaptureWorld(t)
				w.killAt, w.done = n, done
				if err := w.run(w.manager(), 20); !errors.Is(err, errKilled) {
					t.Fatalf("not killed: %v", err)
				}
				w.others()
				if err := w.run(w.manager(), 20); err != nil {
					t.Fatal(err)
				}
				if got := w.line(); got != found {
					t.Errorf("got %s, want %s", got, found)
				}
				if w.template == nil || w.template.Reason != "NotSealed" {
					t.Errorf("the template has %+v", w.template)
				}
				if left := w.left(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

// TestAnExaminationThatFails ends with a condition that is Unknown, and nothing is left.
func TestAnExaminationThatFails(t *testing.T) {
	const prefix = "Unknown NotExamined the disks were not examined: "
	quota := apierrors.NewForbidden(schema.GroupResource{Group: cdi.Group, Resource: "datavolumes"}, "transfer-request-1-0", errors.New("exceeded quota: small"))
	for name, tc := range map[string]struct {
		before func(*world)
		want   string
	}{
		"the template was deleted, but not its request": {func(w *world) {
			_ = w.client.Delete(w.t.Context(), &v1beta1.VirtualMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden"}})
		}, "VirtualMachineTemplate shop/golden was deleted in the meantime"},
		"another template of its name": {func(w *world) {
			w.change(func(r *v1beta1.VirtualMachineTemplateRequest) { r.OwnerReferences[0].UID = "template-0" })
		}, "VirtualMachineTemplate shop/golden was deleted in the meantime"},
		"no disk was captured": {func(w *world) {
			_ = w.client.Delete(w.t.Context(), dataVolume("golden-root"))
		}, "VirtualMachineTemplate shop/golden has no captured disk"},
		"CDI fails": {func(w *world) { w.copied = map[string]any{"phase": "Failed"} },
			"CDI could not copy the disk root: DataVolume shop/transfer-request-1-0 has failed"},
		"a quota": {func(w *world) {
			w.denied = func(kind string) error {
				if kind == "DataVolume" {
					return quota
				}
				return nil
			}
		}, `the examination has not finished within 1h0m0s; the last that was known: copying the disk root: datavolumes.cdi.kubevirt.io "transfer-request-1-0" is forbidden: exceeded quota: small`},
		"no storage": {func(w *world) {
			w.copied = map[string]any{"phase": "Pending", "conditions": []any{map[string]any{"type": "Bound", "status": "False", "message": "no storage class"}}}
		}, "the examination has not finished within 1h0m0s; the last that was known: waiting for DataVolume transfer-request-1-0, a copy of the disk root: no storage class"},
		"a mover that fails": {func(w *world) {
			w.mover = transfer.State{Phase: transfer.Failed, Failure: &transfer.Failure{Reason: transfer.ReasonInvalidTask, Message: `the task has the stage "Examine"`}}
		}, `the task has the stage "Examine"`},
		"a mover that reports nothing": {func(w *world) { w.mover.Seal = nil }, "the mover reports nothing"},
		"a Job that fails": {func(w *world) {
			w.job.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Message: "BackoffLimitExceeded"}}
		}, "the mover has failed again and again: BackoffLimitExceeded"},
		"it is switched off": {func(w *world) {
			w.settings.ExamineCaptures = false
			w.change(func(r *v1beta1.VirtualMachineTemplateRequest) {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: "Sealed", Status: "Unknown", Reason: "Examining", LastTransitionTime: capturedAt})
			})
		}, "the disks of captures are not examined any more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCaptureWorld(t)
			w.tick = time.Minute
			tc.before(w)
			if err := w.run(w.manager(), 100); err != nil {
				t.Fatal(err)
			}
			if got, want := w.line(), prefix+tc.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if left := w.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if took := w.clock.Since(capturedAt.Time); took > examineTimeout+3*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestAnExaminationWaitsForOthers(t *testing.T) {
	w := newCaptureWorld(t)
	w.mover.Phase = transfer.Running
	c := w.manager()
	other := place{directionExport, types.NamespacedName{Namespace: "shop", Name: "out"}}
	if begins, err := c.slots.take(t.Context(), other, capturedAt.Time); err != nil || !begins {
		t.Fatal(begins, err)
	}
	w.tick = time.Minute
	if err := w.run(c, 70); err != nil {
		t.Fatal(err)
	}
	if got, want := w.line(), "Unknown Queued waiting until others have ended: 1 imports, exports and examinations of captures are in progress, which is the limit"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("it has begun: %v", left)
	}
	c.slots.leave(other)
	w.tick = time.Second
	// The time that it has waited does not count.
	if err := w.run(c, 10); err != nil {
		t.Fatal(err)
	}
	if got, want := w.line(), "Unknown Examining examining the disks"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if begun, err := inProgress(t.Context(), w.client); err != nil || len(begun) != 1 || begun[0] != (place{directionCapture, requestKey}) {
		t.Errorf("another manager finds %v in progress: %v", begun, err)
	}
	w.mover.Phase = transfer.Succeeded
	if err := w.run(c, 10); err != nil || w.line() != found {
		t.Errorf("%s: %v", w.line(), err)
	}
}

func TestWhatIsDueForARequest(t *testing.T) {
	ready := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: capturedAt}
	sealed := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: v1beta1.ConditionSealed, Status: status, Reason: reason}
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		change     func(*v1beta1.VirtualMachineTemplateRequest)
		disabled   bool
		later      time.Duration
		want       due
	}{
		{name: "it has succeeded", conditions: []metav1.Condition{ready}, want: examination},
		{name: "captures are not examined", conditions: []metav1.Condition{ready}, disabled: true, want: nothing},
		{name: "it succeeded long ago", conditions: []metav1.Condition{ready}, later: examineDelay, want: nothing},
		{name: "it has not ended", want: nothing},
		{name: "it has failed", conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse}}, want: nothing},
		{name: "it deletes its snapshot", conditions: []metav1.Condition{ready}, want: nothing, change: func(r *v1beta1.VirtualMachineTemplateRequest) {
			r.Finalizers = []string{v1beta1.FinalizerSnapshotCleanup}
		}},
		{name: "it is being deleted", conditions: []metav1.Condition{ready}, want: nothing, change: func(r *v1beta1.VirtualMachineTemplateRequest) {
			r.DeletionTimestamp = &capturedAt
		}},
		{name: "it waits for others", conditions: []metav1.Condition{ready, sealed("Unknown", "Queued")}, later: 24 * time.Hour, want: examination},
		{name: "its disks are being examined", conditions: []metav1.Condition{ready, sealed("Unknown", "Examining")}, disabled: true, want: examination},
		{name: "its copies are being deleted", conditions: []metav1.Condition{ready, sealed("True", "Examined")}, want: examination},
		{name: "it was examined", conditions: []metav1.Condition{ready, sealed("Unknown", "NotExamined")}, want: nothing},
		{name: "it is acknowledged", conditions: []metav1.Condition{ready, sealed("Unknown", "NotExamined")}, want: reason, change: func(r *v1beta1.VirtualMachineTemplateRequest) {
			r.Annotations = map[string]string{contract.AnnotationSealAcknowledged: "true"}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := &v1beta1.VirtualMachineTemplateRequest{}
			request.Status.TemplateRef = &corev1.LocalObjectReference{Name: "golden"}
			request.Status.Conditions = tc.conditions
			if tc.change != nil {
				tc.change(request)
			}
			if got := dueOf(request, !tc.disabled, capturedAt.Add(tc.later)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
