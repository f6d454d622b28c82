package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// times is how often a transfer is reconciled at most.
const times = 40

var (
	claimKind    = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	templateKind = v1beta1.GroupVersion.WithKind("VirtualMachineTemplate")
)

// newImportWorld has an import of a package with two disks.
func newImportWorld(t *testing.T) *world {
	t.Helper()
	object := &v1beta1.VirtualMachineTemplateImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "import-1", Generation: 1, CreationTimestamp: capturedAt, Annotations: map[string]string{contract.AnnotationWrittenBy: "1 ada"}}}
	object.Spec.Source.HTTP = &v1beta1.ImportSourceHTTP{URL: "https://example.com/web.ova"}
	w := newWorld(t, object)
	w.inspector = transfer.State{Phase: transfer.Succeeded, Plan: &transfer.Plan{
		Format: "OVA", Description: "sha256:1", Size: 7, Template: json.RawMessage(`{"spec": {"virtualMachine": {"spec": {"template": {"spec": {"domain": {}}}}}}}`),
		Disks: []transfer.PlannedDisk{{Name: "web-root", Volume: "root", File: "r.vmdk", Size: 1 << 20}, {Name: "web-data", Volume: "data", File: "d.vmdk", Size: 1 << 20}},
	}}
	return w
}

func (w *world) imports() reconcile.Reconciler { return &Imports{w.runner()} }

// newExportWorld has an export of a template with a disk.
func newExportWorld(t *testing.T) *world {
	t.Helper()
	object := &v1beta1.VirtualMachineTemplateExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden", UID: "export-1", Generation: 1, CreationTimestamp: capturedAt, Annotations: map[string]string{contract.AnnotationWrittenBy: "1 ada"}}}
	object.Spec.TemplateRef.Name, object.Spec.TTL = "golden", &metav1.Duration{Duration: time.Minute}
	template := &v1beta1.VirtualMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden", UID: "template-1", Generation: 3}}
	template.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "golden"}, "spec": {
		"dataVolumeTemplates": [{"metadata": {"name": "golden-1"}, "spec": {"source": {"pvc": {"name": "golden-root"}}, "storage": {}}}],
		"template": {"spec": {"domain": {"devices": {"disks": [{"name": "root", "disk": {}}]}}, "volumes": [{"name": "root", "dataVolume": {"name": "golden-1"}}]}}}}`)}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "golden-root"}}
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	w := newWorld(t, object, template, claim)
	w.mover.Digest, w.mover.Size = "sha256:7", 7
	return w
}

func (w *world) exports() reconcile.Reconciler { return &Exports{w.runner(), nil} }

// phase returns phase and message of the object that is reconciled.
func (w *world) phase(object client.Object) string {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), w.key, object); err != nil {
		w.t.Fatal(err)
	}
	var phase v1beta1.TransferPhase
	var conditions []metav1.Condition
	switch object := object.(type) {
	case *v1beta1.VirtualMachineTemplateImport:
		phase, conditions = object.Status.Phase, object.Status.Conditions
	case *v1beta1.VirtualMachineTemplateExport:
		phase, conditions = object.Status.Phase, object.Status.Conditions
	}
	i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionReady })
	if i < 0 {
		return string(phase)
	}
	return string(phase) + " " + conditions[i].Message
}

// owners returns the owners of the objects of a kind that a transfer has made.
func (w *world) owners(gvk schema.GroupVersionKind) string {
	w.t.Helper()
	var lines []string
	for _, each := range w.labelled(gvk) {
		line := each.GetName() + ":"
		for _, owner := range each.GetOwnerReferences() {
			line += " " + string(owner.UID)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// owned checks that the garbage collector deletes everything, if the object that is reconciled is deleted now.
func (w *world) owned() {
	w.t.Helper()
	template := &v1beta1.VirtualMachineTemplate{}
	err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, template)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	for _, gvk := range []schema.GroupVersionKind{
		batchv1.SchemeGroupVersion.WithKind("Job"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("Service"), claimKind, cdi.WithKind("DataVolume"),
	} {
		for _, each := range w.labelled(gvk) {
			owners := each.GetOwnerReferences()
			// The disks of an import belong to its template as soon as that exists.
			if len(owners) != 1 || owners[0].UID != w.uid && (gvk != claimKind || err != nil || owners[0].UID != template.UID) {
				w.t.Errorf("%s %s has the owners %v", gvk.Kind, each.GetName(), owners)
			}
		}
	}
}

// interrupted kills the manager before and after each of its writes. Another one continues, and check tests where it ends.
func interrupted(t *testing.T, begin func(*testing.T) *world, manager func(*world) reconcile.Reconciler, fewest int, check func(*testing.T, *world)) {
	t.Helper()
	whole := begin(t)
	if err := whole.run(manager(whole), times); err != nil {
		t.Fatal(err)
	}
	check(t, whole)
	if len(whole.writes) < fewest {
		t.Errorf("there were %d writes only: %v", len(whole.writes), whole.writes)
	}
	for n, name := range whole.writes {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %t", n, name, done), func(t *testing.T) {
				w := begin(t)
				w.killAt, w.done = n, done
				if err := w.run(manager(w), times); !errors.Is(err, errKilled) {
					t.Fatalf("not killed: %v", err)
				}
				w.owned()
				w.others()
				if err := w.run(manager(w), times); err != nil {
					t.Fatal(err)
				}
				check(t, w)
			})
		}
	}
}

// TestAnotherManagerConcludesAnImport also tests what would be left if the import was deleted then.
func TestAnotherManagerConcludesAnImport(t *testing.T) {
	interrupted(t, newImportWorld, (*world).imports, 15, func(t *testing.T, w *world) {
		t.Helper()
		if got, want := w.phase(&v1beta1.VirtualMachineTemplateImport{}), "Succeeded VirtualMachineTemplate shop/web was created"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		const template = "VirtualMachineTemplate-web"
		if got, want := w.owners(claimKind), "web-data: "+template+", web-root: "+template; got != want {
			t.Errorf("the disks are %s, want %s", got, want)
		}
		if got := w.owners(templateKind); got != "web:" {
			t.Errorf("the templates are %s", got)
		}
		if w.template == nil || w.template.Reason != "NotSealed" {
			t.Errorf("the template has %+v", w.template)
		}
		if left := w.left(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestAnotherManagerConcludesAFailedImport has the mover find a damaged disk: no disk and no template remain.
func TestAnotherManagerConcludesAFailedImport(t *testing.T) {
	damaged := func(t *testing.T) *world {
		t.Helper()
		w := newImportWorld(t)
		w.mover = transfer.State{Phase: transfer.Failed, Failure: &transfer.Failure{Reason: transfer.ReasonManifestMismatch, Message: "the disk is damaged"}}
		return w
	}
	interrupted(t, damaged, (*world).imports, 14, func(t *testing.T, w *world) {
		t.Helper()
		if got, want := w.phase(&v1beta1.VirtualMachineTemplateImport{}), "Failed the disk is damaged"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if claims, templates, left := w.owners(claimKind), w.owners(templateKind), w.left(); claims != "" || templates != "" || len(left) > 0 {
			t.Errorf("left: %s, %s, %v", claims, templates, left)
		}
	})
}

// TestAnotherManagerConcludesAnExport follows an export until it expires.
func TestAnotherManagerConcludesAnExport(t *testing.T) {
	interrupted(t, newExportWorld, (*world).exports, 15, func(t *testing.T, w *world) {
		t.Helper()
		object := &v1beta1.VirtualMachineTemplateExport{}
		if got, want := w.phase(object), "Expired the package was deleted when it expired: create another export"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if object.Status.Digest != "sha256:7" || object.Status.URL != "" || object.Status.TokenSecretRef != nil {
			t.Errorf("the status is %+v", object.Status)
		}
		if claims, left := w.owners(claimKind), w.left(); claims != "" || len(left) > 0 {
			t.Errorf("left: %s, %v", claims, left)
		}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "golden-root"}, &corev1.PersistentVolumeClaim{}); err != nil {
			t.Errorf("the disk of the template: %v", err)
		}
	})
}

// TestTheNetworkOfMovers tests the NetworkPolicies of movers that read from elsewhere, and of those that users connect to.
func TestTheNetworkOfMovers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1beta1.VirtualMachineTemplateImport)
		want   string
	}{
		"of a server": {func(*v1beta1.VirtualMachineTemplateImport) {},
			`{"podSelector":{"matchLabels":{"template.kubevirt.io/transfer":"import-1"}},` +
				`"ingress":[{"ports":[{"protocol":"TCP","port":8443}],"from":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"stencil-system"}}}]}],` +
				`"egress":[{"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}]},` +
				`{"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["0.0.0.0/8","10.0.0.0/8","100.64.0.0/10","127.0.0.0/8","168.63.129.16/32","169.254.0.0/16","172.16.0.0/12","192.0.0.0/24","192.168.0.0/16","198.18.0.0/15","240.0.0.0/4"]}},{"ipBlock":{"cidr":"::/0","except":["fc00::/7","fe80::/10"]}}]},` +
				`{"to":[{"ipBlock":{"cidr":"10.1.0.0/16"}}]}],"policyTypes":["Ingress","Egress"]}`},
		"of an upload": {func(object *v1beta1.VirtualMachineTemplateImport) {
			object.Spec.Source = v1beta1.ImportSource{Upload: &v1beta1.ImportSourceUpload{}}
		}, `{"podSelector":{"matchLabels":{"template.kubevirt.io/transfer":"import-1"}},"ingress":[{"ports":[{"protocol":"TCP","port":8443}]}],"policyTypes":["Ingress","Egress"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newImportWorld(t)
			object := &v1beta1.VirtualMachineTemplateImport{}
			w.phase(object)
			tc.change(object)
			r := w.runner()
			r.settings.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
			i := &importing{&session{runner: r, owner: owner{"VirtualMachineTemplateImport", "shop", "web", "import-1"}}, object}
			policy, _ := i.networkPolicy().(*networkingv1.NetworkPolicy)
			got, err := json.Marshal(policy.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
