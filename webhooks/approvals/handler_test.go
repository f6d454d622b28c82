package approvals_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/fixture"
	policyschema "github.com/vmstencil/stencil/rego/schema"
	"github.com/vmstencil/stencil/webhooks/approvals"
)

// cluster holds the objects that exist.
type cluster struct {
	templates  []*templatecache.Template
	namespaces []string
	unsynced   bool
}

func (c cluster) Synced() bool                    { return !c.unsynced }
func (c cluster) List() []*templatecache.Template { return c.templates }

func (c cluster) NamespacesOf(a *approval.Approval) []string {
	var covered []string
	for _, namespace := range c.namespaces {
		if a.SelectsNamespace(namespace, map[string]string{"kubernetes.io/metadata.name": namespace}) {
			covered = append(covered, namespace)
		}
	}
	return covered
}

func vmt(t *testing.T, name, labels, parameters string) *templatecache.Template {
	t.Helper()
	metadata := ""
	if strings.Contains(parameters, "name: NAME,") {
		metadata = `metadata: {name: "${NAME}"}, `
	}
	text := fmt.Sprintf("{metadata: {namespace: golden, name: %s, labels: {%s}}, spec: {parameters: [%s], virtualMachine: {%sspec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}}}", name, labels, parameters, metadata)
	return templatecache.Compile(fixture.Decode[v1beta1.VirtualMachineTemplate](t, text))
}

func review(t *testing.T, operation admissionv1.Operation, object, old string) admission.Request {
	t.Helper()
	request := fixture.Review(t, operation, object, old)
	request.Name = "team-a"
	return request
}

func manifest(labels, spec string) string {
	return "{apiVersion: stencil.kubevirt.io/v1alpha1, kind: TemplateApproval, metadata: {name: team-a, labels: {" + labels + "}}, spec: {" + spec + "}}"
}

const (
	good   = "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], overrides: [spec.runStrategy], parameters: [{name: CPU, maximum: 8}, {name: PASSWORD, anyValue: true}]"
	broken = "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], overrides: ['spec.'], parameters: [{name: CPU, expression: 'value >'}]"
)

func handler(t *testing.T) *approvals.Handler {
	t.Helper()
	there := cluster{
		templates: []*templatecache.Template{
			vmt(t, "fedora", "tier: gold", "{name: CPU}, {name: PASSWORD, sensitive: true}"),
			vmt(t, "windows", "tier: gold", "{name: KEY}"),
			vmt(t, "keyed", "tier: silver", "{name: NAME, required: true}, {name: SSH_KEY, required: true}, {name: ACCOUNT, required: true, sensitive: true}, {name: SIZE, value: '2'}, {name: TOKEN, required: true, generate: expression, from: '[a-z]{8}'}"),
			vmt(t, "ruin", "tier: wood", "{name: BAD, type: unknown}"),
		},
		namespaces: []string{"team-a", "team-b", "kube-system", "stencil-system"},
	}
	return approvals.New(approvals.Options{Templates: there, Namespaces: there, Schemas: schemas, ExcludedNamespaces: []string{"stencil-system"}})
}

func schemas() *policyschema.Schemas {
	embedded, err := policyschema.Embedded()
	if err != nil {
		panic(err)
	}
	return embedded
}

func TestWhatIsDenied(t *testing.T) {
	brokenFields := []string{"spec.parameters[0].expression", "spec.overrides[0]"}
	for _, tc := range []struct {
		name        string
		operation   admissionv1.Operation
		object, old string
		subresource string
		wantFields  []string // the approval is accepted if empty
	}{
		{name: "a good approval is stored", operation: admissionv1.Create, object: manifest("", good)},
		{name: "a broken one is denied with every cause", operation: admissionv1.Create, object: manifest("", broken), wantFields: brokenFields},
		{name: "a good one that becomes broken is denied", operation: admissionv1.Update, object: manifest("", broken), old: manifest("", good), wantFields: brokenFields},
		{name: "a broken one can be put right", operation: admissionv1.Update, object: manifest("", good), old: manifest("", broken)},
		{name: "a broken one can be labelled", operation: admissionv1.Update, object: manifest("a: b", broken), old: manifest("", broken)},
		{name: "a broken one can be deleted", operation: admissionv1.Delete, old: manifest("", broken)},
		{name: "the status of a broken one can be written", operation: admissionv1.Update, object: manifest("", broken), old: manifest("", good), subresource: "status"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			request := review(t, tc.operation, tc.object, tc.old)
			request.SubResource = tc.subresource
			response := handler(t).Handle(t.Context(), request)
			if response.Allowed != (tc.wantFields == nil) {
				t.Fatalf("got %+v", response.AdmissionResponse)
			}
			if tc.wantFields == nil {
				return
			}
			if response.Result.Code != 422 || response.Result.Reason != metav1.StatusReasonInvalid {
				t.Errorf("got %d %s", response.Result.Code, response.Result.Reason)
			}
			var fields []string
			for _, cause := range response.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(tc.wantFields, fields); diff != "" {
				t.Errorf("fields (-want +got)\n%s", diff)
			}
		})
	}
	t.Run("what is no approval at all", func(t *testing.T) {
		request := review(t, admissionv1.Create, "{spec: [no]}", "")
		if response := handler(t).Handle(t.Context(), request); response.Allowed || response.Result.Code != 400 {
			t.Errorf("got %+v", response.AdmissionResponse)
		}
	})
}

func TestWhatIsWarnedAbout(t *testing.T) {
	const otherDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	compiled, err := vmt(t, "fedora", "tier: gold", "{name: CPU}, {name: PASSWORD, sensitive: true}").Compiled()
	if err != nil {
		t.Fatal(err)
	}
	digest := compiled.Digest()
	const open = ", parameters: [{name: CPU, anyValue: true}, {name: PASSWORD, anyValue: true}]"
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{name: "nothing, when everything is there", spec: good},
		{name: "nothing, when the pinned content is there", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora, digest: '" + digest + "'}]" + open},
		{name: "a namespace that is not there", spec: "namespaces: [team-a, team-z], templates: [{namespace: golden, name: fedora}]" + open, want: []string{"spec.namespaces[1]: there is no namespace team-z now"}},
		{
			name: "Stencil's own namespace", spec: "namespaces: [stencil-system], templates: [{namespace: golden, name: fedora}]" + open,
			want: []string{"spec.namespaces[0]: stencil-system is Stencil's own namespace, which approvals never select", "spec: this approval selects no namespace that exists now"},
		},
		{name: "labels that no namespace has", spec: "namespaceSelector: {matchLabels: {tier: gold}}, templates: [{namespace: golden, name: fedora}]" + open, want: []string{"spec: this approval selects no namespace that exists now"}},
		{name: "a template that is not there", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}, {namespace: golden, name: debian}]" + open, want: []string{"spec.templates[1]: there is no template golden/debian now"}},
		{name: "labels that no template has", spec: "namespaces: [team-a], templates: [{namespace: golden, selector: {matchLabels: {tier: lead}}}]", want: []string{"spec.templates[0]: there is no template with these labels in namespace golden now"}},
		{name: "a template that does not compile", spec: "namespaces: [team-a], templates: [{namespace: golden, name: ruin}]", want: []string{"spec.templates[0]: template golden/ruin cannot be used: it does not compile"}},
		{name: "a template of another content", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora, digest: '" + otherDigest + "'}]", want: []string{"spec.templates[0]: the content of golden/fedora is another one than the digest pins: its digest is " + digest}},
		{name: "a parameter that no approved template has", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], parameters: [{name: CPU, anyValue: true}, {name: PASSWORD, anyValue: true}, {name: KEY, maximum: 1}]", want: []string{"spec.parameters[2]: no approved template has a parameter KEY now"}},
		{name: "a parameter that one approved template has", spec: "namespaces: [team-a], templates: [{namespace: golden, selector: {matchLabels: {tier: gold}}}], parameters: [{name: KEY, maximum: 1}, {name: CPU, anyValue: true}, {name: PASSWORD, anyValue: true}]"},
		{name: "values of a sensitive parameter", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], parameters: [{name: PASSWORD, allowed: [a]}, {name: CPU, anyValue: true}]", want: []string{"spec.parameters[0].allowed: parameter PASSWORD is sensitive, and everyone who can read this approval can read its allowed values"}},
		{
			name: "the parameters that it closes, by template, and those without which nothing can be created",
			spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}, {namespace: golden, selector: {}}], parameters: [{name: CPU, maximum: 8}]",
			want: []string{
				"spec.parameters: no VirtualMachine of template golden/keyed is approved, because required parameters have no value: SSH_KEY, ACCOUNT; list them, with the values that are allowed or with anyValue: true",
				"spec.parameters: closes PASSWORD of template golden/fedora: a parameter that is not listed keeps its default, or is generated",
				"spec.parameters: closes SIZE, TOKEN of template golden/keyed: a parameter that is not listed keeps its default, or is generated",
				"spec.parameters: closes KEY of template golden/windows: a parameter that is not listed keeps its default, or is generated",
			},
		},
		{name: "not what it lists with any value, nor what the name sets", spec: "namespaces: [team-a], templates: [{namespace: golden, name: keyed}], parameters: [{name: SSH_KEY, anyValue: true}, {name: ACCOUNT, pattern: '[a-z]+'}, {name: SIZE, minimum: 1}, {name: TOKEN, anyValue: true}]"},
		{
			name: "overrides that no VirtualMachine has",
			spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], overrides: [spec.template.spec.nodeselector, 'spec.template.spec.domain.devices.disks.bootOrder', 'spec.runStrategy.always', 'spec.template.spec.volumes[*].datavolume', spec.quux]" + open,
			want: []string{
				"spec.overrides[0]: no VirtualMachine has spec.template.spec.nodeselector; did you mean nodeSelector?",
				"spec.overrides[1]: spec.template.spec.domain.devices.disks is a list: write spec.template.spec.domain.devices.disks[*] or spec.template.spec.domain.devices.disks[name=NAME] for its items",
				"spec.overrides[2]: no VirtualMachine has spec.runStrategy.always: spec.runStrategy has no items or fields",
				"spec.overrides[3]: no VirtualMachine has spec.template.spec.volumes[*].datavolume; did you mean dataVolume?",
				"spec.overrides[4]: no VirtualMachine has spec.quux",
			},
		},
		{
			name: "not about overrides that one may have",
			spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], overrides: [spec.runStrategy, metadata.labels.a, 'metadata.annotations[\"a.b/c\"]', spec.template.metadata.labels.x, spec.template.spec.nodeSelector.zone, 'spec.template.spec.domain.devices.disks[name=a].bootOrder', 'spec.template.spec.domain.devices.interfaces[*].macAddress', 'spec.template.spec.tolerations[*]', spec.template.spec.domain.memory.guest, spec.template.spec.domain.resources.requests.memory, 'spec.dataVolumeTemplates[*].spec.storage.storageClassName', 'spec.dataVolumeTemplates[*].metadata.labels.x', 'spec.template.spec.domain.*.cores']" + open,
		},
		{name: "overrides of everything", spec: "namespaces: [team-a], templates: [{namespace: golden, name: fedora}], overrides: ['spec.*']" + open, want: []string{"spec.overrides[0]: override spec.* permits users to replace most of what the template defines"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			response := handler(t).Handle(t.Context(), review(t, admissionv1.Create, manifest("", tc.spec), ""))
			if !response.Allowed {
				t.Fatalf("denied: %s", response.Result.Message)
			}
			if diff := cmp.Diff(tc.want, response.Warnings); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWarningsAreCountedWhenThereAreMany(t *testing.T) {
	var entries []string
	for i := range 20 {
		entries = append(entries, fmt.Sprintf("{namespace: golden, name: t%d}", i))
	}
	spec := "namespaces: [team-a], templates: [" + strings.Join(entries, ", ") + "]"
	response := handler(t).Handle(t.Context(), review(t, admissionv1.Create, manifest("", spec), ""))
	if len(response.Warnings) != 12 || response.Warnings[11] != "and 9 more warnings" {
		t.Errorf("got %q", response.Warnings)
	}
}

func TestClosedParametersAreCountedWhenThereAreMany(t *testing.T) {
	var there cluster
	for i := range 8 {
		var parameters []string
		for j := range 12 {
			parameters = append(parameters, fmt.Sprintf("{name: P%d}", j))
		}
		there.templates = append(there.templates, vmt(t, fmt.Sprintf("t%d", i), "tier: gold", strings.Join(parameters, ", ")))
	}
	there.namespaces = []string{"team-a"}
	h := approvals.New(approvals.Options{Templates: there, Namespaces: there, Schemas: schemas})
	response := h.Handle(t.Context(), review(t, admissionv1.Create, manifest("", "namespaces: [team-a], templates: [{namespace: golden, selector: {}}]"), ""))
	const want = "spec.parameters: closes P0, P1, P2, P3, P4, P5, P6, P7, P8, P9 and 2 more of template golden/t4: a parameter that is not listed keeps its default, or is generated; and 36 more of other templates"
	if len(response.Warnings) != 5 || response.Warnings[4] != want {
		t.Errorf("got %q", response.Warnings)
	}
}

func TestBeforeTheCachesAreFilledNothingIsWarnedAbout(t *testing.T) {
	empty := cluster{unsynced: true}
	h := approvals.New(approvals.Options{Templates: empty, Namespaces: empty, Schemas: schemas})
	response := h.Handle(t.Context(), review(t, admissionv1.Create, manifest("", good), ""))
	if !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("got %+v", response.AdmissionResponse)
	}
}
