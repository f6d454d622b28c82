package readiness_test

import (
	"strings"
	"testing"
)

// TestATemplateWithoutAVirtualMachineIsRejected also tests what can still be done with such a template that was stored before.
func TestATemplateWithoutAVirtualMachineIsRejected(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	vmt := func(name, parameters, spec string) string {
		return `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "` + name + `"}, "spec": {"parameters": [` + parameters + `],
			"virtualMachine": {"metadata": {"name": "` + name + `"}, "spec": {"runStrategy": "Halted", ` + spec + `}}}}`
	}
	const (
		sized = `"template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "${P}"}, "cpu": {"cores": "${{Q}}"}}}}`
		lots  = `{"name": "P", "value": "lots"}, {"name": "Q", "value": "two"}`
		path  = "spec.virtualMachine.spec.template.spec.domain."
	)
	for name, tc := range map[string]struct {
		manifest string
		rejected bool
		want     []string
	}{
		"values that make no VirtualMachine": {
			manifest: vmt("lots", lots, sized), rejected: true,
			want: []string{
				path + `memory.guest: Invalid value: "lots": must be a quantity such as 500m or 2Gi; these are the template's own values: correct them, or require a value of the user`,
				path + `cpu.cores: Invalid value: "two": value of Q: must be an integer from 0 to 4294967295`,
			},
		},
		"a required parameter is open": {
			manifest: vmt("open", `{"name": "P", "required": true}, {"name": "Q", "value": "two"}`, sized),
			want: []string{
				`Warning: ` + path + `cpu.cores: only other values than the template's own make a VirtualMachine: Invalid value: "two": value of Q: must be an integer from 0 to 4294967295`,
			},
		},
		"disks and sources that do not belong together": {
			manifest: vmt("disks", "", `"dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {"sourceRef": {"kind": "DataSource", "name": "fedora"}, "storage": {}}}],
				"template": {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root"}, {"name": "lost"}]}},
				"volumes": [{"name": "root", "dataVolume": {"name": "root"}}, {"name": "data", "persistentVolumeClaim": {"claimName": "root"}}]}}`),
			want: []string{
				"Warning: " + path + "devices.disks[1].name: there is no volume lost: KubeVirt denies the VirtualMachine, unless the user adds the volume",
				"Warning: spec.virtualMachine.spec.template.spec.volumes[1].name: there is no disk data: KubeVirt adds one with its own settings",
				"Warning: spec.virtualMachine.spec.template.spec.volumes[1]: volume root has the same claim, root: two disks of one claim lock each other out, unless both are shareable",
				"Warning: spec.virtualMachine.spec.dataVolumeTemplates[0].spec.sourceRef: without a namespace, KubeVirt and CDI look for DataSource fedora in the namespace of the VirtualMachine",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.kubectl(t, s.owner, tc.manifest, "create", "-n", own, "-f", "-")
			if (got.Code != 0) != tc.rejected {
				t.Fatalf("exit code %d: %s", got.Code, got.Stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("want %q in\n%s", want, got.Stderr)
				}
			}
		})
	}
	s.becomes(t, own, "open", condition("Ready"), `"status":"Unknown"`, `"reason":"NotRendered"`, "must be an integer")
	s.becomes(t, own, "disks", condition("SourcesReady"), `"status":"False"`, "DataSource "+own+"/fedora does not exist; VirtualMachines of other namespaces look for it in their own")
	s.becomes(t, own, "disks", condition("Ready"), `"status":"False"`)
}
