package audit_test

import (
	"fmt"
	"testing"
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
	for claim, labels := range map[string]string{
		"good-root": "{kubevirt.io/created-by: " + uid + "}", "early-root": "{restored: always}", "foreign-root": "{kubevirt.io/created-by: 11111111-2222-3333-4444-555555555555}",
	} {
		kubectl(t, plane, fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, namespace: %s, labels: %s}\n"+
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", claim, team, labels), "apply", "-f", "-")
	}
	name := "disks-" + team
	approval := func(disks string) {
		apply(t, plane, approve(name, golden, `
  namespaces: [`+team+`]
  overrides: [spec.dataVolumeTemplates]
  existingDisks: `+disks))
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
