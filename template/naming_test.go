package template_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
)

func TestNaming(t *testing.T) {
	const disks = `, dataVolumeTemplates: [{metadata: {name: "${NAME}-root"}, spec: {sourceRef: {kind: DataSource, name: fedora}}}]`
	for name, tc := range map[string]struct {
		spec string // after metadata of the VirtualMachine
		want bool
	}{
		"it names the VirtualMachine":         {"", true},
		"and its own disks":                   {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: "${NAME}", dataVolume: {name: "${NAME}-root"}}]}}` + disks + `}`, true},
		"and its host, in cloud-init too":     {`spec: {template: {spec: {hostname: "${NAME}", domain: {devices: {}}, volumes: [{name: a, cloudInitNoCloud: {userData: "hostname: ${NAME}", secretRef: {name: "${NAME}"}}}]}}}`, true},
		"and its Secret":                      {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, secret: {secretName: "${NAME}"}}, {name: b, sysprep: {secret: {name: "${NAME}"}}}]}}}`, true},
		"a DataVolume that is not its own":    {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, dataVolume: {name: "${NAME}-data"}}]}}` + disks + `}`, false},
		"a claim":                             {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, persistentVolumeClaim: {claimName: "${NAME}"}}]}}}`, false},
		"an ephemeral claim":                  {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, ephemeral: {persistentVolumeClaim: {claimName: "${NAME}"}}}]}}}`, false},
		"a part of an image":                  {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, containerDisk: {image: "registry.example.com/${NAME}:latest"}}]}}}`, false},
		"a path":                              {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, hostDisk: {type: Disk, path: "/disks/${NAME}"}}]}}}`, false},
		"a source":                            {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a}, spec: {source: {http: {url: "https://example.com/${NAME}"}}}}]}`, false},
		"a source by reference":               {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, name: "${NAME}"}}}]}`, false},
		"a source of a claim":                 {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a}, spec: {storage: {dataSource: {kind: PersistentVolumeClaim, name: "${NAME}"}}}}]}`, false},
		"the volume of a claim":               {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a}, spec: {pvc: {volumeName: "${NAME}"}}}]}`, false},
		"a kernel":                            {`spec: {template: {spec: {domain: {firmware: {kernelBoot: {container: {image: "${NAME}"}}}, devices: {}}}}}`, false},
		"a whole volume":                      {`spec: {template: {spec: {domain: {devices: {}}, volumes: ["${{NAME}}"]}}}`, false},
		"all volumes":                         {`spec: {template: {spec: {domain: {devices: {}}, volumes: "${{NAME}}"}}}`, false},
		"the key under which an image stands": {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, "${NAME}": {image: fixed}}]}}}`, false},
		"an image under a key that is a parameter as well":   {`spec: {template: {spec: {domain: {devices: {}}, volumes: [{name: a, "container${KIND}": {image: "${NAME}"}}]}}}`, false},
		"a size and a label of the disk, which is no source": {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a, labels: {of: "${NAME}"}}, spec: {sourceRef: {kind: DataSource, name: fedora}, storage: {resources: {requests: {storage: 1Gi}}}}}]}`, true},
		"another parameter in a source":                      {`spec: {template: {spec: {domain: {devices: {}}}}, dataVolumeTemplates: [{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, name: "${KIND}"}}}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tc.spec
			if spec == "" {
				spec = "spec: {template: {spec: {domain: {devices: {}}}}}"
			}
			c := compile(t, `{parameters: [{name: NAME, required: true}, {name: KIND, value: Disk}], virtualMachine: {metadata: {name: "${NAME}"}, `+spec+`}}`)
			if got := c.Naming("NAME"); got != tc.want {
				t.Errorf("got %v", got)
			}
			if got := c.SelectsSource("NAME"); got == tc.want {
				t.Errorf("it selects a source: %v", got)
			}
			if c.Naming("KIND") || c.Naming("NOWHERE") {
				t.Error("what has no part in the name sets it")
			}
		})
	}
	t.Run("where the name is fixed", func(t *testing.T) {
		c := compile(t, `{parameters: [{name: NAME}], virtualMachine: {metadata: {name: web, labels: {of: "${NAME}"}}}}`)
		if c.Naming("NAME") || c.SelectsSource("NAME") || c.SelectsSource("NOWHERE") {
			t.Error("it sets the name, or selects a source")
		}
	})
	t.Run("the golden templates of the documentation", func(t *testing.T) {
		for _, name := range []string{"fedora", "ubuntu", "windows"} {
			text, err := os.ReadFile("../docs/examples/golden/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			object := &v1beta1.VirtualMachineTemplate{}
			if err := yaml.UnmarshalStrict(text, object); err != nil {
				t.Fatal(err)
			}
			c := mustCompile(t, object)
			if !c.Naming("NAME") {
				t.Errorf("NAME of %s is not what names the VirtualMachine", name)
			}
			if name == "fedora" && (!c.SelectsSource("DATA_SOURCE_NAME") || !c.SelectsSource("DATA_SOURCE_NAMESPACE") || c.SelectsSource("INSTANCETYPE")) {
				t.Error("the parameters that select the source of its disk are not found")
			}
		}
	})
}

func TestMessageShows(t *testing.T) {
	c := compile(t, `{message: "of ${KIND}, $${NAME}", parameters: [{name: NAME}, {name: KIND}], virtualMachine: {metadata: {name: "${NAME}"}}}`)
	for name, want := range map[string]bool{"KIND": true, "NAME": false, "NOWHERE": false} {
		if got := c.MessageShows(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCarries(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, name string
		values        map[string]string
		want          bool
	}{
		"a name that fits":                            {"vm-${A}", "vm-web", nil, true},
		"the given value stands in it":                {"vm-${A}", "vm-web", map[string]string{"A": "web"}, true},
		"another value":                               {"vm-${A}", "vm-web", map[string]string{"A": "db"}, false},
		"a name that does not fit":                    {"vm-${A}", "web", map[string]string{"A": "web"}, false},
		"no value where the template generates one":   {"vm-${G}", "vm-web", map[string]string{"G": ""}, true},
		"one of two values":                           {"${A}-${B}", "a-b-c", map[string]string{"A": "a-b"}, true},
		"a value that the name would cut differently": {"${A}-${B}", "a-b-c", map[string]string{"A": "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := named(t, tc.pattern).Carries(tc.name, tc.values); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestGenerates(t *testing.T) {
	c := named(t, "${A}")
	for _, tc := range []struct {
		parameter, value string
		want             bool
	}{
		{"G", "abcd", true}, {"G", "abc", false}, {"G", "ABCD", false}, {"G", "", false}, {"A", "abcd", false}, {"B", "default", false}, {"NOWHERE", "abcd", false},
	} {
		if got := c.Generates(tc.parameter, tc.value); got != tc.want {
			t.Errorf("%s as %q: got %v", tc.parameter, tc.value, got)
		}
	}
}

func TestPreferring(t *testing.T) {
	const spec = `
parameters: [{name: A, value: 1024Mi}, {name: B, value: x}, {name: C}]
virtualMachine: {spec: {template: {spec: {hostname: "${B}${C}", domain: {memory: {guest: "${A}"}, devices: {}}}}}}
`
	defaults := template.Preferring(map[string]string{"A": "1024Mi", "B": "x", "NOWHERE": "y"})
	for name, tc := range map[string]struct {
		memory, hostname, annotations string
		want                          map[string]string
	}{
		"the value is found as it was given, not as KubeVirt wrote it": {"1Gi", "x", "", map[string]string{"A": "1024Mi", "B": "x", "C": ""}},
		"one of several readings is that of the preferred value":       {"1024Mi", "xyz", "", map[string]string{"A": "1024Mi", "B": "x", "C": "yz"}},
		"another value is found all the same":                          {"2Gi", "x", "", map[string]string{"A": "2Gi"}},
		"an annotation says more":                                      {"1024Mi", "xyz", "parameter.template.kubevirt.io/B: xy", map[string]string{"A": "1024Mi", "B": "xy", "C": "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := match(t, spec, `{metadata: {name: web, annotations: {`+tc.annotations+`}}, spec: {template: {spec: {hostname: `+tc.hostname+`, domain: {memory: {guest: `+tc.memory+`}, devices: {}}}}}}`, defaults)
			if !found.Matches() {
				t.Errorf("differences: %v", differences(found))
			}
			for parameter, want := range tc.want {
				if got := found.Values()[parameter]; got != want {
					t.Errorf("%s is %q, want %q", parameter, got, want)
				}
			}
		})
	}
}
