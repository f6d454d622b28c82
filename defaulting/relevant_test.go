package defaulting_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/defaulting"
)

func TestRelevant(t *testing.T) {
	for name, tc := range map[string]struct{ vm, want string }{
		"names and secrets are left out": {
			`{"metadata":{"name":"a"},"spec":{"runStrategy":"Always","instancetype":{"name":"i"},"preference":{"name":"p"},"dataVolumeTemplates":[{}],` +
				`"template":{"metadata":{"annotations":{"a":"b"},"labels":{"c":"d"}},"spec":{"hostname":"h","architecture":"amd64","domain":{"cpu":{"cores":2}},` +
				`"networks":[{"name":"n","pod":{}}],"accessCredentials":[{}],"volumes":[{"name":"c","cloudInitNoCloud":{"userData":"secret"}},` +
				`{"name":"d","dataVolume":{"name":"e","hotpluggable":true}},{"name":"f","persistentVolumeClaim":{"claimName":"g"}},{"name":"m","memoryDump":{"claimName":"x"}}]}}}}`,
			`{"spec":{"instancetype":{"name":"i"},"preference":{"name":"p"},"template":{"metadata":{"annotations":{"a":"b"}},"spec":{"architecture":"amd64",` +
				`"domain":{"cpu":{"cores":2}},"networks":[{"name":"n","pod":{}}],"volumes":[{"name":"c"},{"name":"d","dataVolume":{"hotpluggable":true}},` +
				`{"name":"f","persistentVolumeClaim":{}},{"name":"m","memoryDump":{}}]}}}}`,
		},
		"so are identities": {
			`{"spec":{"template":{"spec":{"domain":{"chassis":{"serial":"c"},"firmware":{"uuid":"u","serial":"s","bootloader":{"bios":{}}},"devices":{"rng":{},"disks":[{"name":"d","serial":"e","bootOrder":1}]}}}}}}`,
			`{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":"written","bootloader":{"bios":{}}},"devices":{"rng":{},"disks":[{"name":"d","bootOrder":1}]}}}}}}`,
		},
		"a UUID that is open stays open": {
			`{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":""},"devices":{"disks":null}}}}}}`, `{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":""},"devices":{"disks":null}}}}}}`,
		},
		"a machine without a template":      {`{"spec":{"runStrategy":"Always"}}`, `{"spec":{}}`},
		"what cannot be read is kept":       {`{"spec":{"template":{"metadata":5,"spec":{"volumes":[7,{"name":"a","dataVolume":"b"}],"domain":{"firmware":"f","devices":{"disks":[3]}}}}}}`, `{"spec":{"template":{"metadata":5,"spec":{"volumes":[7,{"name":"a","dataVolume":"b"}],"domain":{"firmware":"f","devices":{"disks":[3]}}}}}}`},
		"a template that cannot be read is": {`{"spec":{"template":[]}}`, `{"spec":{"template":[]}}`},
		"volumes that are no list":          {`{"spec":{"template":{"spec":{"volumes":"x"}}}}`, `{"spec":{"template":{"spec":{"volumes":"x"}}}}`},
		"nothing":                           {`{}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			var vm, want map[string]any
			if err := json.Unmarshal([]byte(tc.vm), &vm); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, defaulting.Relevant(vm)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, _ := json.Marshal(vm); string(again) != string(mustMarshal(t, tc.vm)) {
				t.Errorf("the machine is another now: %s", again)
			}
		})
	}
}

// mustMarshal returns a JSON text as the encoder formats it.
func mustMarshal(t *testing.T, text string) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return again
}
