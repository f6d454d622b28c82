package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/transfer"
)

// planned has a plan of a mover checked, and returns the import.
func planned(from *transfer.Plan) (*v1beta1.VirtualMachineTemplateImport, error) {
	object := &v1beta1.VirtualMachineTemplateImport{}
	object.Namespace, object.Name = "shop", "web"
	object.Spec.TemplateLabels = map[string]string{"os": "linux"}
	i := &importing{&session{runner: &runner{settings: Settings{MaxDisks: 2, MaxBytes: 1 << 30}}}, object}
	return object, i.plan(from)
}

func TestAPlanHasWhatTheUserDecides(t *testing.T) {
	object, err := planned(&transfer.Plan{
		Format: "OVA", Description: "sha256:1", Size: 7, Verified: "SHA-1", Agreements: []string{"be kind"}, Disks: []transfer.PlannedDisk{{Name: "root", Volume: "r", File: "r.vmdk", Size: 5}},
		Template: json.RawMessage(`{"metadata": {"name": "other", "namespace": "kube-system", "labels": {"approved": "yes"}, "ownerReferences": [{"uid": "u"}], "finalizers": ["x/y"],
			"annotations": {"description": "a", "template.kubevirt.io/a": "b", "ovf.template.kubevirt.io/accepted-eula": "c"}}, "spec": {}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"VirtualMachineTemplate","apiVersion":"template.kubevirt.io/v1beta1","metadata":{"name":"web","namespace":"shop","labels":{"os":"linux"},` +
		`"annotations":{"description":"a","ovf.template.kubevirt.io/accepted-eula":"c"}}`
	if got := string(object.Status.Plan.Template.Raw); !strings.HasPrefix(got, want) {
		t.Errorf("the template is\n%s\nwant\n%s…", got, want)
	}
	if got := object.Status.Plan.VerifiedBy; got != "SHA-1" {
		t.Errorf("the content is verified by %q", got)
	}
	other, err := planned(&transfer.Plan{Format: "OVA", Description: "sha256:1", Size: 7, Template: json.RawMessage(`{"spec": {"message": "other"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := object.Status.Plan.Digest, other.Status.Plan.Digest; a == b || !strings.HasPrefix(a, "sha256:") {
		t.Errorf("two plans have the digests %s and %s", a, b)
	}
	i := &importing{&session{}, object}
	const licence = "the package has licences, in status.plan.agreements: set spec.eulaAccepted to true to accept them"
	if got := i.wait(); got != licence {
		t.Errorf("it waits for %q", got)
	}
	object.Spec.EULAAccepted = true
	if got := i.wait(); got != "" {
		t.Errorf("it waits for %q", got)
	}
	object.Spec.Approval, object.Spec.ApprovedPlan = v1beta1.ImportApprovalManual, other.Status.Plan.Digest
	if got, want := i.wait(), "the plan has to be approved: set spec.approvedPlan to status.plan.digest, "+object.Status.Plan.Digest; got != want {
		t.Errorf("it waits for %q", got)
	}
	object.Spec.ApprovedPlan = object.Status.Plan.Digest
	if got := i.wait(); got != "" {
		t.Errorf("it waits for %q", got)
	}
}

// TestTasksHaveTheChoicesOfUsers tests what movers receive. A task that has changed is another one, so that what is the default stays as it was.
func TestTasksHaveTheChoicesOfUsers(t *testing.T) {
	imported := &v1beta1.VirtualMachineTemplateImport{}
	imported.Namespace, imported.Name = "shop", "web"
	exported := &v1beta1.VirtualMachineTemplateExport{Spec: v1beta1.VirtualMachineTemplateExportSpec{TemplateRef: corev1.LocalObjectReference{Name: "web"}}}
	i := &importing{&session{runner: &runner{}}, imported}
	e := &exporting{session: &session{who: &identity{downloadToken: "download"}}, object: exported}
	tasks := func(wantImport, wantExport string) {
		t.Helper()
		for want, task := range map[string]any{wantImport: i.task(transfer.Inspect).Conversion, wantExport: e.contents([]byte("{}"), []byte("{}"))} {
			if got, err := json.Marshal(task); err != nil || string(got) != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		}
	}
	tasks(`{"namespace":"shop","name":"web"}`, `{"file":"web.ova","format":"OVA","template":"e30=","vm":"e30=","downloadToken":"download"}`)
	imported.Spec.Instancetype, imported.Spec.Preference = "u1.medium", "None"
	exported.Spec.Compression, exported.Spec.Format = v1beta1.ExportCompressionBest, v1beta1.ExportOCI
	tasks(`{"namespace":"shop","name":"web","instancetype":"u1.medium","preference":""}`,
		`{"file":"web.oci.tar","format":"OCI","compression":"Best","template":"e30=","vm":"e30=","downloadToken":"download"}`)
}

// TestPlansOfAnUntrustedMover has movers report what a manager must not accept.
func TestPlansOfAnUntrustedMover(t *testing.T) {
	template := json.RawMessage(`{"spec": {}}`)
	disks := func(of ...transfer.PlannedDisk) []transfer.PlannedDisk { return of }
	for name, tc := range map[string]struct {
		plan *transfer.Plan
		want string
	}{
		"none":                      {nil, "NotAPackage: the mover has found no plan"},
		"no template":               {&transfer.Plan{Template: json.RawMessage(`[]`)}, "NotAPackage: the template of the package cannot be read: json: cannot unmarshal array into Go value of type v1beta1.VirtualMachineTemplate"},
		"more disks than permitted": {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "a"}, transfer.PlannedDisk{Name: "b"}, transfer.PlannedDisk{Name: "c"})}, "LimitExceeded: the package has 3 disks, and at most 2 are imported"},
		"a disk that is too large":  {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "a", Size: 1<<30 + 1})}, "LimitExceeded: disk a of the package has 1073741825 bytes, and at most 1073741824 are imported"},
		"disks that are too large":  {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "a", Size: 1 << 30}, transfer.PlannedDisk{Name: "b", Size: 1})}, "LimitExceeded: the disks of the package have 1073741825 bytes, and at most 1073741824 are imported"},
		"a disk of no size":         {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "a", Size: -1})}, "LimitExceeded: disk a of the package has -1 bytes, and at most 1073741824 are imported"},
		"two disks of one name":     {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "a"}, transfer.PlannedDisk{Name: "a"})}, "NotAPackage: two disks of the package have the name a"},
		"a name that is a path":     {&transfer.Plan{Template: template, Disks: disks(transfer.PlannedDisk{Name: "../a"})}, "NotAPackage: disk ../a of the package has a name that no PersistentVolumeClaim has"},
		"a plan that is too large":  {&transfer.Plan{Template: template, Agreements: []string{strings.Repeat("a", 1<<20)}}, "LimitExceeded: the plan has 1048805 bytes, and a status has room for 1048576: the template or the licences are too large"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := planned(tc.plan)
			var permanent *permanentError
			if !errors.As(err, &permanent) {
				t.Fatalf("got %v", err)
			}
			if got := fmt.Sprintf("%s: %s", permanent.reason, permanent.message); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestALongTimeoutCountsAsADay(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 6 * time.Hour, time.Second: time.Second, 24 * time.Hour: 24 * time.Hour, 168 * time.Hour: 24 * time.Hour} {
		i := &importing{object: &v1beta1.VirtualMachineTemplateImport{}}
		if given > 0 {
			i.object.Spec.Timeout = &metav1.Duration{Duration: given}
		}
		if got := i.timeout(); got != want {
			t.Errorf("%s counts as %s, want %s", given, got, want)
		}
	}
}
