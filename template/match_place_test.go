package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template"
)

func TestMatchIgnoring(t *testing.T) {
	const spec = `
parameters: [{name: A}]
virtualMachine:
  metadata: {labels: {a: b, "${A}.x": z}}
  spec:
    runStrategy: Halted
    template:
      spec:
        hostname: ${A}
        networks: [{name: a, multus: {networkName: m}}]
        tolerations: [{key: k}]
        domain: {cpu: {cores: "${{A}}"}}
`
	const vm = `{metadata: {labels: {a: c}}, spec: {runStrategy: Always, template: {spec: {hostname: x, networks: [{name: a, multus: {networkName: o}}], tolerations: [{key: l}, {key: m}], domain: {cpu: {cores: 2}}}}}}`
	asked := map[string]bool{}
	found := match(t, spec, vm, template.Ignoring(func(path ...string) bool {
		asked[strings.Join(path, " ")] = true
		return false
	}))
	want := []string{
		`metadata labels a`, `metadata labels x.x`, `spec runStrategy`, `spec template spec domain cpu cores`, `spec template spec hostname`,
		`spec template spec networks [name=a] multus networkName`, `spec template spec tolerations [0] key`, `spec template spec tolerations [1]`,
	}
	got := make([]string, 0, len(asked))
	for path := range asked {
		got = append(got, path)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked about (-want +got):\n%s", diff)
	}
	if found.Matches() {
		t.Error("with nothing ignored it matches")
	}

	for name, tc := range map[string]struct {
		ignored         []string
		wantDifferences int
		wantValues      map[string]string
	}{
		"what is ignored is no difference": {
			ignored: []string{`spec runStrategy`, `metadata labels a`}, wantDifferences: 5, wantValues: map[string]string{"A": "x"},
		},
		"what is ignored binds nothing": {
			ignored: []string{`spec template spec hostname`}, wantDifferences: 6, wantValues: map[string]string{"A": "2"},
		},
		"an item too many is ignored by its place": {
			ignored: []string{`spec template spec tolerations [1]`}, wantDifferences: 6, wantValues: map[string]string{"A": "x"},
		},
		"everything is ignored": {
			ignored: []string{""}, wantDifferences: 0, wantValues: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := match(t, spec, vm, template.Ignoring(func(path ...string) bool {
				return slices.ContainsFunc(tc.ignored, func(prefix string) bool { return strings.HasPrefix(strings.Join(path, " "), prefix) })
			}))
			if len(found.Differences()) != tc.wantDifferences {
				t.Errorf("got %d differences, want %d: %v", len(found.Differences()), tc.wantDifferences, differences(found))
			}
			if diff := cmp.Diff(tc.wantValues, found.Values()); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMatchShowsNoSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	for name, tc := range map[string]struct {
		spec, vm string
		want     []string
	}{
		"a text that differs": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {spec: {template: {spec: {hostname: "${A}", subdomain: "x${A}"}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: hunter2-hunter2, subdomain: "y hunter2-hunter2"}}}}`,
			want: []string{`spec.template.spec.subdomain: want (sensitive), got (sensitive)`},
		},
		"a value that its parameter does not take": {
			spec: `{parameters: [{name: A, sensitive: true, enum: [a, b]}], virtualMachine: {spec: {template: {spec: {hostname: "${A}"}}}}}`,
			vm:   `{spec: {template: {spec: {hostname: hunter2-hunter2}}}}`,
			want: []string{`spec.template.spec.hostname: want ${A}, which must be one of the values that the template lists, got (sensitive)`},
		},
		"an object that differs": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {nodeSelector: "${{A}}"}}}}}`,
			vm:   `{metadata: {annotations: {a: '{"hunter2-hunter2": "x"}'}}, spec: {template: {spec: {nodeSelector: {hunter2-hunter2: z}}}}}`,
			want: []string{`spec.template.spec.nodeSelector: want (sensitive), got (sensitive)`},
		},
		"a key": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {labels: {"${A}": x}, annotations: {a: "${A}"}}}}`,
			vm:   `{metadata: {labels: {hunter2-hunter2: z}, annotations: {a: hunter2-hunter2}}}`,
			want: []string{`metadata.labels["${A}"]: want "x", got "z"`},
		},
		"an item among others without names": {
			spec: `{parameters: [{name: A, sensitive: true, required: true}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {tolerations: [{key: a}, "${{A}}"]}}}}}`,
			vm:   `{metadata: {annotations: {a: '{"name":"hunter2-hunter2","key":"a"}'}}, spec: {template: {spec: {tolerations: [{name: a, key: a}, {name: hunter2-hunter2, key: b}]}}}}`,
			want: []string{`spec.template.spec.tolerations[1]: want (sensitive), got (sensitive)`},
		},
		"the name of an item": {
			spec: `{parameters: [{name: A, sensitive: true}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {volumes: [{name: "${A}", containerDisk: {image: x}}]}}}}}`,
			vm:   `{metadata: {annotations: {a: hunter2-hunter2}}, spec: {template: {spec: {volumes: [{name: hunter2-hunter2, containerDisk: {image: z}}]}}}}`,
			want: []string{`spec.template.spec.volumes[name="(sensitive)"].containerDisk.image: want "x", got "z"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := differences(match(t, tc.spec, tc.vm))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if strings.Contains(fmt.Sprint(got), secret) {
				t.Error("the secret shows")
			}
		})
	}
}
