package attacks_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// eventually polls until missing returns nothing. The parameter what completes the sentence "waiting until …".
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	harness.Eventually(t, what, func() error { return harness.Complaint(missing()) })
}

// TestAnApprovedMachineStaysWhatItIs tries every change of a stored VM.
func TestAnApprovedMachineStaysWhatItIs(t *testing.T) {
	mustKubectl(t, mallory, vm("frozen", "golden/fedora"), "create", "-f", "-")
	spec := func(patch string) []string { return []string{"patch", "vm", "frozen", "--type=merge", "-p", patch} }
	for _, tc := range []struct {
		name  string
		stdin string
		args  []string
		// want are texts of Stencil's denial. It is empty where KubeVirt denies the request too: validating webhooks are called at the same time, and
		// the API server returns the first response.
		want []string
	}{
		{name: "CPU", args: spec(`{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":64}}}}}}`)},
		{name: "memory", args: spec(`{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"64Gi"}}}}}}`)},
		{name: "the instance type", args: spec(`{"spec":{"instancetype":{"name":"u1.2xlarge"}}}`), want: []string{"spec.instancetype.name"}},
		{name: "the image", args: []string{"patch", "vm", "frozen", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"disk-1","containerDisk":{"image":"evil.example.com/rootkit"}}}]`}},
		{name: "a parameter that the approval does not list", args: []string{"annotate", "vm", "frozen", "parameter.template.kubevirt.io/DATA_SOURCE_NAME=rootkit"}, want: []string{"DATA_SOURCE_NAME"}},
		{name: "the field that such a parameter fills", args: []string{"patch", "vm", "frozen", "--type=json", "-p", `[{"op":"replace","path":"/spec/dataVolumeTemplates/0/spec/sourceRef/name","value":"rootkit"}]`}, want: []string{"spec.dataVolumeTemplates[0].spec.sourceRef.name"}},
		{name: "cloud-init", args: []string{"patch", "vm", "frozen", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/volumes/1/cloudInitNoCloud/userData","value":"#!/bin/sh"}]`}, want: []string{"spec.template.spec.volumes[name=cloudinitdisk].cloudInitNoCloud.userData"}},
		{name: "a node selector", args: spec(`{"spec":{"template":{"spec":{"nodeSelector":{"node":"master"}}}}}`), want: []string{"spec.template.spec.nodeSelector"}},
		{name: "server-side apply", stdin: gen.Manifest(gen.VM("frozen", gen.Spec("template: {spec: {hostname: h}}"))), args: []string{"apply", "--server-side", "--field-manager=attacker", "-f", "-"}, want: []string{"spec.template.spec.hostname"}},
		{name: "a label of the pods", args: spec(`{"spec":{"template":{"metadata":{"labels":{"app":"trusted"}}}}}`), want: []string{"spec.template.metadata.labels.app"}},
		{name: "a label that no override lists", args: []string{"label", "vm", "frozen", "owner=mallory"}, want: []string{"metadata.labels.owner"}},
		{name: "another reference", args: []string{"annotate", "vm", "frozen", "--overwrite", "template.kubevirt.io/template-ref=golden/windows"}, want: []string{"template-ref"}},
		{name: "no reference", args: []string{"annotate", "vm", "frozen", "template.kubevirt.io/template-ref-"}, want: []string{"template-ref"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := get(t, "frozen")
			wantDenied(t, kubectl(t, mallory, tc.stdin, tc.args...), tc.want...)
			if diff := cmp.Diff(before.Object["spec"], get(t, "frozen").Object["spec"]); diff != "" {
				t.Errorf("the VM changed:\n%s", diff)
			}
		})
	}
	t.Run("replace with another machine", func(t *testing.T) {
		vm := get(t, "frozen")
		vm.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["hostname"] = "h"
		raw, err := json.Marshal(vm.Object)
		if err != nil {
			t.Fatal(err)
		}
		wantDenied(t, kubectl(t, mallory, string(raw), "replace", "-f", "-"), "spec.template.spec.hostname")
	})
	t.Run("in two small steps", func(t *testing.T) {
		mustKubectl(t, mallory, "", spec(`{"spec":{"runStrategy":"Manual"}}`)...)
		wantDenied(t, kubectl(t, mallory, "", spec(`{"spec":{"runStrategy":"Manual","template":{"spec":{"hostname":"h"}}}}`)...), "spec.template.spec.hostname")
	})
	t.Run("what the overrides list may change", func(t *testing.T) {
		mustKubectl(t, mallory, "", spec(`{"spec":{"runStrategy":"Halted"}}`)...)
		mustKubectl(t, mallory, "", "label", "vm", "frozen", "team=blue")
	})
}

// TestAMachineFromBeforeTheApprovalIsFrozen tests a VM without a template that was stored before its namespace became governed.
func TestAMachineFromBeforeTheApprovalIsFrozen(t *testing.T) {
	mustKubectl(t, nil, "", "label", "namespace", namespaces.Of(t), "tier-")
	plain := gen.Manifest(gen.VM("elder", gen.SmallSpec(), gen.Memory("1Gi")))
	eventually(t, "a VM without a template is stored", func() string {
		if out := kubectl(t, mallory, plain, "create", "-f", "-"); out.Code != 0 {
			return out.Stderr
		}
		return ""
	})
	mustKubectl(t, nil, "", "label", "namespace", namespaces.Of(t), "tier=vault")
	eventually(t, "the namespace is governed", func() string {
		out := kubectl(t, mallory, "", "patch", "vm", "elder", "--type=merge", "-p", `{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"2Gi"}}}}}}`, "--dry-run=server")
		if out.Code == 0 {
			return "its spec can still be changed"
		}
		return ""
	})
	mustKubectl(t, mallory, "", "delete", "vm", "elder")
}

func TestANamespaceIsNotRelabelledToEscape(t *testing.T) {
	space := namespaces.Of(t)
	for _, args := range [][]string{
		{"label", "namespace", space, "tier-"},
		{"label", "namespace", space, "--overwrite", "tier=free"},
		{"patch", "namespace", space, "--type=json", "-p", `[{"op":"remove","path":"/metadata/labels/tier"}]`},
	} {
		wantDenied(t, kubectl(t, mallory, "", args...), "templateapprovals")
	}
}

// TestAForgedBaseBringsNothing writes the annotation from which removed overrides get the template's values.
func TestAForgedBaseBringsNothing(t *testing.T) {
	mustKubectl(t, mallory, vm("forger", "golden/fedora"), "create", "-f", "-")
	const forged = `"annotations":{"template.kubevirt.io/overrides":"{\"spec.template.spec.nodeSelector\":{\"value\":{\"node\":\"master\"}},\"spec.runStrategy\":{\"value\":\"Always\"}}"}`
	before := get(t, "forger")
	for _, patch := range []string{
		`{"metadata":{` + forged + `}}`,
		`{"metadata":{` + forged + `},"spec":{"runStrategy":"Manual"}}`,
		`{"metadata":{` + forged + `},"spec":{"runStrategy":null}}`,
		`{"spec":{"runStrategy":"Manual","template":{"spec":{"nodeSelector":null}}}}`,
	} {
		mustKubectl(t, mallory, "", "patch", "vm", "forger", "--type=merge", "-p", patch)
		after := get(t, "forger")
		if got := after.GetAnnotations()["template.kubevirt.io/overrides"]; got != "" {
			t.Errorf("%s: the annotation is %s", patch, got)
		}
		if diff := cmp.Diff(before.Object["spec"].(map[string]any)["template"], after.Object["spec"].(map[string]any)["template"]); diff != "" {
			t.Errorf("%s: the VM changed:\n%s", patch, diff)
		}
	}
	// What the template has returns where an override allows it, and nowhere else.
	mustKubectl(t, mallory, "", "patch", "vm", "forger", "--type=merge", "-p", `{"spec":{"runStrategy":null}}`)
	if got, want := get(t, "forger").Object["spec"].(map[string]any)["runStrategy"], before.Object["spec"].(map[string]any)["runStrategy"]; got != want {
		t.Errorf("the run strategy is %v, want %v", got, want)
	}
	forgedVM := gen.Manifest(gen.VM("forger-2", gen.FromTemplate("golden/fedora"), gen.Annotation("template.kubevirt.io/overrides", `{"spec.instancetype.name":{"value":"u1.2xlarge"}}`)))
	mustKubectl(t, mallory, forgedVM, "create", "-f", "-")
	if got := get(t, "forger-2").GetAnnotations()["template.kubevirt.io/overrides"]; got != "" {
		t.Errorf("the annotation of a new VM is %s", got)
	}
}
