package artifact

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	good  = "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: VirtualMachinePolicy\nmetadata: {name: a}\nspec: {rego: package a, parameters: {any: [1]}}\n"
	other = "apiVersion: stencil.kubevirt.io/v1alpha1\nkind: VirtualMachinePolicy\nmetadata: {name: b, labels: {team: x}, annotations: {stencil.kubevirt.io/store-failing: 'true'}}\nspec: {rego: package b}\n"
)

func TestLayers(t *testing.T) {
	many := func(count int) string {
		var all strings.Builder
		for i := range count {
			all.WriteString("---\n" + strings.Replace(good, "name: a", fmt.Sprintf("name: a%d", i), 1))
		}
		return all.String()
	}
	for name, tc := range map[string]struct {
		layers []string
		want   string
		count  int
	}{
		"one document":               {layers: []string{good}, count: 1},
		"several, and comments":      {layers: []string{"# first\n---\n" + good + "---\n" + other + "---\n# last\n"}, count: 2},
		"several layers":             {layers: []string{good, other}, count: 2},
		"as many as are supported":   {layers: []string{many(MaximumPolicies)}, count: MaximumPolicies},
		"one more":                   {layers: []string{many(MaximumPolicies), other}, want: "layer 1, document 0: more than 256 policies"},
		"no document":                {layers: []string{good, "# nothing\n"}, want: "layer 1 has no policies"},
		"no YAML":                    {layers: []string{"a: [\n"}, want: "layer 0, document 0: yaml: line 1: did not find expected node content"},
		"no object":                  {layers: []string{"- a\n"}, want: "layer 0, document 0: it is not an object"},
		"a key twice":                {layers: []string{good + "kind: VirtualMachinePolicy\n"}, want: `layer 0, document 0: yaml: unmarshal errors:` + "\n" + `  line 5: key "kind" already set in map`},
		"the same policy twice":      {layers: []string{good, other + "---\n" + good}, want: "layer 1, document 1: metadata.name: policy a is in layer 0, document 0 too"},
		"another kind":               {layers: []string{"apiVersion: v1\nkind: Secret\n"}, want: `layer 0, document 0: kind: it is a "Secret" of "v1"; only VirtualMachinePolicy of stencil.kubevirt.io/v1alpha1 is supported`},
		"another version":            {layers: []string{strings.Replace(good, "v1alpha1", "v9", 1)}, want: `layer 0, document 0: kind: it is a "VirtualMachinePolicy" of "stencil.kubevirt.io/v9"; only VirtualMachinePolicy of stencil.kubevirt.io/v1alpha1 is supported`},
		"an unknown field":           {layers: []string{good + "---\n" + strings.Replace(other, "spec: {", "spec: {match: {kind: [a]}, ", 1)}, want: `layer 0, document 1: unknown field "spec.match.kind"`},
		"a field of another type":    {layers: []string{strings.Replace(good, "package a", "[1]", 1)}, want: "layer 0, document 0: json: cannot unmarshal array into Go struct field VirtualMachinePolicySpec.spec.rego of type string"},
		"no name":                    {layers: []string{strings.Replace(good, "{name: a}", "{}", 1)}, want: "layer 0, document 0: metadata.name: must be set"},
		"no spec":                    {layers: []string{"apiVersion: stencil.kubevirt.io/v1alpha1\nkind: VirtualMachinePolicy\nmetadata: {name: a}\n"}, want: "layer 0, document 0: spec: must be set"},
		"a status":                   {layers: []string{good + "status: {}\n"}, want: "layer 0, document 0: status: must not be set"},
		"a finalizer":                {layers: []string{strings.Replace(good, "{name: a}", "{name: a, finalizers: [a/b]}", 1)}, want: "layer 0, document 0: metadata.finalizers: must not be set; only name, labels and annotations may be"},
		"the label of the library":   {layers: []string{strings.Replace(good, "{name: a}", "{name: a, labels: {stencil.kubevirt.io/policy-library: x}}", 1)}, want: "layer 0, document 0: metadata.labels: stencil.kubevirt.io/policy-library: labels of stencil.kubevirt.io must not be set"},
		"an annotation of Stencil's": {layers: []string{strings.Replace(good, "{name: a}", "{name: a, annotations: {stencil.kubevirt.io/policy-source-digest: x}}", 1)}, want: "layer 0, document 0: metadata.annotations: stencil.kubevirt.io/policy-source-digest: annotations of stencil.kubevirt.io must not be set"},
	} {
		t.Run(name, func(t *testing.T) {
			d := decoder{from: map[string]string{}}
			var err error
			for i, content := range tc.layers {
				if err = d.layer((&layer{}).name(i), []byte(content)); err != nil {
					break
				}
			}
			check(t, err, tc.want)
			if err == nil && len(d.policies) != tc.count {
				t.Errorf("%d policies, want %d", len(d.policies), tc.count)
			}
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var broken *InvalidError
	if !errors.As(err, &broken) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestManifests(t *testing.T) {
	manifest := func(artifactType, layers string) string {
		return `{"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": "` + artifactType + `", "config": {"mediaType": "application/vnd.oci.empty.v1+json"}, "layers": [` + layers + `]}`
	}
	sized := func(size int) string {
		return fmt.Sprintf(`{"mediaType": %q, "digest": "sha256:0", "size": %d, "annotations": {"org.opencontainers.image.title": "a.yaml"}}`, LayerType, size)
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"good":                  {manifest(Type, sized(10)), ""},
		"of OCI 1.0":            {strings.Replace(manifest("", sized(10)), "application/vnd.oci.empty.v1+json", Type, 1), ""},
		"just small enough":     {manifest(Type, sized(MaximumSize-1)+","+sized(1)), ""},
		"too large":             {manifest(Type, sized(MaximumSize)+","+sized(1)), "the layers have more than 4 MiB together"},
		"a size that overflows": {manifest(Type, sized(1)+","+sized(1<<63-1)), "the layers have more than 4 MiB together"},
		"a negative size":       {manifest(Type, sized(-1)), "the layers have more than 4 MiB together"},
		"no layer":              {manifest(Type, ""), "the manifest has 0 layers; 1 to 256 are supported"},
		"too many layers":       {manifest(Type, strings.Repeat(sized(1)+",", 256)+sized(1)), "the manifest has 257 layers; 1 to 256 are supported"},
		"another type":          {manifest("application/x", sized(1)), `the manifest has artifact type "application/x", not application/vnd.stencil.policies.v1`},
		"an image":              {manifest("", sized(1)), `the manifest has artifact type "application/vnd.oci.empty.v1+json", not application/vnd.stencil.policies.v1`},
		"another layer":         {manifest(Type, strings.Replace(sized(1), LayerType, "application/x", 1)), `layer 0 ("a.yaml") has media type "application/x", not application/vnd.stencil.policies.v1+yaml`},
		"an index":              {`{"mediaType": "application/vnd.oci.image.index.v1+json"}`, `the manifest has media type "application/vnd.oci.image.index.v1+json", not application/vnd.oci.image.manifest.v1+json: an index is not supported`},
		"no JSON":               {`{`, "the manifest cannot be decoded: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeManifest([]byte(tc.manifest))
			check(t, err, tc.want)
		})
	}
}
