package road_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
)

// desk applies a template with mutable parameters: of a scalar, a text with a fixed parameter, an item of a list, labels of the VM and of its
// instance, and a field that is missing while the value is empty.
func desk(t *testing.T) {
	t.Helper()
	template := gen.Template("desk",
		gen.Declares("NAME", "required: true"),
		gen.Declares("CORES", "value: '2'", "type: int", "minimum: 1", "maximum: 8", "mutable: true"),
		gen.Declares("TIER", "value: front", "enum: [front, back]", "mutable: true"),
		gen.Declares("ZONE", "mutable: true"),
		gen.Declares("SITE", "value: north"),
		gen.Declares("TOKEN", "generate: expression", "from: '[a-z]{12}'"),
		gen.Renders("${NAME}", gen.Fields("metadata: {labels: {tier: '${TIER}'}}"), gen.Spec(`
runStrategy: Halted
template:
  metadata: {labels: {tier: "${TIER}"}}
  spec:
    hostname: "${SITE}-${TIER}"
    nodeSelector: {zone: "${{ZONE}}", disk: ssd}
    domain:
      cpu: {cores: "${{CORES}}"}
      memory: {guest: 1Gi}
      devices:
        disks:
        - {name: root, disk: {bus: virtio}}
        - {name: init, disk: {bus: virtio}}
        interfaces: [{name: default, masquerade: {}, model: virtio}]
    networks: [{name: default, pod: {}}]
    volumes:
    - {name: root, containerDisk: {image: registry.example/desk:1}}
    - name: init
      cloudInitNoCloud: {userData: "role: ${TIER}", networkData: "token: ${TOKEN}"}
`)))
	mustKubectl(t, nil, gen.Manifest(template), "apply", "--namespace=road-golden", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "vmt", "desk", "--namespace=road-golden", "--ignore-not-found")
	})
}

// deskVM returns the manifest of a VM from desk with the values of parameters, NAME=VALUE.
func deskVM(name, spec string, parameters ...string) string {
	var modifiers []gen.Modifier
	for _, parameter := range parameters {
		key, value, _ := strings.Cut(parameter, "=")
		modifiers = append(modifiers, gen.Parameter(key, value))
	}
	if spec != "" {
		modifiers = append(modifiers, gen.Spec(spec))
	}
	return vm(name, "road-golden/desk", modifiers...)
}

const parameterPrefix = "parameter.template.kubevirt.io/"

// wantRendered fails unless a VM has the spec and the labels of a new one with these parameters.
func wantRendered(t *testing.T, when, name, spec string, parameters ...string) {
	t.Helper()
	vm := get(t, name)
	fresh := fmt.Sprintf("fresh-%d", freshNames.Add(1))
	discard(t, fresh)
	mustKubectl(t, ada, deskVM(fresh, spec, parameters...), "create", "-f", "-")
	waitForController(t, fresh)
	other := get(t, fresh)
	content := func(vm *unstructured.Unstructured) map[string]any {
		raw, err := json.Marshal(vm.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var spec any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), token(t, vm), "TOKEN")), &spec); err != nil {
			t.Fatal(err)
		}
		annotations := map[string]any{}
		for key, value := range vm.GetAnnotations() {
			if strings.HasPrefix(key, parameterPrefix) || key == "template.kubevirt.io/overrides" {
				annotations[key] = value
			}
		}
		return map[string]any{"spec": identity(spec), "labels": vm.GetLabels(), "annotations": annotations}
	}
	if diff := cmp.Diff(content(other), content(vm)); diff != "" {
		t.Errorf("%s: a new VM (-) and this one (+) differ:\n%s", when, diff)
	}
}

// TestMutableParameters changes parameters of stored VMs with each client. What the VM is afterwards is what a new one would be.
func TestMutableParameters(t *testing.T) {
	desk(t)
	const override = "template: {spec: {domain: {cpu: {cores: 3}, devices: {interfaces: [{name: default, model: e1000e}, {name: second, bridge: {}}]}}, networks: [{name: second, multus: {networkName: storage}}]}}"
	apply := func(t *testing.T, _, manifest string) { t.Helper(); mustKubectl(t, ada, manifest, "apply", "-f", "-") }
	for client, send := range map[string]func(t *testing.T, name, manifest string){
		"apply": apply,
		"server-side": func(t *testing.T, _, manifest string) {
			t.Helper()
			mustKubectl(t, ada, manifest, "apply", "--server-side", "-f", "-")
		},
		"replace": func(t *testing.T, name, manifest string) {
			t.Helper()
			verb := "replace"
			if kubectl(t, ada, "", "get", "vm", name).Code != 0 {
				verb = "create"
			}
			mustKubectl(t, ada, manifest, verb, "-f", "-")
		},
	} {
		t.Run(client, func(t *testing.T) {
			name := "desk-" + client
			discard(t, name)
			for _, step := range []struct {
				name, spec string
				parameters []string
			}{
				{name: "defaults"},
				{name: "one more", parameters: []string{"CORES=4"}},
				{name: "all of them", parameters: []string{"CORES=8", "TIER=back", "ZONE=b"}},
				{name: "with overrides", parameters: []string{"CORES=8", "TIER=back", "ZONE=b"}, spec: override},
				{name: "below the overrides", parameters: []string{"CORES=1", "ZONE=c"}, spec: override},
				{name: "an override of the same value", parameters: []string{"CORES=3", "ZONE=c"}, spec: override},
				{name: "and of another again", parameters: []string{"CORES=2", "ZONE=c"}, spec: override},
				{name: "overrides and parameters removed at once"},
				{name: "an empty value", parameters: []string{"ZONE="}},
			} {
				if client == "replace" && step.spec != "" {
					// kubectl replace takes a manifest with spec.template for the whole VM.
					continue
				}
				manifest := deskVM(name, step.spec, step.parameters...)
				uid := ""
				if stored := kubectl(t, nil, "", "get", "vm", name, "-o", "jsonpath={.spec.template.spec.volumes[1].cloudInitNoCloud.networkData}"); stored.Code == 0 {
					uid = stored.Stdout
				}
				send(t, name, manifest)
				waitForController(t, name)
				wantRendered(t, step.name, name, step.spec, step.parameters...)
				if now := token(t, get(t, name)); uid != "" && now != uid {
					t.Errorf("%s: the generated value changed from %s to %s", step.name, uid, now)
				}
				before := get(t, name).GetGeneration()
				send(t, name, manifest)
				if after := get(t, name).GetGeneration(); after != before {
					t.Errorf("%s: the same manifest again changed generation %d to %d", step.name, before, after)
				}
			}
		})
	}
	t.Run("annotate and patch", func(t *testing.T) {
		discard(t, "desk-patched")
		mustKubectl(t, ada, deskVM("desk-patched", ""), "create", "-f", "-")
		waitForController(t, "desk-patched")
		mustKubectl(t, ada, "", "annotate", "vm", "desk-patched", parameterPrefix+"CORES=4")
		wantRendered(t, "annotated", "desk-patched", "", "CORES=4")
		// A field and a parameter at once: the field is an override.
		mustKubectl(t, ada, "", "patch", "vm", "desk-patched", "--type=merge", "--patch", `{"metadata":{"annotations":{"`+parameterPrefix+`CORES":"6","`+parameterPrefix+`TIER":"back"}},"spec":{"template":{"spec":{"domain":{"cpu":{"cores":5}}}}}}`)
		if got := get(t, "desk-patched").GetAnnotations()["template.kubevirt.io/overrides"]; got != `{"spec.template.spec.domain.cpu.cores":{"value":6}}` {
			t.Errorf("the overrides are %s", got)
		}
		mustKubectl(t, ada, "", "patch", "vm", "desk-patched", "--type=merge", "--patch", `{"spec":{"template":{"spec":{"domain":{"cpu":{"cores":null}}}}}}`)
		wantRendered(t, "the override removed", "desk-patched", "", "CORES=6", "TIER=back")
		mustKubectl(t, ada, "", "annotate", "vm", "desk-patched", parameterPrefix+"CORES-", parameterPrefix+"TIER-")
		wantRendered(t, "removed", "desk-patched", "")
		mustKubectl(t, ada, "", "annotate", "vm", "desk-patched", parameterPrefix+"CORES=7", "--dry-run=server")
		wantRendered(t, "after a dry run", "desk-patched", "")
	})
	t.Run("a VM that was sent complete", func(t *testing.T) {
		discard(t, "desk-source", "desk-complete")
		mustKubectl(t, ada, deskVM("desk-source", ""), "create", "-f", "-")
		source := get(t, "desk-source")
		complete := gen.VM("desk-complete", gen.FromTemplate("road-golden/desk"))
		complete.Object["spec"] = source.Object["spec"]
		mustKubectl(t, ada, gen.Manifest(complete), "create", "-f", "-")
		waitForController(t, "desk-complete")
		mustKubectl(t, ada, "", "annotate", "vm", "desk-complete", parameterPrefix+"CORES=4", parameterPrefix+"ZONE=b")
		vm := get(t, "desk-complete")
		if cores, zone := at(t, vm, "spec", "template", "spec", "domain", "cpu", "cores"), at(t, vm, "spec", "template", "spec", "nodeSelector", "zone"); cores != int64(4) || zone != "b" {
			t.Errorf("%v cores, zone %v", cores, zone)
		}
	})
	t.Run("refused", func(t *testing.T) {
		discard(t, "desk-refused")
		mustKubectl(t, ada, deskVM("desk-refused", ""), "create", "-f", "-")
		waitForController(t, "desk-refused")
		before := get(t, "desk-refused")
		for name, tc := range map[string]struct {
			as      *controlplane.User
			changes []string
			want    string
		}{
			"a value that the template rejects": {ada, []string{"CORES=9"}, `metadata.annotations[parameter.template.kubevirt.io/CORES]: Invalid value: "9": must be at most 8`},
			"no value of the list":              {ada, []string{"TIER=side"}, `metadata.annotations[parameter.template.kubevirt.io/TIER]: Unsupported value: "side": must be one of "front", "back"`},
			"a parameter that is fixed":         {ada, []string{"SITE=south"}, "parameters of a stored VirtualMachine cannot be added, changed or removed: parameter.template.kubevirt.io/SITE; they are read only when the VirtualMachine is created, unless its template declares them as mutable then"},
			"one of both kinds":                 {ada, []string{"CORES=4", "SITE=south"}, "cannot be added, changed or removed: parameter.template.kubevirt.io/SITE;"},
			"a user without the verb use":       {bob, []string{"CORES=4"}, `"road-golden/desk" is forbidden: it does not exist or user "bob" may not use it; ask for verb "use"`},
		} {
			t.Run(name, func(t *testing.T) {
				arguments := []string{"annotate", "vm", "desk-refused", "--namespace=" + before.GetNamespace()}
				for _, change := range tc.changes {
					arguments = append(arguments, parameterPrefix+change)
				}
				refused := kubectl(t, tc.as, "", arguments...)
				if refused.Code == 0 || !strings.Contains(refused.Stderr, tc.want) {
					t.Errorf("exit code %d: %s\nwant %s", refused.Code, refused.Stderr, tc.want)
				}
			})
		}
		mustKubectl(t, nil, "", "patch", "vmt", "desk", "--namespace=road-golden", "--type=merge", "--patch", `{"spec":{"message":"new"}}`)
		refused := kubectl(t, ada, "", "annotate", "vm", "desk-refused", parameterPrefix+"CORES=4")
		if want := "metadata.annotations[parameter.template.kubevirt.io/CORES]: Forbidden: template road-golden/desk has changed since this VirtualMachine was rendered from it, so the fields that depend on the parameter are not known; edit spec itself, or create the VirtualMachine again"; refused.Code == 0 || !strings.Contains(refused.Stderr, want) {
			t.Errorf("exit code %d: %s", refused.Code, refused.Stderr)
		}
		after := get(t, "desk-refused")
		if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" || len(after.GetAnnotations()) != len(before.GetAnnotations()) {
			t.Errorf("it has changed: %s\n%v", diff, after.GetAnnotations())
		}
	})
}

// TestMutableParametersAreApproved changes parameters where an approval denies: it limits one, lists another, and closes the third.
func TestMutableParametersAreApproved(t *testing.T) {
	desk(t)
	namespace := namespaces.Of(t)
	mustKubectl(t, nil, gen.Manifest(gen.Approval(namespace, gen.Governs(namespace), gen.Approves("road-golden/desk"),
		gen.Spec("{parameters: [{name: CORES, maximum: 4}, {name: TIER, anyValue: true}], overrides: [spec.template.spec.domain.memory.guest]}"))), "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "templateapproval", namespace) })
	mustKubectl(t, nil, "", "wait", "--for=condition=Active", "templateapproval/"+namespace, "--timeout=60s")
	discard(t, "desk")
	mustKubectl(t, ada, deskVM("desk", ""), "create", "-f", "-")
	waitForController(t, "desk")

	mustKubectl(t, ada, "", "annotate", "vm", "desk", parameterPrefix+"CORES=4", parameterPrefix+"TIER=back")
	wantRendered(t, "approved", "desk", "", "CORES=4", "TIER=back")
	// An approved override in the same request.
	mustKubectl(t, ada, "", "patch", "vm", "desk", "--type=merge", "--patch", `{"metadata":{"annotations":{"`+parameterPrefix+`CORES":"3"}},"spec":{"template":{"spec":{"domain":{"memory":{"guest":"2Gi"}}}}}}`)
	wantRendered(t, "with an approved override", "desk", "template: {spec: {domain: {memory: {guest: 2Gi}}}}", "CORES=3", "TIER=back")
	before := get(t, "desk")
	for name, tc := range map[string]struct{ patch, want string }{
		"a value that the approval does not allow": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `CORES":"5"}}}`,
			`parameters[CORES]: Invalid value: "5": must be at most 4`,
		},
		"a parameter that the approval closes": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `ZONE":"b"}}}`,
			`parameters[ZONE]: Invalid value: "b": must`,
		},
		"a field beside the template": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `CORES":"2"}},"spec":{"template":{"spec":{"hostname":"mine"}}}}`,
			`spec.template.spec.hostname: may not be written or changed beside the template`,
		},
		"a field that the parameter determines": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `CORES":"2"}},"spec":{"template":{"spec":{"domain":{"cpu":{"cores":4}}}}}}`,
			`spec.template.spec.domain.cpu.cores: may not be written or changed beside the template`,
		},
		"a label that no parameter determines": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `CORES":"2"},"labels":{"tier":"front"}}}`,
			`metadata.labels.tier: may not be written or changed beside the template`,
		},
		"a value that only the annotation would have": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `CORES":"8"}},"spec":{"template":{"spec":{"domain":{"cpu":{"cores":3}}}}}}`,
			`parameters[CORES]: Invalid value: "8": must be at most 4`,
		},
		"a record that names another parameter": {
			`{"metadata":{"annotations":{"` + parameterPrefix + `SITE":"south","template.kubevirt.io/rendered":"{\"mutable\":[\"SITE\"]}"}}}`,
			`cannot be added, changed or removed: parameter.template.kubevirt.io/SITE`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := kubectl(t, ada, "", "patch", "vm", "desk", "--namespace="+namespace, "--type=merge", "--patch", tc.patch)
			if refused.Code == 0 || !strings.Contains(refused.Stderr, tc.want) {
				t.Errorf("exit code %d: %s\nwant %s", refused.Code, refused.Stderr, tc.want)
			}
		})
	}
	if diff := cmp.Diff(before.Object["spec"], get(t, "desk").Object["spec"]); diff != "" {
		t.Errorf("it has changed:\n%s", diff)
	}
	t.Run("a stored record cannot be forged at creation", func(t *testing.T) {
		discard(t, "desk-forged")
		mustKubectl(t, ada, vm("desk-forged", "road-golden/desk", gen.Annotation("template.kubevirt.io/rendered", `{"mutable":["SITE"]}`)), "create", "--namespace="+namespace, "-f", "-")
		refused := kubectl(t, ada, "", "annotate", "vm", "desk-forged", "--namespace="+namespace, parameterPrefix+"SITE=south")
		if refused.Code == 0 || !strings.Contains(refused.Stderr, "cannot be added, changed or removed: parameter.template.kubevirt.io/SITE") {
			t.Errorf("exit code %d: %s", refused.Code, refused.Stderr)
		}
	})
}
