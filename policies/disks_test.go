package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const diskUser = "system:serviceaccount:stencil-system:stencil-disks"

// TestDisksThatTheManagerCreates checks each field that the account of lent disks must not choose.
func TestDisksThatTheManagerCreates(t *testing.T) {
	const (
		good = `{metadata: {name: web, namespace: team-a, labels: {kubevirt.io/created-by: u}, annotations: {a: b, cdi.kubevirt.io/storage.clone.token: x, cdi.kubevirt.io/allowClaimAdoption: "true"},
			ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]}, spec: {source: {pvc: {namespace: golden, name: fedora}}, storage: {resources: {}}}}`
		owner  = "Stencil's manager creates DataVolumes for one VirtualMachine only, which controls them and whose UID is in label kubevirt.io/created-by: create it as another user"
		copies = "Stencil's manager creates DataVolumes as copies of one claim or VolumeSnapshot of another namespace only, in spec.source.pvc or spec.source.snapshot: create it as another user"
		filled = "Stencil's manager creates DataVolumes without annotations of CDI that change how they are filled: create it as another user"
		none   = "Stencil's manager creates the disks that templates lend, and changes and deletes none: do that as another user"
	)
	dataVolumes := &kindOf{schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, "datavolumes"}
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(good) }
	policy := evaluate(t, "manager-disks", nil)
	for _, tc := range []written{
		{name: "a copy of a claim for a VM", after: good},
		{name: "a copy of a snapshot", after: change("pvc:", "snapshot:")},
		{name: "another user creates anything", as: "system:serviceaccount:team-a:default", after: change("ownerReferences", "finalizers", "[{", "[", "}]", "]", "apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true", "a/b")},
		{name: "without an owner", after: change("ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: u, controller: true}]", "generation: 1"), want: owner},
		{name: "an owner of another kind", after: change("kind: VirtualMachine,", "kind: Namespace,"), want: owner},
		{name: "an owner that does not control it", after: change("controller: true", "controller: false"), want: owner},
		{name: "two owners", after: change("ownerReferences: [", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}, "), want: owner},
		{name: "the label of another VM", after: change("created-by: u", "created-by: v"), want: owner},
		{name: "without the label", after: change("kubevirt.io/created-by: u", "a: b"), want: owner},
		{name: "a source of the same namespace", after: change("namespace: golden", "namespace: team-a"), want: copies},
		{name: "a source without a namespace", after: change("namespace: golden, ", ""), want: copies},
		{name: "a source without a name", after: change("namespace: golden, name: fedora", "namespace: golden"), want: copies},
		{name: "another source", after: change("pvc: {namespace: golden, name: fedora}", "http: {url: x}"), want: copies},
		{name: "two sources", after: change("source: {", "source: {snapshot: {namespace: golden, name: a}, "), want: copies},
		{name: "a DataSource", after: change("source: {pvc: {", "sourceRef: {kind: DataSource, namespace: golden, name: a}, source: {pvc: {"), want: copies},
		{name: "a source of the storage", after: change("resources: {}", "dataSource: {kind: PersistentVolumeClaim, name: a}"), want: copies},
		{name: "a source of the claim", after: change("storage: {resources: {}}", "pvc: {dataSourceRef: {kind: PersistentVolumeClaim, name: a}}"), want: copies},
		{name: "a PersistentVolume", after: change("resources: {}", "volumeName: pv"), want: copies},
		{name: "no source", after: change("source: {pvc: {namespace: golden, name: fedora}}, ", ""), want: copies},
		{name: "a disk that is said to be filled", after: change("a: b", `cdi.kubevirt.io/storage.prePopulated: "true"`), want: filled},
		{name: "a change", before: good, after: change("a: b", "a: c"), want: none},
		{name: "a deletion", before: good, want: none},
	} {
		if tc.as == "" {
			tc.as = diskUser
		}
		t.Run(tc.name, func(t *testing.T) { tc.run(t, policy, dataVolumes, "datavolumes") })
	}
}

// TestWhoLendsDisks tests who may set the label, and that the accounts that set it for users may.
func TestWhoLendsDisks(t *testing.T) {
	const (
		lends  = "{metadata: {name: web, labels: {stencil.kubevirt.io/disk-access: Lend}}, spec: {virtualMachine: {}}}"
		denied = "label stencil.kubevirt.io/disk-access=Lend lends the disks of the namespace that the template names, and you may not copy them yourself: ask an administrator of the namespace for verb create on datavolumes/source.cdi.kubevirt.io, or leave the label out"
	)
	kind := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplate"}, "virtualmachinetemplates"}
	policy := evaluate(t, "disk-lending", nil)
	for name, tc := range map[string]struct {
		as   string
		may  permits
		want string
	}{
		"who may copy":                {"ada", permits{"create datavolumes/source golden/"}, ""},
		"who may read claims by pods": {"ada", permits{"create pods golden/", "create persistentvolumeclaims golden/"}, ""},
		"who may create pods only":    {"ada", permits{"create pods golden/"}, denied},
		"who may not":                 {"ada", nil, denied},
		"the manager, for a capture":  {managerName, nil, ""},
		"the account, for an import":  {transferUser, nil, ""},
		"another account of its name": {"system:serviceaccount:team:stencil-transfers", nil, denied},
	} {
		t.Run(name, func(t *testing.T) {
			r := written{as: tc.as, after: lends}.request(t, kind, kind.resource)
			r.namespace, r.authorizer = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "golden"}}, tc.may
			if got, _ := policy.decide(t, r); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	off := evaluate(t, "disk-lending", map[string]string{"transferUser": "''"})
	r := written{as: transferUser, after: lends}.request(t, kind, kind.resource)
	r.namespace, r.authorizer = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "golden"}}, permits(nil)
	if got, _ := off.decide(t, r); got != denied {
		t.Errorf("where nothing is imported: %s", got)
	}
}
