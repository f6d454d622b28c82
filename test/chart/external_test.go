package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// externalValues of an installation beside KubeVirt's own template component.
const externalValues = `{templateAPI: External, apiserver: {enabled: false}, objects: {resources: []}}`

// What KubeVirt's own template component has is not part of the release, and the rest is.
func TestExternalTemplateAPI(t *testing.T) {
	own, external := render(t, "stencil", `{apiserver: {enabled: false}, objects: {resources: []}}`), render(t, "stencil", externalValues)
	var missing []string
	for name := range own {
		if external[name] == nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	want := []string{
		"ClusterRole/stencil-template-source", "ClusterRole/virt-template-virtualmachinetemplaterequest-source-role",
		"CustomResourceDefinition/virtualmachinetemplateexports.template.kubevirt.io", "CustomResourceDefinition/virtualmachinetemplateimports.template.kubevirt.io",
		"CustomResourceDefinition/virtualmachinetemplaterequests.template.kubevirt.io", "CustomResourceDefinition/virtualmachinetemplates.template.kubevirt.io",
		"ValidatingAdmissionPolicy/stencil-definitions", "ValidatingAdmissionPolicy/stencil-manager-captures", "ValidatingAdmissionPolicy/stencil-manager-transfers",
		"ValidatingAdmissionPolicy/stencil-template-export", "ValidatingAdmissionPolicy/stencil-template-import", "ValidatingAdmissionPolicy/stencil-template-request",
		"ValidatingAdmissionPolicyBinding/stencil-definitions", "ValidatingAdmissionPolicyBinding/stencil-manager-captures", "ValidatingAdmissionPolicyBinding/stencil-manager-transfers",
		"ValidatingAdmissionPolicyBinding/stencil-template-export", "ValidatingAdmissionPolicyBinding/stencil-template-import", "ValidatingAdmissionPolicyBinding/stencil-template-request",
	}
	if !slices.Equal(missing, want) || len(external) != len(own)-len(want) {
		t.Errorf("of %d objects %d are rendered, and missing are\n%s", len(own), len(external), strings.Join(missing, "\n"))
	}
	for name := range protected(t, external, "stencil") {
		if slices.Contains(want, name) {
			t.Errorf("the manager restores %s", name)
		}
	}
	for _, role := range []string{"manager", "uninstall", "admin", "edit", "view"} {
		for permission := range permissions(t, external, "ClusterRole/stencil-"+role) {
			// Those of the templates' status stay.
			for _, of := range []string{"virtualmachinetemplaterequests ", "virtualmachinetemplaterequests/", "virtualmachinetemplateimports", "virtualmachinetemplateexports", "snapshot.kubevirt.io/", "datavolumes/source", "expand-vm-spec"} {
				// Stored instance types are reported with either.
				if strings.HasPrefix(permission, "list snapshot.kubevirt.io/") {
					continue
				}
				if strings.Contains(permission, of) && !strings.Contains(permission, "customresourcedefinitions") {
					t.Errorf("%s may %s", role, permission)
				}
			}
		}
	}
	const annotation = `{.metadata.annotations.stencil\.kubevirt\.io/template-api}`
	runRenderCases(t, map[string]renderCase{
		"Stencil's own": {want: map[string]any{"MutatingWebhookConfiguration/a-stencil-render " + annotation: nil}},
		"external": {values: externalValues, want: map[string]any{
			"MutatingWebhookConfiguration/a-stencil-render " + annotation: "External",
			deployment + " {" + container + ".args}":                      items{"--template-api=External"},
		}},
	})
	for _, webhook := range external.field(t, "ValidatingWebhookConfiguration/stencil-validate", "{.webhooks}").([]any) {
		if name := webhook.(map[string]any)["name"]; name == "virtualmachinetemplaterequest.validate.template.kubevirt.io" {
			t.Errorf("webhook %s is registered", name)
		}
	}
}

func TestNotesSayWhatAnExternalTemplateAPILacks(t *testing.T) {
	stdout, stderr, ok := helm(t, externalValues, "install", "stencil", chartFolder(t), "--namespace", install.Namespace, "--dry-run=client", "--values", "-")
	if !ok {
		t.Fatal(stderr)
	}
	_, notes, _ := strings.Cut(stdout, "NOTES:")
	for _, want := range []string{"(templateAPI: External). Missing with it:", "the condition is called stencil.kubevirt.io/Ready"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "kubectl get apiservice") {
		t.Errorf("the notes name APIServices:\n%s", notes)
	}
}
