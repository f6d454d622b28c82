package lending

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const notPermitted = "User system:serviceaccount:team-a:default has insufficient permissions in clone source namespace golden"

func vm(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{metadata: {name: web, namespace: team-a, uid: vm-1}, spec: {template: {spec: {priorityClassName: high}}}}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// lent is a disk that the template lends and that does not exist.
func lent(change func(*disk)) []disk {
	d := disk{
		Loan: disks.Loan{
			Template: disks.Template{Name: "web-root"}, Source: disks.Source{Kind: disks.DataSourceKind, Namespace: "golden", Name: "fedora"},
			DataVolume: map[string]any{
				"metadata": map[string]any{"name": "web-root", "labels": map[string]any{"a": "b", disks.CreatedBy: "forged"}, "annotations": map[string]any{
					"c": "d", annotationBind: "", annotationLentBy: "forged", "cdi.kubevirt.io/storage.prePopulated": "x", "cdi.kubevirt.io/storage.clone.token": "stolen",
				}},
				"spec": map[string]any{"sourceRef": map[string]any{"kind": "DataSource", "name": "fedora"}, "storage": map[string]any{"resources": map[string]any{}}},
			},
		},
		source: disks.Resolved{Source: disks.Source{Kind: disks.ClaimKind, Namespace: "golden", Name: "fedora-123"}, Through: []string{"golden"}, Found: &metav1.ObjectMeta{}},
	}
	if change != nil {
		change(&d)
	}
	return []disk{d}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		disks   []disk
		failure string
		gone    bool
		// want are the DataVolumes, the denials and what is waited for.
		create, denials []string
		waits           string
	}{
		"a disk that is lent":                    {disks: lent(nil), create: []string{"web-root"}},
		"KubeVirt's failure changes nothing":     {disks: lent(nil), failure: notPermitted, create: []string{"web-root"}},
		"a VM that is deleted":                   {gone: true, disks: lent(nil)},
		"a disk that exists":                     {disks: lent(func(d *disk) { d.dataVolume = &metav1.ObjectMeta{} })},
		"its own claim without its DataVolume":   {disks: lent(func(d *disk) { d.claim = &metav1.ObjectMeta{Labels: map[string]string{disks.CreatedBy: "vm-1"}} }), create: []string{"web-root"}},
		"a source that does not exist":           {disks: lent(func(d *disk) { d.source.Found, d.source.Problem = nil, "DataSource golden/fedora does not exist" }), waits: "DataSource golden/fedora does not exist"},
		"a source that is being deleted":         {disks: lent(func(d *disk) { d.source.Found.DeletionTimestamp = &metav1.Time{} }), waits: "PersistentVolumeClaim golden/fedora-123 is being deleted"},
		"a denial while KubeVirt may copy":       {disks: lent(func(d *disk) { d.Denial = "it is not lent" })},
		"a denial after another failure":         {disks: lent(func(d *disk) { d.Denial = "it is not lent" }), failure: "exceeded quota"},
		"a denial, and KubeVirt may not copy":    {disks: lent(func(d *disk) { d.Denial = "it is not lent" }), failure: notPermitted, denials: []string{"it is not lent"}},
		"the claim of another user":              {disks: lent(func(d *disk) { d.claim = &metav1.ObjectMeta{} }), failure: notPermitted, denials: []string{"PersistentVolumeClaim team-a/web-root exists: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"}},
		"the claim of an earlier VM of the name": {disks: lent(func(d *disk) { d.claim = &metav1.ObjectMeta{Labels: map[string]string{disks.CreatedBy: "vm-0"}} }), failure: notPermitted, denials: []string{"PersistentVolumeClaim team-a/web-root exists: its label kubevirt.io/created-by names another VirtualMachine"}},
		"a DataSource that was retargeted":       {disks: lent(func(d *disk) { d.source.Namespace = "finance" }), failure: notPermitted, denials: []string{"VirtualMachineTemplate golden/fedora lends only what is in its own namespace, and PersistentVolumeClaim finance/fedora-123 is not"}},
		"a DataSource that another selects":      {disks: lent(func(d *disk) { d.outside = "finance" }), failure: notPermitted, denials: []string{"VirtualMachineTemplate golden/fedora lends only what is in its own namespace, and a DataSource of namespace finance selects it"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{vm: vm(t), record: machine.Record{Namespace: "golden", Name: "fedora", UID: "t-1"}, failure: tc.failure, disks: tc.disks}
			if tc.gone {
				s.vm = nil
			}
			p := decide(s)
			var created, denials []string
			for _, each := range p.create {
				created = append(created, each.GetName())
			}
			for _, each := range p.denials {
				denials = append(denials, each.reason)
			}
			if diff := cmp.Diff([]any{tc.create, tc.denials, tc.waits}, []any{created, denials, p.waits}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestManifest(t *testing.T) {
	s := &state{vm: vm(t), record: machine.Record{Namespace: "golden", Name: "fedora", UID: "t-1"}}
	d := &lent(nil)[0]
	before := (&unstructured.Unstructured{Object: d.DataVolume}).DeepCopy()
	got := s.manifest(d)
	want := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  namespace: team-a
  name: web-root
  labels: {a: b, kubevirt.io/created-by: vm-1}
  annotations:
    c: d
    cdi.kubevirt.io/allowClaimAdoption: "true"
    cdi.kubevirt.io/storage.bind.immediate.requested: ""
    stencil.kubevirt.io/lent-by: golden/fedora t-1
  ownerReferences: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, name: web, uid: vm-1, controller: true, blockOwnerDeletion: false}]
spec:
  source: {pvc: {namespace: golden, name: fedora-123}}
  storage: {resources: {}}
  priorityClassName: high
`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, d.DataVolume); diff != "" {
		t.Errorf("the VirtualMachine was modified:\n%s", diff)
	}
	d.source.Kind = disks.SnapshotKind
	if _, found, _ := unstructured.NestedMap(s.manifest(d).Object, "spec", "source", "snapshot"); !found {
		t.Error("a snapshot is not copied as one")
	}
}

func TestReduce(t *testing.T) {
	const (
		record = `annotations: {template.kubevirt.io/template-ref: golden/fedora, template.kubevirt.io/rendered: '{"namespace":"golden","name":"fedora","uid":"t-1"}'}`
		disk   = `dataVolumeTemplates: [{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: f}}}, {metadata: {name: b}, spec: {source: {blank: {}}}}]`
	)
	for name, tc := range map[string]struct {
		text string
		want borrower
	}{
		"a disk of another namespace": {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, generation: 2, ` + record + `}, spec: {template: {}, ` + disk + `}}`,
			borrower{UID: "u", Generation: 2, Template: templateName("golden", "fedora"), Disks: " a b"}},
		"one that KubeVirt could not create": {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, ` + record + `}, spec: {template: {}, ` + disk + `}, status: {conditions: [{type: Failure, status: "True", message: denied}]}}`,
			borrower{UID: "u", Template: templateName("golden", "fedora"), Disks: " a b", Failed: true}},
		"a VM of the namespace of the template":           {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: golden, name: web, uid: u, ` + record + `}, spec: {template: {}, ` + disk + `}}`, borrower{}},
		"a record of another template than the reference": {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, ` + strings.Replace(record, "golden/fedora", "golden/debian", 1) + `}, spec: {template: {}, ` + disk + `}}`, borrower{}},
		"a record without a reference":                    {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, ` + strings.Replace(record, "template.kubevirt.io/template-ref: golden/fedora, ", "", 1) + `}, spec: {template: {}, ` + disk + `}}`, borrower{}},
		"a reference without a namespace":                 {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, ` + strings.Replace(record, "golden/fedora", "fedora", 1) + `}, spec: {template: {}, ` + disk + `}}`, borrower{}},
		"a VM without a template":                         {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u}, spec: {template: {}, ` + disk + `}}`, borrower{}},
		"a VM that is being deleted":                      {`{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {namespace: team-a, name: web, uid: u, deletionTimestamp: "2026-11-24T00:00:00Z", ` + record + `}, spec: {template: {}, ` + disk + `}}`, borrower{}},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(strings.TrimSpace(tc.text)))
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, reduce(u)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGrantNamesTheNamespaceOfTheSource(t *testing.T) {
	got := denial{disk: &lent(nil)[0]}.grant("team-a")
	if !strings.Contains(got, "kubectl create role copy-to-team-a -n golden --verb=create --resource=datavolumes.cdi.kubevirt.io/source") ||
		!strings.Contains(got, "--serviceaccount=team-a:default") {
		t.Error(got)
	}
}

func templateName(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestTemplatesThatLend(t *testing.T) {
	w := newWake(wake{})
	name := templateName("golden", "fedora")
	version := func(uid types.UID, generation int64, access string) *templatecache.Template {
		return templatecache.Compile(&v1beta1.VirtualMachineTemplate{ObjectMeta: metav1.ObjectMeta{
			UID: uid, Generation: generation, Labels: map[string]string{"stencil.kubevirt.io/disk-access": access},
		}})
	}
	for i, step := range []struct {
		template *templatecache.Template
		want     bool
	}{
		{version("a", 1, "Lend"), true}, {version("a", 1, "Lend"), false}, {version("a", 2, "Lend"), true}, {version("a", 2, ""), false},
		{version("a", 2, "Lend"), true}, {nil, false}, {version("a", 2, "Lend"), true}, {version("b", 2, "Lend"), true},
	} {
		if got := w.lent(name, step.template); got != step.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
}
