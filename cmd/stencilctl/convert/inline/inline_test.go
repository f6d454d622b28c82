package inline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/convert/inline"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var made map[string]any
	if err := yaml.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	return made
}

func TestConvert(t *testing.T) {
	const around = `{metadata: {name: box}, spec: {parameters: [{name: IMAGE}], virtualMachine: {spec: {dataVolumeTemplates: [`
	fedora := inline.Claim{Namespace: "golden", Name: "fedora"}
	for name, tc := range map[string]struct {
		disks, want string
		result      inline.Result
	}{
		"two disks of a claim": {
			`{metadata: {name: a}, spec: {source: {pvc: {namespace: golden, name: fedora}}, storage: {}}}, {metadata: {name: b}, spec: {source: {pvc: {namespace: golden, name: fedora}}}}`,
			`{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: fedora}, storage: {}}}, {metadata: {name: b}, spec: {sourceRef: {kind: DataSource, namespace: golden, name: fedora}}}`,
			inline.Result{Disks: []string{"a", "b"}, Claims: []inline.Claim{fedora}},
		},
		"other sources": {
			`{metadata: {name: a}, spec: {source: {blank: {}}}}, {metadata: {name: b}, spec: {sourceRef: {kind: DataSource, name: x}}}`,
			`{metadata: {name: a}, spec: {source: {blank: {}}}}, {metadata: {name: b}, spec: {sourceRef: {kind: DataSource, name: x}}}`,
			inline.Result{},
		},
		"a claim of a parameter, and one without a namespace": {
			`{metadata: {name: a}, spec: {source: {pvc: {namespace: golden, name: "${IMAGE}"}}}}, {metadata: {name: b}, spec: {source: {pvc: {name: fedora}}}}`,
			`{metadata: {name: a}, spec: {source: {pvc: {namespace: golden, name: "${IMAGE}"}}}}, {metadata: {name: b}, spec: {source: {pvc: {name: fedora}}}}`,
			inline.Result{Left: []string{"a: the claim golden/${IMAGE} depends on a parameter", "b: spec.source.pvc lacks the namespace or the name of the claim"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			template := object(t, around+tc.disks+`]}}}}`)
			if diff := cmp.Diff(tc.result, inline.Convert(template)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(object(t, around+tc.want+`]}}}}`), template); diff != "" {
				t.Error(diff)
			}
			if again := inline.Convert(template); len(again.Disks) > 0 {
				t.Errorf("a second run converts %v", again.Disks)
			}
		})
	}
}

func TestConflict(t *testing.T) {
	const end = ", not for PersistentVolumeClaim golden/fedora: rename one of them, or use the DataSource in the template yourself"
	claim := inline.Claim{Namespace: "golden", Name: "fedora"}
	for text, want := range map[string]string{
		`{spec: {source: {pvc: {namespace: golden, name: fedora}}}}`: "",
		`{spec: {source: {pvc: {name: fedora}}}}`:                    "",
		`{spec: {source: {pvc: {namespace: other, name: fedora}}}}`:  "DataSource golden/fedora exists and stands for PersistentVolumeClaim other/fedora" + end,
		`{spec: {source: {snapshot: {name: daily}}}}`:                "DataSource golden/fedora exists and stands for VolumeSnapshot daily" + end,
		`{spec: {source: {dataSource: {name: next}}}}`:               "DataSource golden/fedora exists and stands for DataSource next" + end,
		`{spec: {source: {}}}`:                                       "DataSource golden/fedora exists and stands for nothing" + end,
	} {
		if got := claim.Conflict(object(t, text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if got := claim.Conflict(claim.DataSource()); got != "" {
		t.Errorf("its own DataSource: %s", got)
	}
}
