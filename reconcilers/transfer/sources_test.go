package transfer

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
)

// sources returns the sources of the DataVolumes that were created.
func (w *world) sources() []string {
	w.t.Helper()
	copies := &unstructured.UnstructuredList{}
	copies.SetGroupVersionKind(cdi.WithKind("DataVolumeList"))
	if err := w.client.List(w.t.Context(), copies); err != nil {
		w.t.Fatal(err)
	}
	var found []string
	for _, each := range copies.Items {
		if _, ours := each.GetLabels()[v1beta1.LabelTransferUID]; !ours {
			continue
		}
		spec, _, _ := unstructured.NestedMap(each.Object, "spec")
		for _, kind := range []string{"pvc", "snapshot"} {
			if from, is, _ := unstructured.NestedStringMap(spec, "source", kind); is {
				found = append(found, kind+" "+from["namespace"]+"/"+from["name"])
			}
		}
		if spec["sourceRef"] != nil {
			found = append(found, "a DataSource")
		}
	}
	return found
}

// TestAnExportFollowsDataSourcesOnlyWhereTheUserMay tests where the disk of a template leads, and that the copy names the disk itself.
func TestAnExportFollowsDataSourcesOnlyWhereTheUserMay(t *testing.T) {
	to := func(kind, namespace string, through ...string) disks.Resolved {
		return disks.Resolved{Source: disks.Source{Kind: kind, Namespace: namespace, Name: "ledger"}, Through: through, Found: &metav1.ObjectMeta{}}
	}
	const (
		dataSource = `"sourceRef": {"kind": "DataSource", "name": "mine"}`
		foreign    = `"sourceRef": {"kind": "DataSource", "name": "mine", "namespace": "golden"}`
		direct     = `"source": {"pvc": {"name": "ledger", "namespace": "golden"}}`
		denied     = "Failed the disk root of the template comes from namespace %, which spec.sourceNamespaces does not name: create an export that names it"
	)
	for name, tc := range map[string]struct {
		source string
		named  []string
		leads  disks.Resolved
		copied string
		want   string
	}{
		"within the namespace":                                   {source: dataSource, leads: to(disks.ClaimKind, "shop", "shop"), copied: "pvc shop/ledger"},
		"to a snapshot":                                          {source: dataSource, leads: to(disks.SnapshotKind, "shop", "shop"), copied: "snapshot shop/ledger"},
		"to a namespace that the export names":                   {source: dataSource, named: []string{"golden"}, leads: to(disks.ClaimKind, "golden", "shop"), copied: "pvc golden/ledger"},
		"to another namespace":                                   {source: dataSource, leads: to(disks.ClaimKind, "finance", "shop"), want: "finance"},
		"to a snapshot of another namespace":                     {source: dataSource, named: []string{"golden"}, leads: to(disks.SnapshotKind, "finance", "shop"), want: "finance"},
		"through a namespace that it does not name, and back":    {source: dataSource, leads: to(disks.ClaimKind, "shop", "shop", "finance"), want: "finance"},
		"from a named namespace to one that it does not name":    {source: foreign, named: []string{"golden"}, leads: to(disks.ClaimKind, "finance", "golden"), want: "finance"},
		"from a namespace that it does not name to its own":      {source: foreign, leads: to(disks.ClaimKind, "shop", "golden"), want: "golden"},
		"a claim of a namespace that it does not name":           {source: direct, leads: to(disks.ClaimKind, "golden"), want: "golden"},
		"a claim of a namespace that it names":                   {source: direct, named: []string{"golden"}, leads: to(disks.ClaimKind, "golden"), copied: "pvc golden/ledger"},
		"a DataSource that does not exist, in another namespace": {source: foreign, leads: disks.Resolved{Source: disks.Source{Kind: disks.DataSourceKind, Namespace: "golden", Problem: "it is secret"}}, want: "golden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newExportWorld(t)
			export, template := &v1beta1.VirtualMachineTemplateExport{}, &v1beta1.VirtualMachineTemplate{}
			w.phase(export)
			export.Spec.SourceNamespaces = tc.named
			if err := w.client.Get(t.Context(), w.key, template); err != nil {
				t.Fatal(err)
			}
			template.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(strings.Replace(string(template.Spec.VirtualMachine.Raw), `"source": {"pvc": {"name": "golden-root"}}`, tc.source, 1))}
			if err := w.client.Update(t.Context(), template); err != nil {
				t.Fatal(err)
			}
			if err := w.client.Update(t.Context(), export); err != nil {
				t.Fatal(err)
			}
			w.leads = func(disks.Source) disks.Resolved { return tc.leads }
			if err := w.run(w.exports(), 2); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(w.sources(), ", "); got != tc.copied {
				t.Errorf("%q is copied, want %q", got, tc.copied)
			}
			if got := w.phase(export); tc.want != "" && got != strings.Replace(denied, "%", tc.want, 1) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestAnExportFollowsADataSourceThatChangesMeanwhile changes where it leads between two reconciliations.
func TestAnExportFollowsADataSourceThatChangesMeanwhile(t *testing.T) {
	w := newExportWorld(t)
	calls := 0
	w.denied = func(kind string) error {
		if kind == "DataVolume" && calls < 3 {
			return apierrors.NewServiceUnavailable("CDI restarts")
		}
		return nil
	}
	w.leads = func(source disks.Source) disks.Resolved {
		calls++
		if calls > 2 {
			source.Namespace = "finance"
		}
		return disks.Resolved{Source: source, Through: []string{"shop"}, Found: &metav1.ObjectMeta{}}
	}
	if err := w.run(w.exports(), 6); err != nil {
		t.Fatal(err)
	}
	if got := w.sources(); len(got) > 0 {
		t.Errorf("copied: %v", got)
	}
	if got := w.phase(&v1beta1.VirtualMachineTemplateExport{}); !strings.HasPrefix(got, "Failed the disk root of the template comes from namespace finance") {
		t.Error(got)
	}
}

// TestAnExportCopiesWhatItsUserMayCopyNow revokes rights while an export waits for its turn, and leaves out who created it.
func TestAnExportCopiesWhatItsUserMayCopyNow(t *testing.T) {
	for name, tc := range map[string]struct {
		writer  string
		revoked string
		want    string
	}{
		"all rights":                         {writer: "1 ada a%20team"},
		"not the right to export":            {writer: "1 ada", revoked: "export template shop/golden", want: "the user who created it may not export template shop/golden"},
		"not the right to copy":              {writer: "1 ada", revoked: "create datavolumes/source in golden", want: "the user who created it may not create datavolumes/source in golden"},
		"not the right to create in its own": {writer: "1 ada", revoked: "create datavolumes in shop", want: "the user who created it may not create datavolumes in shop"},
		"another user":                       {writer: "1 eve", want: "the user who created it may not export template shop/golden"},
		"nobody recorded":                    {want: "who created it is not recorded"},
		"who created another version":        {writer: "2 ada", want: "who created it is not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newExportWorld(t)
			export := &v1beta1.VirtualMachineTemplateExport{}
			w.phase(export)
			export.Spec.SourceNamespaces = []string{"golden"}
			export.Annotations[contract.AnnotationWrittenBy] = tc.writer
			if err := w.client.Update(t.Context(), export); err != nil {
				t.Fatal(err)
			}
			w.revoked = tc.revoked
			if err := w.run(w.exports(), 2); err != nil {
				t.Fatal(err)
			}
			if got := w.sources(); tc.want != "" && len(got) > 0 || tc.want == "" && len(got) != 1 {
				t.Errorf("copied: %v", got)
			}
			if got := w.phase(export); tc.want != "" && got != "Failed "+tc.want+": create the export again when that is permitted" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestAnImportDoesWhatItsUserMayDoNow revokes rights before an import begins and at each later step.
func TestAnImportDoesWhatItsUserMayDoNow(t *testing.T) {
	const again = ": create the import again when that is permitted"
	begin := func(t *testing.T, writer string) *world {
		t.Helper()
		w := newImportWorld(t)
		object := &v1beta1.VirtualMachineTemplateImport{}
		w.phase(object)
		object.Spec.Source.HTTP.SecretRef = &corev1.LocalObjectReference{Name: "login"}
		object.Spec.Source.HTTP.CertificatesRef = &corev1.LocalObjectReference{Name: "authorities"}
		object.Annotations[contract.AnnotationWrittenBy] = writer
		if err := w.client.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, writer := range []string{"1 eve", "", "2 ada"} {
		w := begin(t, writer)
		if err := w.run(w.imports(), times); err != nil {
			t.Fatal(err)
		}
		want := "Failed who created it is not recorded" + again
		if writer == "1 eve" {
			want = "Failed the user who created it may not create virtualmachinetemplates in shop" + again
		}
		if got := w.phase(&v1beta1.VirtualMachineTemplateImport{}); got != want || len(w.left()) > 0 || w.owners(claimKind) != "" {
			t.Errorf("%s: got %s, left are %v, %s", writer, got, w.left(), w.owners(claimKind))
		}
	}
	for _, action := range []string{"create virtualmachinetemplates in shop", "create datavolumes in shop", "get secrets shop/login", "get configmaps shop/authorities"} {
		for steps := range times {
			w := begin(t, "1 ada")
			reconciler := w.imports()
			if err := w.run(reconciler, steps); err != nil {
				t.Fatal(err)
			}
			w.revoked = action
			if err := w.run(reconciler, times); err != nil {
				t.Fatal(err)
			}
			got := w.phase(&v1beta1.VirtualMachineTemplateImport{})
			if got == "Succeeded VirtualMachineTemplate shop/web was created" {
				if steps < 3 {
					t.Errorf("%s is revoked after %d steps, and the import succeeds", action, steps)
				}
				break
			}
			if want := "Failed the user who created it may not " + action + again; got != want {
				t.Errorf("%s is revoked after %d steps: got %s", action, steps, got)
			}
			if claims, templates, left := w.owners(claimKind), w.owners(templateKind), w.left(); claims != "" || templates != "" || len(left) > 0 {
				t.Errorf("%s is revoked after %d steps: left are %s, %s, %v", action, steps, claims, templates, left)
			}
		}
	}
}

// TestWhatTheAccountMayNotCopy tests the message where the cluster admin has not listed a namespace.
func TestWhatTheAccountMayNotCopy(t *testing.T) {
	w := newExportWorld(t)
	export := &v1beta1.VirtualMachineTemplateExport{}
	w.phase(export)
	export.Spec.SourceNamespaces = []string{"golden"}
	if err := w.client.Update(t.Context(), export); err != nil {
		t.Fatal(err)
	}
	w.leads = func(source disks.Source) disks.Resolved {
		source.Namespace = "golden"
		return disks.Resolved{Source: source, Found: &metav1.ObjectMeta{}}
	}
	w.denied = func(kind string) error {
		if kind == "DataVolume" {
			// As CDI's webhook denies it.
			return apierrors.NewBadRequest("User system:serviceaccount:stencil-system:stencil-transfers has insufficient permissions in clone source namespace golden")
		}
		return nil
	}
	if err := w.run(w.exports(), 3); err != nil {
		t.Fatal(err)
	}
	const want = "Failed the disk root is not copied from namespace golden: a cluster admin can list the namespace in the chart value transfers.sourceNamespaces: "
	if got := w.phase(export); !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}

// TestAnExaminationCopiesOnlyWhatWasCaptured edits the template between its capture and the examination.
func TestAnExaminationCopiesOnlyWhatWasCaptured(t *testing.T) {
	for name, source := range map[string]string{
		"a DataSource that has the name of a captured disk": `"sourceRef": {"kind": "DataSource", "name": "golden-root"}`,
		"a snapshot that has the name of a captured disk":   `"source": {"snapshot": {"name": "golden-root"}}`,
		"a claim of another namespace":                      `"source": {"pvc": {"name": "golden-root", "namespace": "finance"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newCaptureWorld(t)
			template := &v1beta1.VirtualMachineTemplate{}
			if err := w.client.Get(t.Context(), requestKey, template); err != nil {
				t.Fatal(err)
			}
			template.Spec.VirtualMachine = &runtime.RawExtension{Raw: []byte(strings.Replace(capturedVM, `"source": {"pvc": {"name": "golden-root"}}`, source, 1))}
			if err := w.client.Update(t.Context(), template); err != nil {
				t.Fatal(err)
			}
			w.leads = func(source disks.Source) disks.Resolved {
				return disks.Resolved{Source: disks.Source{Kind: disks.ClaimKind, Namespace: "finance", Name: "ledger"}, Through: []string{source.Namespace}, Found: &metav1.ObjectMeta{}}
			}
			if err := w.run(w.manager(), 3); err != nil {
				t.Fatal(err)
			}
			if got := w.sources(); len(got) > 0 {
				t.Errorf("copied: %v", got)
			}
			if got, want := w.line(), "Unknown NotExamined the disks were not examined: VirtualMachineTemplate shop/golden has no captured disk"; got != want {
				t.Logf("got %s", got)
			}
		})
	}
}
