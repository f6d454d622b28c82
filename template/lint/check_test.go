package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/template"
	templatelint "github.com/vmstencil/stencil/template/lint"
)

func parse(t *testing.T, manifest string) *v1beta1.VirtualMachineTemplate {
	t.Helper()
	var read v1beta1.VirtualMachineTemplate
	if err := yaml.UnmarshalStrict([]byte(manifest), &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

// manifest returns a template without findings, except for those caused by the arguments.
func manifest(parameters, machine string) string {
	if parameters != "" {
		parameters = ", " + parameters
	}
	if machine == "" {
		machine = "{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted}}"
	}
	return "{metadata: {name: a, annotations: {description: x}}, spec: {parameters: [{name: NAME, description: x}" + parameters + "], virtualMachine: " + machine + "}}"
}

// cores is a VirtualMachine with a place for a number.
const cores = "{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: '${{OTHER}}'}}}}}}"

// storage is a VirtualMachine with these lists.
func storage(disks, volumes, dataVolumes string) string {
	return "{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, dataVolumeTemplates: " + dataVolumes +
		", template: {spec: {domain: {devices: {disks: " + disks + ", filesystems: [{name: files, virtiofs: {}}]}}, volumes: " + volumes + "}}}}"
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name     string
		manifest string
		want     []string
	}{
		{name: "nothing to say", manifest: manifest("", "")},
		{
			name:     "what the engine refuses is an error, and there is advice beside it",
			manifest: manifest("", "{metadata: {name: '${NAMME}'}, spec: {running: true, coress: 2}}"),
			want: []string{
				`error invalid spec.virtualMachine.metadata.name: Invalid value: "${NAMME}": no parameter is called NAMME; did you mean NAME?`,
				`error invalid spec.virtualMachine.spec.coress (key): Invalid value: there is no such field`,
				`advice running-deprecated spec.virtualMachine.spec.running: running is deprecated: write runStrategy, Always for true and Halted for false`,
			},
		},
		{
			name:     "a default with which there is no VirtualMachine is an error",
			manifest: manifest("{name: OTHER, description: x, value: many}", cores),
			want: []string{
				`error defaults spec.virtualMachine.spec.template.spec.domain.cpu.cores: Invalid value: "many": value of OTHER: must be an integer from 0 to 4294967295; these are the template's own values: correct them, or require a value of the user`,
			},
		},
		{
			name:     "a default that only a user can replace is a warning",
			manifest: manifest("{name: OTHER, description: x, value: many}, {name: ANY, description: x, required: true}", strings.Replace(cores, "metadata: {", "metadata: {labels: {a: '${ANY}'}, ", 1)),
			want: []string{
				`warning suspicious spec.virtualMachine.spec.template.spec.domain.cpu.cores: only other values than the template's own make a VirtualMachine: Invalid value: "many": value of OTHER: must be an integer from 0 to 4294967295`,
			},
		},
		{
			name: "disks, volumes and sources that do not belong together",
			manifest: manifest("", storage("[{name: root}, {name: lost}, {name: drive, cdrom: {}}]",
				"[{name: root, persistentVolumeClaim: {claimName: a}}, {name: more, dataVolume: {name: a}}, {name: files, emptyDisk: {}}, {name: dump, memoryDump: {claimName: d}}]",
				"[{metadata: {name: a}, spec: {sourceRef: {kind: DataSource, name: fedora}}}, {metadata: {name: b}, spec: {sourceRef: {kind: DataSource, namespace: images, name: fedora}}}]")),
			want: []string{
				"warning disk-without-volume spec.virtualMachine.spec.template.spec.domain.devices.disks[1].name: there is no volume lost: KubeVirt denies the VirtualMachine, unless the user adds the volume",
				"warning volume-without-disk spec.virtualMachine.spec.template.spec.volumes[1].name: there is no disk more: KubeVirt adds one with its own settings",
				"warning shared-claim spec.virtualMachine.spec.template.spec.volumes[1]: volume root has the same claim, a: two disks of one claim lock each other out, unless both are shareable",
				"warning source-without-namespace spec.virtualMachine.spec.dataVolumeTemplates[0].spec.sourceRef: without a namespace, KubeVirt and CDI look for DataSource fedora in the namespace of the VirtualMachine: write the namespace, unless each namespace has its own",
			},
		},
		{
			name:     "volumes without any disk are left to KubeVirt",
			manifest: manifest("", storage("[]", "[{name: root, emptyDisk: {}}]", "[]")),
		},
		{
			name:     "names that depend on parameters may be any",
			manifest: manifest("", storage("[{name: '${NAME}'}, {name: root}]", "[{name: root, emptyDisk: {}}, {name: data, emptyDisk: {}}, {name: c, persistentVolumeClaim: {claimName: 'x-${NAME}'}}]", "[]")),
		},
		{
			name:     "a parameter that is an item, or the list",
			manifest: manifest("{name: DISK, description: x, required: true}, {name: VOLUMES, description: x, required: true}", storage("[{name: root}, '${{DISK}}']", "'${{VOLUMES}}'", "[]")),
		},
		{
			name:     "a parameter that nothing refers to",
			manifest: manifest("{name: SPARE, displayName: Spare}", ""),
			want:     []string{"warning unused-parameter spec.parameters[1].name: parameter SPARE is declared and never referred to"},
		},
		{
			name:     "a parameter in cloud-init's YAML as it is",
			manifest: manifest("", `{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, volumes: [{name: a, cloudInitNoCloud: {userData: "#cloud-config\nhostname: ${NAME}\n"}}]}}}}`),
			want: []string{
				"warning suspicious spec.virtualMachine.spec.template.spec.volumes[0].cloudInitNoCloud.userData: line 2: YAML reads ': ', ' #' and quotes in NAME: write ${NAME|yaml} as the whole value, without quotes, or give it a pattern",
			},
		},
		{
			name:     "no description",
			manifest: "{spec: {parameters: [{name: NAME}], virtualMachine: {metadata: {generateName: '${NAME}-'}, spec: {runStrategy: Halted}}}}",
			want: []string{
				"advice template-without-description metadata: the template has no annotation description, which consoles show",
				"advice parameter-without-description spec.parameters[0]: parameter NAME has no description",
			},
		},
		{
			name: "passwords",
			manifest: manifest("{name: ROOT_PASSWORD, description: x, value: horse}, {name: apiToken, description: x, generate: expression, from: '[a-z]{8}'}, {name: PIN, description: x, sensitive: true, value: '1'}, {name: SECRET_NAME, description: x, value: s}",
				"{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, volumes: [{name: a, cloudInitNoCloud: {userData: '${ROOT_PASSWORD|yaml}${apiToken|yaml}${PIN|yaml}${SECRET_NAME|yaml}'}}]}}}}"),
			want: []string{
				"warning suspicious spec.parameters[3].value: the default of the sensitive parameter PIN can be read by everyone who can read the template",
				"advice password-not-sensitive spec.parameters[1].name: parameter ROOT_PASSWORD is named like a password: with sensitive: true its value does not appear in annotations, denials and logs",
				"advice password-not-generated spec.parameters[1].value: the default of ROOT_PASSWORD becomes the password of every VM: generate one, or require it",
				"advice password-not-sensitive spec.parameters[2].name: parameter apiToken is named like a password: with sensitive: true its value does not appear in annotations, denials and logs",
				"advice password-not-generated spec.parameters[3].value: the default of PIN becomes the password of every VM: generate one, or require it",
				"advice password-in-user-data spec.virtualMachine.spec.template.spec.volumes[0].cloudInitNoCloud.userData: every user who can read the VirtualMachine can read PIN: spec.secretize: true moves it into a Secret",
			},
		},
		{
			name: "user data that secretize moves",
			manifest: strings.Replace(manifest("{name: PIN, description: x, sensitive: true}", "{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, volumes: [{name: a, cloudInitNoCloud: {networkDataBase64: '${PIN|base64}'}}]}}}}"),
				"parameters", "secretize: true, parameters", 1),
		},
		{
			name:     "a placeholder that is escaped",
			manifest: manifest("{name: PIN, description: x, sensitive: true}", "{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}, hostname: '${PIN}', volumes: [{name: a, cloudInitNoCloud: {userData: '$${PIN}'}}]}}}}"),
		},
		{
			name: "images and passwords of cloud-init in the machine",
			manifest: manifest("{name: TAG, description: x}", `{metadata: {name: '${NAME}'}, spec: {runStrategy: Halted,
				dataVolumeTemplates: [{metadata: {name: a}, spec: {source: {registry: {url: "docker://registry.example.com/disk:latest"}}}}],
				template: {spec: {domain: {firmware: {kernelBoot: {container: {image: "registry.example.com/kernel"}}}, devices: {}}, volumes: [
				{name: a, containerDisk: {image: "registry.example.com/a:1"}}, {name: b, containerDisk: {image: "registry.example.com/b@sha256:0"}}, {name: c, containerDisk: {image: "registry.example.com/c:${TAG}"}},
				{name: d, cloudInitNoCloud: {userData: "#cloud-config\nuser: fedora\npassword: hunter2\n"}}, {name: e, cloudInitNoCloud: {userData: "password: ${NAME|yaml}\n"}}]}}}}`),
			want: []string{
				"advice image-without-digest spec.virtualMachine.spec.dataVolumeTemplates[0].spec.source.registry.url: image registry.example.com/disk:latest can become another one: name it by its digest, NAME@sha256:…",
				"advice image-without-digest spec.virtualMachine.spec.template.spec.domain.firmware.kernelBoot.container.image: image registry.example.com/kernel can become another one: name it by its digest, NAME@sha256:…",
				"advice image-without-digest spec.virtualMachine.spec.template.spec.volumes[0].containerDisk.image: image registry.example.com/a:1 can become another one: name it by its digest, NAME@sha256:…",
				"advice password-in-template spec.virtualMachine.spec.template.spec.volumes[3].cloudInitNoCloud.userData: password is in the template in plain text: make it a parameter that is sensitive and generated",
			},
		},
		{
			name:     "no name, and no run strategy",
			manifest: "{metadata: {annotations: {description: x}}, spec: {virtualMachine: {spec: {template: {spec: {domain: {devices: {}}}}}}}}",
			want: []string{
				"advice no-name spec.virtualMachine.metadata: the VirtualMachine has no name: write one with a parameter, such as ${NAME}",
				"advice no-run-strategy spec.virtualMachine.spec: KubeVirt rejects a VirtualMachine without runStrategy",
			},
		},
		{
			name:     "a fixed name",
			manifest: "{metadata: {annotations: {description: x}}, spec: {virtualMachine: {metadata: {name: web}, spec: {runStrategy: Halted}}}}",
			want:     []string{"advice fixed-name spec.virtualMachine.metadata.name: the name is the same for every VirtualMachine: write it with a parameter, such as ${NAME}"},
		},
		{
			name:     "rules that are malformed",
			manifest: "{metadata: {annotations: {description: x, validations: \"[\\n{}]\"}}, spec: {parameters: [{name: A, description: x}], virtualMachine: {metadata: {name: 'a-${A}', annotations: {vm.kubevirt.io/validations: '7'}}, spec: {runStrategy: Halted}}}}",
			want: []string{
				"error validations metadata.annotations[validations]: Invalid value: 2:1: [0].name: is missing",
				"error validations metadata.annotations[validations]: Invalid value: 2:1: [0].rule: is missing",
				"error validations metadata.annotations[validations]: Invalid value: 2:1: [0].message: is missing",
				"error validations metadata.annotations[validations]: Invalid value: 2:1: [0].path: is missing",
				"error validations spec.virtualMachine.metadata.annotations[vm.kubevirt.io/validations]: Invalid value: 1:1: must be a list of rules",
			},
		},
		{
			name:     "rules with a parameter are left for the machine",
			manifest: "{metadata: {annotations: {description: x}}, spec: {parameters: [{name: A, description: x}], virtualMachine: {metadata: {name: '${A}', annotations: {vm.kubevirt.io/validations: '${A}'}}, spec: {runStrategy: Halted}}}}",
		},
		{
			name:     "no VirtualMachine at all",
			manifest: "{metadata: {annotations: {description: x}}, spec: {}}",
			want:     []string{"error invalid spec.virtualMachine: Required value"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range templatelint.Check(parse(t, tc.manifest)) {
				place := f.Path
				if f.Key {
					place += " (key)"
				}
				got = append(got, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Rule, place, f.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindingsAreOfRulesThatAreDescribed(t *testing.T) {
	var ids []string
	for _, rule := range templatelint.Rules() {
		if rule.Text == "" || strings.HasSuffix(rule.Text, ".") {
			t.Errorf("%s: %q", rule.ID, rule.Text)
		}
		ids = append(ids, rule.ID)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != len(templatelint.Rules()) {
		t.Errorf("an ID stands twice: %v", ids)
	}
}

func TestWarningsAreThoseOfTheEngineAndUnusedParameters(t *testing.T) {
	object := parse(t, manifest("{name: SPARE, from: '[a]{1}'}", ""))
	compiled, err := template.Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"spec.parameters[1].from: has no effect without generate", "parameter SPARE is declared and never referred to"}
	if diff := cmp.Diff(want, templatelint.Warnings(object, compiled)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
