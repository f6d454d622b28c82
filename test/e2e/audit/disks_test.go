package audit_test

import (
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

func TestAuditFindsDisksOfOthers(t *testing.T) {
	plane, _ := start(t)
	golden, team := namespace(t, plane), namespace(t, plane)
	own(t, plane, small(golden, "small", 2), "apply", "-f", "-")
	for _, name := range []string{"good", "early", "foreign", "waits"} {
		volume := map[string]any{"metadata": map[string]any{"name": name + "-root"}, "spec": map[string]any{"source": map[string]any{"blank": map[string]any{}}}}
		store(t, plane, set(t, rendered(t, plane, team, name, golden+"/small", nil), []any{volume}, "spec", "dataVolumeTemplates"))
	}
	uid := own(t, plane, "", "get", "vm", "good", "--namespace", team, "-o", "jsonpath={.metadata.uid}")
	for claim, label := range map[string]gen.Modifier{
		"good-root": gen.Label("kubevirt.io/created-by", uid), "early-root": gen.Label("restored", "always"),
		"foreign-root": gen.Label("kubevirt.io/created-by", "11111111-2222-3333-4444-555555555555"),
	} {
		kubectl(t, plane, gen.Manifest(gen.Claim(claim, gen.InNamespace(team), label)), "apply", "-f", "-")
	}
	name := "disks-" + team
	approval := func(disks string) {
		apply(t, plane, approve(name, golden, gen.Governs(team), gen.Overrides("spec.dataVolumeTemplates"), gen.Spec("existingDisks: "+disks)))
	}
	early := "early: claim early-root was not created for this VM: it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates"
	foreign := "foreign: claim foreign-root was not created for this VM: its label kubevirt.io/created-by names another VirtualMachine"
	approval("{}")
	awaitFinding(t, plane, name, finding{Conforming: 2, Violating: 2, Causes: []string{early, foreign}})
	approval("{policy: Allow, selector: {matchLabels: {restored: always}}}")
	awaitFinding(t, plane, name, finding{Conforming: 3, Violating: 1, Causes: []string{foreign}})
	approval("{policy: Allow}")
	awaitFinding(t, plane, name, finding{Conforming: 4})
}
