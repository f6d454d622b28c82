package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const revisionUser = "system:serviceaccount:stencil-system:stencil-revisions"

var controllerRevisions = &kindOf{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ControllerRevision"}, "controllerrevisions"}

// TestRevisionsThatTheManagerWrites checks each field that the account of stored instance types must not choose.
func TestRevisionsThatTheManagerWrites(t *testing.T) {
	const (
		good = `{metadata: {name: web, namespace: team-a, labels: {a: b}, ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]},
			data: {apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineInstancetype}}`
		content = "Stencil's manager writes ControllerRevisions with data of the API group instancetype.kubevirt.io only: do that as another user"
		owner   = "Stencil's manager writes ControllerRevisions with at most one owner only, a VirtualMachine or a VirtualMachineSnapshot: do that as another user"
		fixed   = "Stencil's manager changes neither owners nor finalizers of a ControllerRevision: do that as another user"
	)
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	policy := evaluate(t, "manager-revisions", nil)
	for _, tc := range []written{
		{name: "a copy", after: good},
		{name: "a copy of a snapshot", after: change("kubevirt.io/v1, kind: VirtualMachine,", "snapshot.kubevirt.io/v1beta1, kind: VirtualMachineSnapshot,")},
		{name: "a SpecRevision, which is restored", after: change("v1beta1, kind: VirtualMachineInstancetype", "v1alpha1, spec: e30=")},
		{name: "without an owner", after: change("ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]", "generation: 1")},
		{name: "its deletion", before: good},
		{name: "its deletion, whatever owns it later", before: change("kind: VirtualMachine,", "kind: VirtualMachineSnapshot,", "kubevirt.io/v1,", "snapshot.kubevirt.io/v1beta1,")},
		{name: "an empty list of owners", after: change("[{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]", "[]")},
		{name: "labels", before: good, after: change("a: b", "a: c")},
		{name: "another user writes anything", as: "system:serviceaccount:kube-system:daemon-set-controller", after: change("instancetype.kubevirt.io/v1beta1", "apps/v1")},
		{name: "the revision of a DaemonSet", after: change("{apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineInstancetype}", "{spec: {template: {}}}"), want: content},
		{name: "without data", after: change("data: {apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineInstancetype}", "revision: 1"), want: content},
		{name: "data of a group with that beginning", after: change("instancetype.kubevirt.io/v1beta1", "instancetype.kubevirt.io.example.com/v1"), want: content},
		{name: "an update to the data of a DaemonSet", before: good, after: change("instancetype.kubevirt.io/v1beta1", "apps/v1"), want: content},
		{name: "the deletion of that of a DaemonSet", before: change("{apiVersion: instancetype.kubevirt.io/v1beta1, kind: VirtualMachineInstancetype}", "{spec: {template: {}}}"), want: content},
		{name: "an owner of another kind", after: change("kind: VirtualMachine,", "kind: DaemonSet,"), want: owner},
		{name: "an owner of another group", after: change("kubevirt.io/v1,", "apps/v1,"), want: owner},
		{name: "two owners", after: change("ownerReferences: [", "ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: c, uid: c}, "), want: owner},
		{name: "another owner later", before: good, after: change("uid: u", "uid: v"), want: fixed},
		{name: "the deletion of one with two owners", before: change("ownerReferences: [", "ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: c, uid: c}, "), want: owner},
		{name: "no owner any more", before: good, after: change("ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]", "generation: 1"), want: fixed},
		{name: "an owner of another kind that it had before", before: change("kind: VirtualMachine,", "kind: DaemonSet,"), after: change("kind: VirtualMachine,", "kind: DaemonSet,", "a: b", "a: c"), want: owner},
		{name: "a finalizer that is removed", before: change("labels:", "finalizers: [x/y], labels:"), after: good, want: fixed},
		{name: "a finalizer", before: good, after: change("labels:", "finalizers: [x/y], labels:"), want: fixed},
	} {
		if tc.as == "" {
			tc.as = revisionUser
		}
		t.Run(tc.name, func(t *testing.T) { tc.run(t, policy, controllerRevisions, "controllerrevisions") })
	}
	off := evaluate(t, "manager-revisions", map[string]string{"revisionUser": "''"})
	written{as: revisionUser, after: change("instancetype.kubevirt.io/v1beta1", "apps/v1")}.run(t, off, controllerRevisions, "controllerrevisions")
}

// TestUsersDoNotReplaceStoredInstancetypes checks who writes stored copies in a governed namespace.
func TestUsersDoNotReplaceStoredInstancetypes(t *testing.T) {
	const (
		stored = `{metadata: {name: web, namespace: team-a}, data: {apiVersion: instancetype.kubevirt.io/v1beta1}}`
		denied = "this ControllerRevision stores the instance type or preference of a VirtualMachine, and KubeVirt and Stencil alone write it in a namespace that TemplateApproval sizes governs: to migrate it, use stencilctl revisions"
		gc     = "system:serviceaccount:kube-system:generic-garbage-collector"
	)
	policy := evaluate(t, "stored-instancetypes", map[string]string{"exemptUsers": "['" + gc + "']"})
	for _, tc := range []written{
		{name: "a user creates one", as: "alice", after: stored, want: denied},
		{name: "a user deletes one", as: "alice", before: stored, want: denied},
		{name: "a user labels one", as: "alice", before: stored, after: strings.Replace(stored, "name: web,", "name: web, labels: {a: b},", 1), want: denied},
		{name: "an administrator is a user", as: "kubernetes-admin", before: stored, want: denied},
		{name: "the account of Stencil replaces it", as: revisionUser, before: stored},
		{name: "and creates", as: revisionUser, after: stored},
		{name: "the garbage collector deletes it", as: gc, before: stored},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.request(t, controllerRevisions, "controllerrevisions")
			r.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Annotations: map[string]string{v1alpha1.AnnotationApprovals: "1;sizes;;"}}}
			if got, _ := policy.decide(t, r); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestOtherRevisionsAreNoStoredInstancetypes checks the match condition.
func TestOtherRevisionsAreNoStoredInstancetypes(t *testing.T) {
	condition := all(t)["stored-instancetypes"].Spec.MatchConditions[0].Expression
	policy := evaluate(t, "stored-instancetypes", nil, condition)
	for object, want := range map[string]bool{
		`{metadata: {name: x}, data: {spec: {template: {}}}}`:                                      false,
		`{metadata: {name: x, labels: {app: web}}, revision: 1}`:                                   false,
		`{metadata: {name: x}, data: {apiVersion: instancetype.kubevirt.io/v1alpha1, spec: e30=}}`: true,
		`{metadata: {name: x, labels: {instancetype.kubevirt.io/object-kind: X}}}`:                 true,
		`{metadata: {name: x, labels: {stencil.kubevirt.io/revision-backup: "true"}}}`:             true,
	} {
		for _, w := range []written{{after: object}, {before: object}, {before: object, after: object}} {
			results, _, err := policy.run(t.Context(), policy.evaluator, w.request(t, controllerRevisions, "controllerrevisions"), 1<<30)
			if err != nil || results[0].Error != nil {
				t.Fatal(err, results[0].Error)
			}
			if got := results[0].EvalResult.Value() == true; got != want {
				t.Errorf("%s: matches %v, want %v", object, got, want)
			}
		}
	}
}
