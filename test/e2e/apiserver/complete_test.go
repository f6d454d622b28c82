package apiserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

const (
	referenceKey = "template.kubevirt.io/template-ref"
	processedKey = "template.kubevirt.io/processed"
	recordKey    = "template.kubevirt.io/rendered"
	parameterKey = "parameter.template.kubevirt.io/"

	labelKey          = "vm.kubevirt.io/template"
	namespaceLabelKey = "vm.kubevirt.io/template.namespace"
)

// desk is a governed namespace, and a user with the role edit there, who may process and use the templates of the test.
type desk struct {
	namespace string
	user      *controlplane.User
}

// newDesk makes a desk, and awaits that an approval of the template box with other fields is active.
func newDesk(t *testing.T, fields string) desk {
	t.Helper()
	space := shop(t)
	d := desk{namespace: harness.Namespace(t, stencil.Plane, "desk")}
	d.user = harness.User(t, stencil.Plane, d.namespace+"-dev", gen.Role(d.namespace, "edit"), gen.Role(space, "stencil-template-process"), gen.UsesTemplates(space))
	approval := gen.Manifest(gen.Approval(d.namespace, gen.Governs(d.namespace), gen.Approves(space+"/box"), gen.Spec("{parameters: [{name: CORES, maximum: 4}]}"), gen.Spec(fields)))
	mustKubectl(t, approval, "create", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, "", "delete", "templateapproval", d.namespace) })
	mustKubectl(t, "", "wait", "--for=condition=Active", "templateapproval/"+d.namespace, "--timeout=60s")
	return d
}

// process returns the VM of the template box of the test, by kubectl.
func (d desk) process(t *testing.T, parameters string) *unstructured.Unstructured {
	t.Helper()
	return d.processTemplate(t, "box", parameters)
}

// processTemplate returns the VM of a template of the test, by kubectl.
func (d desk) processTemplate(t *testing.T, template, parameters string) *unstructured.Unstructured {
	t.Helper()
	out := harness.Must(t, stencil.Plane, d.user, "parameters: "+parameters, "create", "--raw", subresource(t, "v1beta1", template, "process"), "-f", "-")
	var answer struct{ VirtualMachine map[string]any }
	if err := json.Unmarshal([]byte(out.Stdout), &answer); err != nil {
		t.Fatalf("%v in %s", err, out.Stdout)
	}
	return &unstructured.Unstructured{Object: answer.VirtualMachine}
}

// create creates a VM in a namespace.
func (d desk) create(t *testing.T, vm *unstructured.Unstructured, arguments ...string) controlplane.Result {
	t.Helper()
	if len(arguments) == 0 {
		arguments = []string{"create"}
	}
	return kubectl(t, d.user, gen.Manifest(vm), append(arguments, "--namespace="+d.namespace, "-f", "-")...)
}

func (d desk) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	vm := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(mustKubectl(t, "", "get", "virtualmachine", name, "--namespace="+d.namespace, "-o", "json")), &vm.Object); err != nil {
		t.Fatal(err)
	}
	return vm
}

// wantInstance checks that a stored VM is an approved instance of the template.
func (d desk) wantInstance(t *testing.T, name, template string) *unstructured.Unstructured {
	t.Helper()
	vm := d.get(t, name)
	annotations := vm.GetAnnotations()
	var record struct{ Namespace, Name, Digest string }
	if err := json.Unmarshal([]byte(annotations[recordKey]), &record); err != nil {
		t.Fatalf("%v in %v", err, annotations)
	}
	if reference := record.Namespace + "/" + record.Name; annotations[referenceKey] != template || reference != template || !strings.HasPrefix(record.Digest, "sha256:") {
		t.Errorf("it refers to %s, and was made of %s: %v", annotations[referenceKey], reference, annotations)
	}
	if vm.GetLabels()[namespaceLabelKey]+"/"+vm.GetLabels()[labelKey] != template {
		t.Errorf("%v %v", annotations, vm.GetLabels())
	}
	return vm
}

func edit(t *testing.T, vm *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	vm = vm.DeepCopy()
	if err := unstructured.SetNestedField(vm.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return vm
}

// userDataOf returns the user data of the template box in a VM.
func userDataOf(t *testing.T, vm *unstructured.Unstructured) string {
	t.Helper()
	volumes, _, err := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
	if err != nil || len(volumes) != 1 {
		t.Fatalf("%v in %v", err, vm.Object)
	}
	text, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "cloudInitNoCloud", "userData")
	return text
}

// TestWhatProcessReturnsIsApproved creates the output of process in a governed namespace.
func TestWhatProcessReturnsIsApproved(t *testing.T) {
	d := newDesk(t, "overrides: [spec.runStrategy]")
	box := shop(t) + "/box"
	t.Run("created", func(t *testing.T) {
		vm := d.process(t, "{NAME: piped, CORES: 2}")
		for key, want := range map[string]string{referenceKey: box, parameterKey + "NAME": "piped", parameterKey + "CORES": "2", parameterKey + "PASSWORD": ""} {
			if got := vm.GetAnnotations()[key]; got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if out := d.create(t, vm); out.Code != 0 {
			t.Fatal(out.Stderr)
		}
		if stored := d.wantInstance(t, "piped", box); userDataOf(t, stored) != userDataOf(t, vm) {
			t.Errorf("the user data changed: %q, %q", userDataOf(t, vm), userDataOf(t, stored))
		}
	})
	t.Run("applied, again and again", func(t *testing.T) {
		vm := d.process(t, "{NAME: applied}")
		for _, want := range []string{"created", "unchanged", "unchanged"} {
			if out := d.create(t, vm, "apply"); out.Code != 0 || !strings.HasSuffix(strings.TrimSpace(out.Stdout), want) {
				t.Fatalf("want %s: %s%s", want, out.Stdout, out.Stderr)
			}
		}
		for _, want := range []string{"created", "unchanged"} {
			server := edit(t, vm, "served", "metadata", "name")
			server = edit(t, server, "served", "metadata", "annotations", parameterKey+"NAME")
			if out := d.create(t, server, "apply", "--server-side"); out.Code != 0 {
				t.Fatalf("%s, on the server: %s%s", want, out.Stdout, out.Stderr)
			}
		}
		d.wantInstance(t, "applied", box)
		d.wantInstance(t, "served", box)
	})
	t.Run("with an override", func(t *testing.T) {
		if out := d.create(t, edit(t, d.process(t, "{NAME: started}"), "Always", "spec", "runStrategy")); out.Code != 0 {
			t.Fatal(out.Stderr)
		}
		d.wantInstance(t, "started", box)
	})
	t.Run("and conforms", func(t *testing.T) {
		harness.Eventually(t, "the audit counts them", func() error {
			counts := mustKubectl(t, "", "get", "templateapproval", d.namespace, "-o", "jsonpath={.status.conforming} {.status.violating}")
			if counts != "4 0" {
				return fmt.Errorf("conforming and violating: %s", counts)
			}
			return nil
		})
	})
	t.Run("by a user who may not use the template", func(t *testing.T) {
		p := decode(t, request{as: bob, path: subresource(t, "v1beta1", "box", "process"), body: "parameters: {NAME: nobodys}"}.do(t))
		for key := range p.VirtualMachine.Metadata.Annotations {
			if key == referenceKey || key == processedKey || strings.HasPrefix(key, parameterKey) {
				t.Errorf("it has %s", key)
			}
		}
	})
}

// TestCompleteMachinesThatAreNotApproved tries to get a VM past the approval that was complete when it was sent.
func TestCompleteMachinesThatAreNotApproved(t *testing.T) {
	d := newDesk(t, "overrides: [spec.runStrategy]")
	box := shop(t) + "/box"
	script := func(t *testing.T, vm *unstructured.Unstructured, text string) *unstructured.Unstructured {
		volumes, _, _ := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "volumes")
		volumes[0].(map[string]any)["cloudInitNoCloud"] = map[string]any{"userData": text}
		return edit(t, vm, volumes, "spec", "template", "spec", "volumes")
	}
	annotated := func(t *testing.T, vm *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		return edit(t, vm, value, "metadata", "annotations", key)
	}
	for _, tc := range []struct {
		name    string
		vm      func(t *testing.T) *unstructured.Unstructured
		want    []string
		wantNot string
	}{
		{name: "a value that is not approved", vm: func(t *testing.T) *unstructured.Unstructured { return d.process(t, "{NAME: attack, CORES: 8}") }, want: []string{"parameters[CORES]", "must be at most 4"}},
		{
			name: "a value that is not approved, and an annotation that is", want: []string{"spec.template.spec.domain.cpu.cores"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return annotated(t, d.process(t, "{NAME: attack, CORES: 8}"), parameterKey+"CORES", "2")
			},
		},
		{
			name: "a chosen password", wantNot: "letmein", want: []string{"parameters[PASSWORD]: Invalid value: must be left to the template"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return d.process(t, "{NAME: attack, PASSWORD: letmein-letmein}")
			},
		},
		{
			name: "a chosen password, and a forged record", wantNot: "letmein", want: []string{"parameters[PASSWORD]: Invalid value: must be left to the template"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				vm := d.process(t, "{NAME: attack, PASSWORD: letmein-letmein}")
				return annotated(t, vm, recordKey, fmt.Sprintf(`{"namespace":%q,"name":"box","uid":"x","generation":1,"digest":%q,"sensitive":["PASSWORD"]}`, shop(t), vm.GetAnnotations()[processedKey]))
			},
		},
		{
			name: "a chosen password, a forged record and no mark", wantNot: "letmein", want: []string{"not approved"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				vm := d.process(t, "{NAME: attack, PASSWORD: letmein-letmein}")
				vm = annotated(t, vm, recordKey, fmt.Sprintf(`{"namespace":%q,"name":"box","uid":"x","generation":1,"digest":%q,"sensitive":["PASSWORD"]}`, shop(t), vm.GetAnnotations()[processedKey]))
				unstructured.RemoveNestedField(vm.Object, "metadata", "annotations", processedKey)
				return vm
			},
		},
		{
			name: "another script", want: []string{"spec.template.spec.volumes[name=init]"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return script(t, d.process(t, "{NAME: attack}"), "#!/bin/sh\nevil")
			},
		},
		{
			name: "a line behind the password", want: []string{"spec.template.spec.volumes[name=init]"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return script(t, d.process(t, "{NAME: attack}"), "#cloud-config\npassword: abcdefghijkl\nruncmd: [evil]\n")
			},
		},
		{
			name: "a node selector", want: []string{"spec.template.spec.nodeSelector.node: may not be written or changed beside the template; these may: spec.runStrategy"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return edit(t, d.process(t, "{NAME: attack}"), map[string]any{"node": "master"}, "spec", "template", "spec", "nodeSelector")
			},
		},
		{
			name: "a volume less", want: []string{"spec.template.spec.volumes"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return edit(t, d.process(t, "{NAME: attack}"), []any{}, "spec", "template", "spec", "volumes")
			},
		},
		{
			name: "a label", want: []string{"metadata.labels.team"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return edit(t, d.process(t, "{NAME: attack}"), map[string]any{"team": "x"}, "metadata", "labels")
			},
		},
		{
			name: "labels in the place of the reference", want: []string{"the VirtualMachine names no template"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return byLabels(t, d.process(t, "{NAME: attack}"), shop(t), "box")
			},
		},
		{
			name: "another template than the approved one", want: []string{"it does not approve template " + shop(t) + "/crate"},
			vm: func(t *testing.T) *unstructured.Unstructured {
				return annotated(t, d.process(t, "{NAME: attack}"), referenceKey, shop(t)+"/crate")
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := d.create(t, tc.vm(t))
			if out.Code == 0 {
				mustKubectl(t, "", "delete", "virtualmachine", "attack", "--namespace="+d.namespace)
				t.Fatalf("it was created: %s", out.Stdout)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.Stderr, want) {
					t.Errorf("standard error lacks %q:\n%s", want, out.Stderr)
				}
			}
			if tc.wantNot != "" && strings.Contains(out.Stderr, tc.wantNot) {
				t.Errorf("standard error shows %q:\n%s", tc.wantNot, out.Stderr)
			}
		})
	}
	t.Run("a template that changed in between", func(t *testing.T) {
		vm := d.process(t, "{NAME: attack}")
		patch := `{"spec":{"virtualMachine":{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}}}`
		mustKubectl(t, "", "patch", "vmt", "box", "--namespace="+shop(t), "--type=merge", "-p", patch)
		t.Cleanup(func() {
			mustKubectl(t, "", "patch", "vmt", "box", "--namespace="+shop(t), "--type=merge", "-p", strings.Replace(patch, ":7", ":null", 1))
		})
		harness.Eventually(t, "the change is seen", func() error {
			out := d.create(t, vm, "create", "--dry-run=server")
			if out.Code == 0 || !strings.Contains(out.Stderr, "it changed after this VM was processed from it, and the VM does not match it any more; process it again") {
				return fmt.Errorf("%s%s", out.Stdout, out.Stderr)
			}
			return nil
		})
		harness.Eventually(t, "what is processed again is created", func() error {
			if out := d.create(t, d.process(t, "{NAME: again}")); out.Code != 0 {
				return fmt.Errorf("%s", out.Stderr)
			}
			d.wantInstance(t, "again", box)
			return nil
		})
	})
}

// TestAValueThatMatchesTwoWays reads a text of two parameters in the way that the rest of the VM, or its annotations, show.
func TestAValueThatMatchesTwoWays(t *testing.T) {
	space := shop(t)
	mustKubectl(t, gen.Manifest(gen.Template("pair", gen.Declares("NAME", "required: true"), gen.Declares("SITE", "value: north"), gen.Declares("RACK", "value: '1'"),
		gen.Renders("${NAME}", gen.SmallSpec(), gen.Spec(`template: {spec: {subdomain: "${SITE}-${RACK}"}}`), gen.Annotation("rack", "${RACK}")))), "create", "--namespace="+space, "-f", "-")
	d := newDesk(t, fmt.Sprintf("{templates: [{namespace: %s, name: pair}], parameters: [{name: SITE, allowed: [north, north-a]}, {name: RACK, allowed: ['1', b-2]}], templateLabels: Accept}", space))
	vm := func(name, subdomain, rack string, parameters ...string) *unstructured.Unstructured {
		modifiers := []gen.Modifier{gen.SmallSpec(), gen.Spec(`template: {spec: {subdomain: ` + subdomain + `}}`), gen.Annotation("rack", rack), gen.FromTemplate(space + "/pair")}
		for i := 0; i < len(parameters); i += 2 {
			modifiers = append(modifiers, gen.Parameter(parameters[i], parameters[i+1]))
		}
		return gen.VM(name, modifiers...)
	}
	for _, tc := range []struct {
		name string
		vm   *unstructured.Unstructured
		want string // part of the denial
	}{
		{name: "one way is approved", vm: vm("two-1", "north-a-b-2", "b-2")},
		{name: "and given", vm: vm("two-2", "north-a-b-2", "b-2", "SITE", "north-a", "RACK", "b-2")},
		{name: "the other way is not", vm: vm("attack", "north-a-b-2", "2"), want: "parameters[SITE]"},
		{name: "the other way, behind annotations of the first", vm: vm("attack", "north-a-b-2", "2", "SITE", "north-a", "RACK", "b-2"), want: "annotations"},
		{name: "the other way, behind one annotation", vm: vm("attack", "north-a-b-2", "2", "SITE", "north-a"), want: "not approved"},
		{name: "two ways at once", vm: vm("attack", "north-a-b-2", "a-b-2", "SITE", "north-a"), want: "not approved"},
	} {
		for form, sent := range map[string]*unstructured.Unstructured{"": tc.vm, ", by labels": byLabels(t, tc.vm, space, "pair")} {
			sent = sent.DeepCopy()
			if form != "" && tc.want == "" {
				sent.SetName(sent.GetName() + "-labels")
			}
			out := d.create(t, sent)
			switch {
			case tc.want == "" && out.Code != 0:
				t.Errorf("%s%s: %s", tc.name, form, out.Stderr)
			case tc.want == "":
				d.wantInstance(t, sent.GetName(), space+"/pair")
			case out.Code == 0:
				t.Errorf("%s%s: it was created", tc.name, form)
			case form == "" && !strings.Contains(out.Stderr, tc.want):
				t.Errorf("%s: standard error lacks %q: %s", tc.name, tc.want, out.Stderr)
			}
		}
	}
}

// byLabels returns a VM that refers to its template by labels only, as one of a server that writes no reference.
func byLabels(t *testing.T, vm *unstructured.Unstructured, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	vm = vm.DeepCopy()
	annotations := vm.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == referenceKey || key == processedKey || key == "template.kubevirt.io/created-by" || strings.HasPrefix(key, parameterKey)
	})
	vm.SetAnnotations(annotations)
	labels := vm.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelKey], labels[namespaceLabelKey] = name, namespace
	vm.SetLabels(labels)
	return vm
}
