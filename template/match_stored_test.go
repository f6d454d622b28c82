package template_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMatchAStoredVirtualMachine compares a rendered VirtualMachine, as KubeVirt has stored it, with its template.
func TestMatchAStoredVirtualMachine(t *testing.T) {
	compiled := compileFile(t, "fedora.yaml")
	want := map[string]string{
		"NAME": "web-1", "INSTANCETYPE": "u1.large", "DATA_SOURCE_NAME": "fedora", "DATA_SOURCE_NAMESPACE": "golden", "CLOUD_USER_PASSWORD": "k3f9-x0qa-77zt",
	}
	found := matched(t, compiled, readMachine(t, "fedora-stored.json"))
	if diff := cmp.Diff([]string(nil), differences(found)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, found.Values()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   []string
	}{
		"another image": {
			change: func(spec map[string]any) {
				volume := spec["dataVolumeTemplates"].([]any)[0].(map[string]any)["spec"].(map[string]any)
				volume["storage"].(map[string]any)["resources"].(map[string]any)["requests"].(map[string]any)["storage"] = "3000Gi"
			},
			want: []string{`spec.dataVolumeTemplates[0].spec.storage.resources.requests.storage: want "30Gi", got "3000Gi"`},
		},
		"one more volume": {
			change: func(spec map[string]any) {
				spec["dataVolumeTemplates"] = append(spec["dataVolumeTemplates"].([]any), map[string]any{"metadata": map[string]any{"name": "more"}})
			},
			want: []string{`spec.dataVolumeTemplates[1]: want nothing, got an object`},
		},
		"another disk of another machine": {
			change: func(spec map[string]any) {
				volumes := spec["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
				volumes[0].(map[string]any)["dataVolume"].(map[string]any)["name"] = "web-2"
			},
			want: []string{`spec.template.spec.volumes[name=disk-1].dataVolume.name: want "web-1", got "web-2"`},
		},
		"another cloud-init": {
			change: func(spec map[string]any) {
				volumes := spec["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
				volumes[1].(map[string]any)["cloudInitNoCloud"].(map[string]any)["userData"] = "#cloud-config\nuser: root"
			},
			want: []string{`spec.template.spec.volumes[name=cloudinitdisk].cloudInitNoCloud.userData: want (sensitive), got (sensitive)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			vm := readMachine(t, "fedora-stored.json")
			tc.change(vm["spec"].(map[string]any))
			found := matched(t, compiled, vm)
			if diff := cmp.Diff(tc.want, differences(found)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}
