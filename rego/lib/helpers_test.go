package lib_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/rego/lib"
)

// modules are the helpers, parsed.
func modules(t *testing.T) map[string]*ast.Module {
	t.Helper()
	sources, err := lib.Sources()
	if err != nil {
		t.Fatal(err)
	}
	parsed := map[string]*ast.Module{}
	for name, source := range sources {
		module, err := ast.ParseModuleWithOpts(name, source, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			t.Fatal(err)
		}
		parsed[name] = module
	}
	return parsed
}

// evaluate returns the value of an expression as JSON, "undefined" when it has none.
func evaluate(t *testing.T, compiler *ast.Compiler, expression, input string) string {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(input), &document); err != nil {
		t.Fatal(err)
	}
	options := []func(*rego.Rego){
		rego.Compiler(compiler), rego.Imports([]string{"data.lib"}), rego.Query("result := " + expression),
		rego.Input(document), rego.StrictBuiltinErrors(true),
	}
	results, err := rego.New(options...).Eval(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	if len(results) == 0 {
		return "undefined"
	}
	raw, err := json.Marshal(results[0].Bindings["result"])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func compiler(t *testing.T) *ast.Compiler {
	t.Helper()
	c := ast.NewCompiler().WithStrict(true)
	if c.Compile(modules(t)); c.Failed() {
		t.Fatal(c.Errors)
	}
	return c
}

func TestFunctions(t *testing.T) {
	c := compiler(t)
	for expression, want := range map[string]string{
		`lib.image("quay.io/containerdisks/fedora:42")`:                           `{"digest":"","registry":"quay.io","repository":"containerdisks/fedora","tag":"42"}`,
		`lib.image("fedora")`:                                                     `{"digest":"","registry":"docker.io","repository":"library/fedora","tag":""}`,
		`lib.image("acme/fedora")`:                                                `{"digest":"","registry":"docker.io","repository":"acme/fedora","tag":""}`,
		`lib.image("index.docker.io/fedora")`:                                     `{"digest":"","registry":"docker.io","repository":"library/fedora","tag":""}`,
		`lib.image("localhost/fedora")`:                                           `{"digest":"","registry":"localhost","repository":"fedora","tag":""}`,
		`lib.image("QUAY.io:443/a/b:v1@sha256:0123456789abcdef0123456789abcdef")`: `{"digest":"sha256:0123456789abcdef0123456789abcdef","registry":"quay.io:443","repository":"a/b","tag":"v1"}`,
		`lib.image("[fd00::1]:5000/a")`:                                           `{"digest":"","registry":"[fd00::1]:5000","repository":"a","tag":""}`,
		`lib.image("quay.io.evil.example/a").registry`:                            `"quay.io.evil.example"`,
		`lib.image("quay.io@evil.example/a")`:                                     "undefined",
		`lib.image("quay.io/a/../b")`:                                             "undefined",
		`lib.image("quay.io//a")`:                                                 "undefined",
		`lib.image("quay.io/")`:                                                   "undefined",
		`lib.image("/a")`:                                                         "undefined",
		`lib.image("-quay.io/a")`:                                                 "undefined",
		`lib.image("quay.io/a b")`:                                                "undefined",
		`lib.image("quay.io/a\n")`:                                                "undefined",
		`lib.image("")`:                                                           "undefined",
		`lib.quantity("1.5Gi")`:                                                   "1610612736",
		`lib.quantity("500m")`:                                                    "0.5",
		`lib.quantity(2)`:                                                         "2",
		`lib.quantity("1e3")`:                                                     "1000",
		`lib.quantity("1E")`:                                                      "1000000000000000000",
		`lib.quantity("1E-1")`:                                                    "0.1",
		`lib.quantity("0016.250k")`:                                               "16250",
		`lib.quantity(".5")`:                                                      "0.5",
		`lib.quantity("5.")`:                                                      "5",
		`lib.quantity("-1Ki")`:                                                    "-1024",
		`lib.quantity("+7")`:                                                      "7",
		`lib.quantity("0.00Gi")`:                                                  "0",
		`lib.quantity("9223372036854775807")`:                                     "9223372036854775807",
		`lib.quantity("Gi")`:                                                      "undefined",
		`lib.quantity("1 Gi")`:                                                    "undefined",
		`lib.quantity("1gi")`:                                                     "undefined",
		`lib.quantity("")`:                                                        "undefined",
		`lib.quantity(".")`:                                                       "undefined",
		`lib.quantity(true)`:                                                      "undefined",
		`lib.quantity(null)`:                                                      "undefined",
		`lib.quantity({"a": "1"})`:                                                "undefined",
		`lib.glob("u1.*", "u1.large")`:                                            "true",
		`lib.glob("u1.*", "u1xlarge")`:                                            "undefined",
		`lib.glob("*", "")`:                                                       "true",
		`lib.glob("a*b*c", "aXbYc")`:                                              "true",
		`lib.glob("a*a", "a")`:                                                    "undefined",
		`lib.glob("a[b]*", "a[b]c")`:                                              "true",
		`lib.glob("a", "ab")`:                                                     "undefined",
		`lib.glob("a*", "a\nb")`:                                                  "true",
		`lib.matches_any(["x", "y*"], "yes")`:                                     "true",
		`lib.matches_any([], "yes")`:                                              "undefined",
		`lib.url("HTTPS://Example.com:8443/a?b#c")`:                               `{"host":"example.com","scheme":"https"}`,
		`lib.url("https://example.com.")`:                                         `{"host":"example.com","scheme":"https"}`,
		`lib.url("http://[fd00::1]:80/")`:                                         `{"host":"[fd00::1]","scheme":"http"}`,
		`lib.url("https://a@b/")`:                                                 "undefined",
		`lib.url("https://b\\@a/")`:                                               "undefined",
		`lib.url("https://a:80:90/")`:                                             "undefined",
		`lib.url("//a/")`:                                                         "undefined",
		`lib.quoted(["b", "a"])`:                                                  `"\"a\", \"b\""`,
		`lib.quoted([])`:                                                          `"none"`,
		`lib.cloud_init_format("#cloud-config\npassword: x")`:                     `"cloud-config"`,
		`lib.cloud_init_format(" #Cloud-Config # and more")`:                      `"cloud-config"`,
		`lib.cloud_init_format("#cloud-config")`:                                  `"cloud-config"`,
		`lib.cloud_init_format("#cloud-config-archive\n- x")`:                     `"other"`,
		`lib.cloud_init_format("## template: jinja\n#cloud-config\npassword: x")`: `"other"`,
		`lib.cloud_init_format("")`: `"other"`,
	} {
		t.Run(expression, func(t *testing.T) {
			if got := evaluate(t, c, expression, "{}"); got != want {
				t.Errorf("want %s, got %s", want, got)
			}
		})
	}
}

func TestRules(t *testing.T) {
	c := compiler(t)
	for name, tc := range map[string]struct{ rule, input, want string }{
		"images of every kind": {
			rule: "lib.images",
			input: `
object:
  spec:
    dataVolumeTemplates: [{spec: {source: {registry: {url: "docker://q/a"}}}}, {spec: {source: {registry: {url: "oci-archive:b"}}}}]
    template:
      metadata: {annotations: {hooks.kubevirt.io/hookSidecars: '[{"Image": "c", "args": ["x"]}, {"image": "d"}]'}}
      spec:
        volumes: [{name: x, containerDisk: {image: e}}, {name: y}]
        domain: {firmware: {kernelBoot: {container: {image: f}}}}
instancetype: {spec: {annotations: {hooks.kubevirt.io/hookSidecars: 'no JSON'}}}`,
			want: `
- {reference: c, field: "spec.template.metadata.annotations[hooks.kubevirt.io/hookSidecars]"}
- {reference: d, field: "spec.template.metadata.annotations[hooks.kubevirt.io/hookSidecars]"}
- {reference: e, field: "spec.template.spec.volumes[0].containerDisk.image"}
- {reference: f, field: spec.template.spec.domain.firmware.kernelBoot.container.image}
- {reference: "no JSON", field: spec.instancetype.name}
- {reference: "oci-archive:b", field: "spec.dataVolumeTemplates[1].spec.source.registry.url"}
- {reference: q/a, field: "spec.dataVolumeTemplates[0].spec.source.registry.url"}`,
		},
		"annotations of the machine, its instance type and its preference, and not of the VirtualMachine": {
			rule: "lib.annotations",
			input: `
object: {metadata: {annotations: {a: "1"}}, spec: {template: {metadata: {annotations: {b: "2"}}}}}
instancetype: {spec: {annotations: {c: "3"}}}
preference: {spec: {annotations: {d: "4"}}}`,
			want: `
- {key: b, value: "2", field: "spec.template.metadata.annotations[b]"}
- {key: c, value: "3", field: spec.instancetype.name}
- {key: d, value: "4", field: spec.preference.name}`,
		},
		"networks that are named": {
			rule: "lib.networks",
			input: `
request: {namespace: team-a}
object: {spec: {template: {spec: {networks: [{name: a, pod: {}}, {name: b, multus: {networkName: lan}}, {name: c, multus: {networkName: infra/lan}}, {name: d, resourceClaim: {}}]}}}}`,
			want: `
- {network: infra/lan, field: "spec.template.spec.networks[2].multus.networkName"}
- {network: pod, field: "spec.template.spec.networks[0].pod"}
- {network: resourceClaim, field: "spec.template.spec.networks[3].resourceClaim"}
- {network: team-a/lan, field: "spec.template.spec.networks[1].multus.networkName"}`,
		},
		"the pod network, because none is named": {
			rule: "lib.networks", input: "object: {spec: {template: {spec: {domain: {}}}}}",
			want: "- {network: pod, field: spec.template.spec.networks}",
		},
		"no network, because none is attached": {
			rule: "lib.networks", input: "object: {spec: {template: {spec: {domain: {devices: {autoattachPodInterface: false}}}}}}", want: "[]",
		},
		"no network, because a preference prefers none": {
			rule: "lib.networks", input: "{object: {spec: {template: {spec: {domain: {}}}}}, preference: {spec: {devices: {preferredAutoattachPodInterface: false}}}}", want: "[]",
		},
		"the pod network, against a preference": {
			rule: "lib.networks", input: "{object: {spec: {template: {spec: {domain: {devices: {autoattachPodInterface: true}}}}}}, preference: {spec: {devices: {preferredAutoattachPodInterface: false}}}}",
			want: "- {network: pod, field: spec.template.spec.networks}",
		},
		"an instance type of the cluster": {
			rule: "lib.instancetype", input: "object: {spec: {instancetype: {name: u1.small}}}",
			want: "{kind: VirtualMachineClusterInstancetype, name: u1.small}",
		},
		"an instance type of the namespace, in lower case and plural": {
			rule: "lib.instancetype", input: "object: {spec: {instancetype: {name: own, kind: virtualmachineinstancetypes}}}",
			want: "{kind: VirtualMachineInstancetype, name: own}",
		},
		"an instance type of no kind": {
			rule: "lib.instancetype", input: "object: {spec: {instancetype: {name: own, kind: Pod}}}", want: `{kind: "", name: own}`,
		},
		"an instance type that is not there":     {rule: "lib.instancetype_missing", input: "{object: {spec: {instancetype: {name: x}}}, instancetype: null}", want: "true"},
		"an instance type that is there":         {rule: "lib.instancetype_missing", input: "{object: {spec: {instancetype: {name: x}}}, instancetype: {spec: {}}}", want: "undefined"},
		"no instance type":                       {rule: "lib.instancetype_missing", input: "{object: {spec: {}}, instancetype: null}", want: "undefined"},
		"CPUs of nothing":                        {rule: "lib.cpus", input: "{object: {spec: {template: {spec: {domain: {}}}}}, instancetype: null}", want: "[]"},
		"CPUs, with 0 for what is not given":     {rule: "lib.cpus", input: "object: {spec: {template: {spec: {domain: {cpu: {cores: 0, threads: 2, sockets: 0}}}}}}", want: "- {count: 2, field: spec.template.spec.domain.cpu}"},
		"CPUs of an instance type alone":         {rule: "lib.cpus", input: "{object: {spec: {template: {spec: {domain: {}}}}}, instancetype: {spec: {cpu: {guest: 4}}}, preference: null}", want: "- {count: 4, field: spec.instancetype.name}"},
		"CPUs that sockets of a preference give": {rule: "lib.cpus", input: "{object: {spec: {}}, instancetype: {spec: {cpu: {guest: 4, maxSockets: 8}}}, preference: {spec: {cpu: {preferredCPUTopology: sockets}}}}", want: "[{count: 4, field: spec.instancetype.name}, {count: 8, field: spec.instancetype.name}]"},
		"memory": {
			rule: "lib.memory", input: "object: {spec: {template: {spec: {domain: {memory: {guest: 1Ki, hugepages: {pageSize: 2Mi}}, resources: {limits: {memory: 2Ki, cpu: 1, hugepages-2Mi: 3Ki}}}}}}}",
			want: "[{bytes: 1024, field: spec.template.spec.domain.memory.guest}, {bytes: 2048, field: spec.template.spec.domain.resources.limits.memory}, {bytes: 3072, field: spec.template.spec.domain.resources.limits.hugepages-2Mi}]",
		},
		"disks in both forms": {
			rule: "lib.data_volumes", input: "object: {spec: {dataVolumeTemplates: [{metadata: {name: a}, spec: {storage: {x: 1}, source: {blank: {}}}}, {spec: {pvc: {y: 1}}}, {spec: {}}]}}",
			want: `
- {name: "", claim: {}, source: {}, field: "spec.dataVolumeTemplates[2].spec", claimField: "spec.dataVolumeTemplates[2].spec.storage"}
- {name: "", claim: {y: 1}, source: {}, field: "spec.dataVolumeTemplates[1].spec", claimField: "spec.dataVolumeTemplates[1].spec.pvc"}
- {name: a, claim: {x: 1}, source: {blank: {}}, field: "spec.dataVolumeTemplates[0].spec", claimField: "spec.dataVolumeTemplates[0].spec.storage"}`,
		},
		"cloud-init in every place": {
			rule: "lib.cloud_init", input: `object: {spec: {template: {spec: {volumes: [{cloudInitNoCloud: {userData: a, networkDataBase64: Yg==}}, {cloudInitConfigDrive: {userDataBase64: "%"}}, {cloudInitNoCloud: {secretRef: {name: x}}}]}}}}`,
			want: `
- {part: networkData, text: b, field: "spec.template.spec.volumes[0].cloudInitNoCloud.networkDataBase64"}
- {part: userData, text: "", field: "spec.template.spec.volumes[1].cloudInitConfigDrive.userDataBase64"}
- {part: userData, text: a, field: "spec.template.spec.volumes[0].cloudInitNoCloud.userData"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluate(t, c, tc.rule, tc.input)
			if tc.want == "undefined" || got == "undefined" {
				if got != tc.want {
					t.Errorf("want %s, got %s", tc.want, got)
				}
				return
			}
			var want, have any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(got), &have); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sorted(want), sorted(have)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
