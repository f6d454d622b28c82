package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/test/install"
)

const (
	referenceRemoved = "annotation template.kubevirt.io/template-ref of a stored VirtualMachine cannot be removed; " +
		"it records which template the VirtualMachine was rendered from: send the annotation with its stored value"
	refAdded = "annotation template.kubevirt.io/template-ref cannot be added to a stored VirtualMachine; " +
		"a template is rendered only when the VirtualMachine is created: leave the annotation out, " +
		"or delete this VirtualMachine and create it with the annotation"
	refChanged = "annotation template.kubevirt.io/template-ref of a stored VirtualMachine cannot be changed; " +
		"a template is rendered only when the VirtualMachine is created: keep the stored value, " +
		"or create a new VirtualMachine from the other template"
	parametersTooMany = "annotations parameter.template.kubevirt.io/* of a stored VirtualMachine cannot be added, changed or removed; " +
		"parameters are read only when the VirtualMachine is created, unless its template declares them as mutable then: " +
		"keep the stored ones and edit spec itself, or create a new VirtualMachine with the other parameters"
	renderedChanged = "annotation template.kubevirt.io/rendered of a stored VirtualMachine cannot be added, changed or removed; " +
		"it records what was rendered when the VirtualMachine was created: send the annotation with its stored value"
	overridesChanged = "annotation template.kubevirt.io/overrides of a stored VirtualMachine cannot be added, changed or removed; " +
		"it holds what the template has where the VirtualMachine differs from it: send the annotation with its stored value"
)

func parametersChanged(keys string) string {
	return "parameters of a stored VirtualMachine cannot be added, changed or removed: " + keys +
		"; they are read only when the VirtualMachine is created, unless its template declares them as mutable then: " +
		"keep the stored ones and edit spec itself, or create a new VirtualMachine with the other parameters"
}

func labelsChanged(keys string) string {
	return "labels that record the template of a stored VirtualMachine cannot be added, changed or removed: " + keys +
		"; send them with their stored values"
}

func TestPolicyTemplateReference(t *testing.T) {
	const parameter, curious = "parameter.template.kubevirt.io/", "system:kube-curious"
	// The webhook exempts this user, so only the policy can deny the request.
	plane, space, users := withVMs(t, install.Options{Values: map[string]any{"exemptUsers": []any{controller, curious}}}, curious)
	user := users[curious]

	annotations := func(change map[string]any) string { return patch(t, map[string]any{"annotations": change}, nil) }
	labels := func(change map[string]any) string { return patch(t, map[string]any{"labels": change}, nil) }
	many := func(count int) map[string]any {
		change := map[string]any{}
		for i := range count {
			change[fmt.Sprintf("%sP%03d", parameter, i)] = "1"
		}
		return change
	}

	cases := map[string]struct {
		machine string // "rendered" or "plain"
		patch   string
		version string // of the API, v1 when empty
		// want is the whole message of the denial; when it is empty, the update passes.
		want string
	}{
		"the reference is changed": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": "golden/windows"}), want: refChanged,
		},
		"the reference is emptied": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": ""}), want: refChanged,
		},
		"the reference is changed through the old version of the API": {
			machine: "rendered", version: "v1alpha3",
			patch: annotations(map[string]any{"template.kubevirt.io/template-ref": "golden/windows"}), want: refChanged,
		},
		"the reference is removed": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": nil}), want: referenceRemoved,
		},
		"all annotations are removed": {
			machine: "rendered", patch: patch(t, map[string]any{"annotations": nil}, nil), want: referenceRemoved,
		},
		"a reference is added": {
			machine: "plain", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": "golden/fedora"}), want: refAdded,
		},
		"an empty reference is added": {
			machine: "plain", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": ""}), want: refAdded,
		},
		"a parameter is changed": {
			machine: "rendered", patch: annotations(map[string]any{parameter + "PASSWORD": "an0ther"}), want: parametersChanged(parameter + "PASSWORD"),
		},
		"a parameter is removed": {
			machine: "rendered", patch: annotations(map[string]any{parameter + "PASSWORD": nil}), want: parametersChanged(parameter + "PASSWORD"),
		},
		"a parameter is added": {
			machine: "rendered", patch: annotations(map[string]any{parameter + "ZONE": "a"}), want: parametersChanged(parameter + "ZONE"),
		},
		"one parameter is added, one changed, one removed": {
			machine: "rendered", patch: annotations(map[string]any{parameter + "ZONE": "a", parameter + "NAME": "web-2", parameter + "PASSWORD": nil}),
			want: parametersChanged(parameter + "NAME, " + parameter + "PASSWORD, " + parameter + "ZONE"),
		},
		"more parameters are added than a message can name": {
			machine: "rendered", patch: annotations(many(12)),
			want: parametersChanged(parameter + "P000, " + parameter + "P001, " + parameter + "P002, " + parameter + "P003, " + parameter + "P004 and 7 more"),
		},
		"more parameters are added than can be sorted": {
			machine: "rendered", patch: annotations(many(256)), want: parametersTooMany,
		},
		"the record of what was rendered is changed": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/rendered": "{}"}), want: renderedChanged,
		},
		"what overrides cover is forged": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/overrides": "{}"}), want: overridesChanged,
		},
		"what overrides cover changes with the spec": {
			machine: "rendered", patch: patch(t, map[string]any{"annotations": map[string]any{"template.kubevirt.io/overrides": "{}"}}, map[string]any{"runStrategy": "Manual"}),
		},
		"the record of what was rendered is removed": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/rendered": nil}), want: renderedChanged,
		},
		"a label of the template is changed": {
			machine: "rendered", patch: labels(map[string]any{"vm.kubevirt.io/template": "windows"}), want: labelsChanged("vm.kubevirt.io/template"),
		},
		"all labels are removed": {
			machine: "rendered", patch: patch(t, map[string]any{"labels": nil}, nil),
			want: labelsChanged("vm.kubevirt.io/template, vm.kubevirt.io/template.namespace, vm.kubevirt.io/template.revision"),
		},
		"the reference and a parameter are changed together": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": "a", parameter + "NAME": "b"}), want: refChanged,
		},

		"mutable parameters are changed and added": {
			machine: "mutable", patch: annotations(map[string]any{parameter + "CORES": "4", parameter + "SIZE": "1"}),
		},
		"a mutable parameter is removed, with what overrides cover": {
			machine: "mutable", patch: annotations(map[string]any{parameter + "CORES": nil, "template.kubevirt.io/overrides": "{}"}),
		},
		"a mutable parameter and others are changed": {
			machine: "mutable", patch: annotations(map[string]any{parameter + "CORES": "4", parameter + "NAME": "web-2", parameter + "SIZ": "1", parameter + "ZONE": "b", parameter + "PASSWORD": "an0ther", parameter + "mutable": "x"}),
			want: parametersChanged(parameter + "NAME, " + parameter + "PASSWORD, " + parameter + "SIZ, " + parameter + "ZONE, " + parameter + "mutable"),
		},
		"a parameter is changed with a record that permits it": {
			machine: "rendered", patch: annotations(map[string]any{parameter + "NAME": "web-2", "template.kubevirt.io/rendered": `{"mutable":["NAME"]}`}),
			want: parametersChanged(parameter + "NAME"),
		},
		"spec is changed": {
			machine: "rendered", patch: patch(t, nil, map[string]any{"runStrategy": "Always"}),
		},
		"other annotations and labels are changed": {
			machine: "rendered", patch: patch(t, map[string]any{"annotations": map[string]any{"a": "b"}, "labels": map[string]any{"a": "b"}}, nil),
		},
		"stored values are sent again": {
			machine: "rendered", patch: annotations(map[string]any{"template.kubevirt.io/template-ref": "golden/fedora", parameter + "NAME": "web-1"}),
		},
		"a finalizer is set": {
			machine: "rendered", patch: patch(t, map[string]any{"finalizers": []any{"example.com/a"}}, nil),
		},
		"a key that only looks like the reference is added": {
			machine: "plain", patch: annotations(map[string]any{"Template.kubevirt.io/Template-Ref": "golden/fedora"}),
		},
		"a machine of no template says what it likes under the other keys": {
			machine: "plain",
			patch: patch(t, map[string]any{
				"annotations": map[string]any{"template.kubevirt.io/rendered": "{}", parameter + "NAME": "x"},
				"labels":      map[string]any{"vm.kubevirt.io/template": "fedora"},
			}, nil),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resource := "virtualmachines.v1.kubevirt.io"
			if tc.version != "" {
				resource = "virtualmachines." + tc.version + ".kubevirt.io"
			}
			result := kubectl(t, plane, user, "", "patch", resource, tc.machine, "--namespace", space, "--type=merge", "--patch", tc.patch, "--dry-run=server")
			if tc.want == "" {
				if result.Code != 0 {
					t.Fatalf("refused: %s", result.Stderr)
				}
				return
			}
			want := fmt.Sprintf("The virtualmachines %q is invalid: : ValidatingAdmissionPolicy 'stencil-template-reference' with binding "+
				"'stencil-template-reference' denied request: %s", tc.machine, tc.want)
			got := strings.TrimSpace(result.Stderr)
			// KubeVirt's definition marks v1alpha3 as deprecated, and kubectl prints that warning in a line before.
			if strings.HasPrefix(got, "Warning: kubevirt.io/v1alpha3 is now deprecated") {
				_, got, _ = strings.Cut(got, "\n")
			}
			if result.Code == 0 || got != want {
				t.Errorf("kubectl said\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(result.Stderr, secretValue) || strings.Contains(result.Stderr, "an0ther") {
				t.Error("the message repeats the value of a parameter")
			}
		})
	}

	t.Run("a manifest without any of it takes the place of the stored one", func(t *testing.T) {
		manifest := strings.ReplaceAll(strings.Split(virtualMachines, "---")[1], "name: plain", "name: rendered")
		result := kubectl(t, plane, user, manifest, "replace", "--namespace", space, "-f", "-")
		wantAnswer(t, referenceRemoved, result)
	})
	t.Run("a write to status cannot change metadata", func(t *testing.T) {
		change := annotations(map[string]any{"template.kubevirt.io/template-ref": nil, parameter + "NAME": "x"})
		result := kubectl(t, plane, user, "", "patch", "vm", "rendered", "--namespace", space, "--subresource=status", "--type=merge", "--patch", change)
		if result.Code != 0 {
			t.Fatal(result.Stderr)
		}
		got := mustKubectl(t, plane, "", "get", "vm", "rendered", "--namespace", space, "--output", "jsonpath={.metadata.annotations}")
		var stored map[string]string
		if err := json.Unmarshal([]byte(got), &stored); err != nil {
			t.Fatal(err)
		}
		if stored["template.kubevirt.io/template-ref"] != "golden/fedora" || stored[parameter+"NAME"] != "web-1" {
			t.Errorf("annotations are now %v", stored)
		}
	})
	t.Run("deleting is nobody's business", func(t *testing.T) {
		if result := kubectl(t, plane, user, "", "delete", "vm", "rendered", "plain", "mutable", "--namespace", space); result.Code != 0 {
			t.Error(result.Stderr)
		}
	})
}

// The controller manager checks the types in every expression against the schemas of the policy's resources and of its parameters.
func TestPolicyExpressionsAreWellTyped(t *testing.T) {
	plane := installed(t, install.Options{})
	stop, err := plane.CheckPolicyTypes()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := clientFor(t, plane.AdminConfig()).AdmissionregistrationV1().ValidatingAdmissionPolicies()
	stored, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=stencil"})
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Items) == 0 {
		t.Fatal("there are no policies")
	}
	for _, policy := range stored.Items {
		t.Run(policy.Name, func(t *testing.T) {
			eventually(t, "the policy is checked", func() string {
				policy, err := client.Get(t.Context(), policy.Name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				if policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
					return "not checked yet"
				}
				for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s: %s", warning.FieldRef, warning.Warning)
				}
				return ""
			})
		})
	}
}

// patch returns a JSON merge patch of metadata and spec.
func patch(t *testing.T, metadata, spec map[string]any) string {
	t.Helper()
	change := map[string]any{}
	if metadata != nil {
		change["metadata"] = metadata
	}
	if spec != nil {
		change["spec"] = spec
	}
	encoded, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
