package template_test

import (
	"fmt"
	"testing"
)

func TestMatchComparesLists(t *testing.T) {
	const volumes = `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {volumes: [%s]}}}}}`
	const tolerations = `{parameters: [{name: A}, {name: B}], virtualMachine: {spec: {template: {spec: {tolerations: [%s]}}}}}`
	named := func(template, vm string) matchCase {
		return matchCase{spec: fmt.Sprintf(volumes, template), vm: `{spec: {template: {spec: {volumes: [` + vm + `]}}}}`}
	}
	ordered := func(template, vm string) matchCase {
		return matchCase{spec: fmt.Sprintf(tolerations, template), vm: `{spec: {template: {spec: {tolerations: [` + vm + `]}}}}`}
	}
	bound := func(tc matchCase, values map[string]string) matchCase {
		tc.wantValues = values
		return tc
	}
	other := func(tc matchCase, differences ...string) matchCase {
		tc.wantDifferences = differences
		return tc
	}
	testMatch(t, map[string]matchCase{
		"items with names match by name, in any order, among others": named(
			`{name: a, containerDisk: {image: x}}, {name: b, containerDisk: {image: z}}`,
			`{name: c}, {name: b, containerDisk: {image: z}}, {name: a, containerDisk: {image: x}}`),
		"an item that is not there": other(named(`{name: a, containerDisk: {image: x}}, {name: b}`, `{name: a, containerDisk: {image: x}}`),
			`spec.template.spec.volumes[name=b]: want an object, got nothing`),
		"an item that differs": other(named(`{name: a, containerDisk: {image: x}}`, `{name: b}, {name: a, containerDisk: {image: z}}`),
			`spec.template.spec.volumes[name=a].containerDisk.image: want "x", got "z"`),
		"items are missing where there is no list": {
			spec: fmt.Sprintf(volumes, `{name: a}`), vm: `{spec: {template: {spec: {volumes: null}}}}`,
			wantDifferences: []string{`spec.template.spec.volumes[name=a]: want an object, got nothing`},
		},
		"something else than a list": {
			spec: fmt.Sprintf(volumes, `{name: a}`), vm: `{spec: {template: {spec: {volumes: {a: b}}}}}`,
			wantDifferences: []string{`spec.template.spec.volumes: want a list, got an object`},
		},
		"two items of one name match by position": other(named(`{name: a}, {name: b}`, `{name: a}, {name: b}, {name: b}`),
			`spec.template.spec.volumes[2]: want nothing, got an object`),
		"an item whose name is a parameter that shows elsewhere": bound(named(
			`{name: "${A}", containerDisk: {image: x}}, {name: b, containerDisk: {image: "${A}"}}`,
			`{name: b, containerDisk: {image: q}}, {name: p, containerDisk: {image: x}}, {name: q, containerDisk: {image: x}}`),
			map[string]string{"A": "q"}),
		"an item whose name is a parameter that shows nowhere else": bound(named(
			`{name: b}, {name: "x${A}", containerDisk: {image: x}}`,
			`{name: b, containerDisk: {image: x}}, {name: z, containerDisk: {image: x}}, {name: xy, containerDisk: {image: x}}`),
			map[string]string{"A": "y"}),
		"no item has a name that fits": other(named(`{name: b}, {name: "x${A}"}`, `{name: b}, {name: z}`),
			`spec.template.spec.volumes: want an item with the name "x${A}", got nothing`),
		"an item that a parameter gives": bound(named(`{name: a}, "${{A}}", {name: b}`, `{name: a}, {name: x, containerDisk: {image: z}}, {name: b}`),
			map[string]string{"A": `{"containerDisk":{"image":"z"},"name":"x"}`}),
		"an item that an empty parameter leaves out": bound(named(`{name: a}, "${{A}}"`, `{name: a}`), map[string]string{"A": ""}),
		"of two items that may be left out, the one in its place is there": bound(named(`"${{A}}", {name: a}, "${{B}}"`, `{name: a}, {name: x}`),
			map[string]string{"A": "", "B": `{"name":"x"}`}),
		"items without names match by position": bound(ordered(`{key: a}, {key: "${A}"}`, `{key: a, effect: x}, {key: b}`), map[string]string{"A": "b"}),
		"an item too many without a name": other(ordered(`{key: a}`, `{key: a}, {key: b}`),
			`spec.template.spec.tolerations[1]: want nothing, got an object`),
		"an item too few without a name": other(ordered(`{key: a}, {key: b}`, `{key: a}`),
			`spec.template.spec.tolerations[1]: want an object, got nothing`),
		"items without names in another order": other(ordered(`{key: a}, {key: b}`, `{key: b}, {key: a}`),
			`spec.template.spec.tolerations[0].key: want "a", got "b"`, `spec.template.spec.tolerations[1].key: want "b", got "a"`),
		"an item without a name that is left out":       bound(ordered(`{key: a}, "${{A}}", {key: b}`, `{key: a}, {key: b}`), map[string]string{"A": ""}),
		"an item without a name that a parameter gives": bound(ordered(`{key: a}, "${{A}}", {key: b}`, `{key: a}, {key: c}, {key: b}`), map[string]string{"A": `{"key":"c"}`}),
		"of two items without names that may be left out, the others say which one is there": bound(ordered(`"${{A}}", {key: a}, "${{B}}"`, `{key: a}, {key: b}`),
			map[string]string{"A": "", "B": `{"key":"b"}`}),
		"an item that a parameter gives with a name that it has elsewhere": {
			spec:       `{parameters: [{name: A}], virtualMachine: {metadata: {annotations: {a: "${A}"}}, spec: {template: {spec: {volumes: [{name: a}, "${{A}}"]}}}}}`,
			vm:         `{metadata: {annotations: {a: '{"name": "c"}'}}, spec: {template: {spec: {volumes: [{name: a}, {name: b}, {name: c, containerDisk: {image: x}}]}}}}`,
			wantValues: map[string]string{"A": `{"name": "c"}`},
		},
	})
}
