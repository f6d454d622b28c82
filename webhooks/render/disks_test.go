package render_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/webhooks/render"
)

func TestAWarningNamesDisksThatWillNotCome(t *testing.T) {
	const (
		own    = "stencil.kubevirt.io/disk-access"
		golden = `{sourceRef: {kind: DataSource, namespace: golden, name: "${SOURCE}"}, storage: {}}`
		copies = "system:serviceaccount:team-a:default create datavolumes/source"
		grants = `; and system:serviceaccount:team-a:default may not copy from namespace golden, which this grants: kubectl create role copy-to-team-a -n golden --verb=create --resource=datavolumes.cdi.kubevirt.io/source && kubectl create rolebinding copy-to-team-a -n golden --role=copy-to-team-a --serviceaccount=team-a:default`
		begins = `spec.dataVolumeTemplates[0].metadata.name: disk "web" will not be created: `
		lacks  = begins + "VirtualMachineTemplate golden/box does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend" + grants
	)
	claim := `spec: {dataVolumeTemplates: [{metadata: {name: web}, spec: {source: {pvc: {namespace: golden, name: payroll}}}}]}`
	for name, tc := range map[string]struct {
		lends, off       bool
		namespace        string
		source           string
		annotation, spec string
		granted          string
		want             []string
	}{
		"a template that lends":                                  {lends: true},
		"one that does not":                                      {want: []string{lacks}},
		"one that does not, and KubeVirt may copy":               {granted: copies + " in golden"},
		"one that does not, in its own namespace":                {namespace: "golden"},
		"one that does not, with an empty disk":                  {source: `{source: {blank: {}}, storage: {}}`},
		"one that does not, and the manager lends nothing":       {off: true},
		"a source of the user's own":                             {lends: true, spec: claim, want: []string{begins + "VirtualMachineTemplate golden/box does not name PersistentVolumeClaim golden/payroll" + grants}},
		"a source of the user's own that KubeVirt may copy":      {lends: true, spec: claim, granted: copies + " golden/payroll"},
		"a source of the user's own in the namespace of the VM":  {lends: true, spec: strings.Replace(claim, "namespace: golden, ", "", 1)},
		"a value of a parameter that selects the source":         {lends: true, annotation: "other", want: []string{begins + "parameter SOURCE selects the source, and its value is neither the default nor one that VirtualMachineTemplate golden/box lists" + grants}},
		"the default of that parameter, written out by the user": {lends: true, annotation: "fedora"},
	} {
		t.Run(name, func(t *testing.T) {
			source := tc.source
			if source == "" {
				source = golden
			}
			object := fixture.Template(t, "box", `spec: {parameters: [{name: NAME, required: true}, {name: SOURCE, value: fedora}], virtualMachine: {metadata: {name: "${NAME}"}, spec: {
				dataVolumeTemplates: [{metadata: {name: "${NAME}"}, spec: `+source+`}], template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: "${NAME}"}}]}}}}}`)
			if tc.lends {
				object.Labels = map[string]string{own: "Lend"}
			}
			granted := maps.Clone(everything.granted)
			granted[tc.granted] = true
			h := render.New(render.Options{
				Templates:   &fakeTemplates{templates: map[string]*templatecache.Template{"golden/box": templatecache.Compile(object)}},
				Permissions: rights{granted: granted}, Approvals: governing(), Lending: !tc.off,
			})
			text := "metadata:\n  name: web\n  annotations:\n" + ref
			if tc.annotation != "" {
				text += "    parameter.template.kubevirt.io/SOURCE: " + tc.annotation + "\n"
			}
			request := create(t, text+tc.spec)
			if tc.namespace != "" {
				request.Namespace = tc.namespace
			}
			response := h.Handle(t.Context(), request)
			if !response.Allowed {
				t.Fatal(response.Result.Message)
			}
			var got []string
			for _, warning := range response.Warnings {
				if !strings.Contains(warning, "has no effect") {
					got = append(got, warning)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsAboutWhatWillNotStart(t *testing.T) {
	const source = `{sourceRef: {kind: DataSource, name: fedora, namespace: images}, storage: {resources: {requests: {storage: 1Gi}}}}`
	object := fixture.Template(t, "box", `spec: {virtualMachine: {spec: {
		dataVolumeTemplates: [{metadata: {name: root}, spec: `+source+`}], template: {spec: {domain: {devices: {}}, volumes: [{name: root, dataVolume: {name: root}}]}}}}}`)
	object.Namespace, object.Generation = "team-a", 3
	object.Labels = map[string]string{contract.LabelDiskAccess: contract.DiskAccessLend}
	ready := metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonSourcesNotReady, Message: "DataSource images/fedora does not exist", ObservedGeneration: 3}
	const lends = `spec.dataVolumeTemplates[0].metadata.name: disk "root" will not be created: VirtualMachineTemplate team-a/box lends only what is in its own namespace, and DataSource images/fedora is not; ` +
		`and system:serviceaccount:team-a:default may not copy from namespace images, which this grants: kubectl create role copy-to-team-a -n images`
	const unready = "template team-a/box is not ready (SourcesNotReady): DataSource images/fedora does not exist; kubectl describe virtualmachinetemplate box -n team-a shows the rest"
	for name, tc := range map[string]struct {
		change func(*metav1.Condition)
		want   []string
	}{
		"not ready":                   {func(*metav1.Condition) {}, []string{unready, lends}},
		"ready":                       {func(c *metav1.Condition) { c.Status = metav1.ConditionTrue }, []string{lends}},
		"not ready for other reasons": {func(c *metav1.Condition) { c.Reason = v1beta1.ReasonPolicyViolations }, []string{lends}},
		"not looked at yet":           {func(c *metav1.Condition) { c.Status = metav1.ConditionUnknown }, []string{lends}},
		"before it was changed":       {func(c *metav1.Condition) { c.ObservedGeneration = 2 }, []string{lends}},
		"of Stencil beside another's": {func(c *metav1.Condition) { c.Type = v1beta1.ConditionStencilReady }, []string{unready, lends}},
	} {
		t.Run(name, func(t *testing.T) {
			object, condition := object.DeepCopy(), ready
			tc.change(&condition)
			object.Status.Conditions = []metav1.Condition{condition}
			h := render.New(render.Options{
				Templates:   &fakeTemplates{templates: map[string]*templatecache.Template{"team-a/box": templatecache.Compile(object)}},
				Permissions: everything, Approvals: governing(), Lending: true,
			})
			response := h.Handle(t.Context(), create(t, "metadata: {name: web, annotations: {template.kubevirt.io/template-ref: box}}"))
			if !response.Allowed || len(response.Warnings) != len(tc.want) {
				t.Fatalf("allowed %v, warnings %q: %v", response.Allowed, response.Warnings, response.Result)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(response.Warnings[i], want) {
					t.Errorf("warning %d is %q, want %q", i, response.Warnings[i], want)
				}
			}
		})
	}
}
