package published_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// TestTemplates is what Go clients of the published API do: they send VirtualMachines with the empty fields of Go types.
func TestTemplates(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			space := harness.Namespace(t, stage.Plane, "templates")
			store := func(name, parameters, machine string) {
				t.Helper()
				must(t, `{"apiVersion":"template.kubevirt.io/`+version+`","kind":"VirtualMachineTemplate","metadata":{"name":"`+name+`","creationTimestamp":null},"spec":{"parameters":`+parameters+`,"virtualMachine":`+machine+`},"status":{}}`,
					"create", "-n", space, "-f", "-")
			}
			type processed struct {
				VirtualMachine struct {
					Metadata struct{ Name string }
					Spec     struct {
						RunStrategy string
						Template    struct {
							Spec struct {
								Domain struct{ CPU struct{ Cores int } }
							}
						}
					}
				}
			}
			done := func(template, verb, options string) (made processed) {
				t.Helper()
				got := call(t, version, space, template, verb, options)
				if err := json.Unmarshal([]byte(got.Stdout), &made); got.Code != 0 || err != nil {
					t.Fatalf("exit code %d, %v: %s%s", got.Code, err, got.Stdout, got.Stderr)
				}
				return made
			}

			store("simple", `[{"name":"CPU_COUNT","value":"2"}]`, `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","spec":{"template":{"spec":{"domain":{"cpu":{"cores":"${{CPU_COUNT}}"}}}}}}`)
			if made := done("simple", "process", `{"parameters":{"CPU_COUNT":"4"}}`); made.VirtualMachine.Spec.Template.Spec.Domain.CPU.Cores != 4 {
				t.Errorf("processed to %+v", made)
			}

			store("missing", `[{"name":"MEMORY","required":true}]`, `{"metadata":{"creationTimestamp":null},"spec":{"template":null},"status":{}}`)
			if got := call(t, version, space, "missing", "process", "{}"); got.Code == 0 || !strings.Contains(got.Stderr, "MEMORY") {
				t.Errorf("exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
			}

			store("create", "null", `{"metadata":{"name":"vm-from-template","creationTimestamp":null},"spec":{"runStrategy":"Halted","template":{"metadata":{"creationTimestamp":null},"spec":{"domain":{"devices":{}}}}},"status":{}}`)
			if made := done("create", "create", "{}"); made.VirtualMachine.Metadata.Name != "vm-from-template" || made.VirtualMachine.Spec.RunStrategy != "Halted" {
				t.Errorf("created %+v", made)
			}
			must(t, "", "delete", "virtualmachine", "vm-from-template", "-n", space)
		})
	}
}

// TestTemplatesThatThePublishedAPIStores are stored with a warning about what has no effect, and rendered.
func TestTemplatesThatThePublishedAPIStores(t *testing.T) {
	space := harness.Namespace(t, stage.Plane, "odd")
	got := kubectl(t, `{"apiVersion":"template.kubevirt.io/v1beta1","kind":"VirtualMachineTemplate","metadata":{"name":"odd"},"spec":{
		"parameters":[{"name":"MY-NAME","value":"x"},{"name":"CODE","from":"[a-z]{4}","value":"y"}],
		"virtualMachine":{"apiVersion":"kubevirt.io/v1alpha3","kind":"VirtualMachine","metadata":{"name":"odd-${CODE}"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{}}}}}}}}`,
		"create", "-n", space, "-f", "-")
	if got.Code != 0 {
		t.Fatalf("exit code %d: %s", got.Code, got.Stderr)
	}
	for _, want := range []string{
		`spec.parameters[0].name: nothing can refer to MY-NAME: references consist of letters, digits and underscores`,
		`spec.parameters[1].from: has no effect without generate`,
		`spec.virtualMachine.apiVersion: has no effect: VirtualMachines are rendered in kubevirt.io/v1`,
	} {
		if !strings.Contains(got.Stderr, "Warning: "+want) {
			t.Errorf("%s does not warn: %s", got.Stderr, want)
		}
	}
	made := call(t, "v1beta1", space, "odd", "process", `{"parameters":{"MY-NAME":"z"}}`)
	for _, want := range []string{`"apiVersion":"kubevirt.io/v1"`, `"name":"odd-y"`} {
		if made.Code != 0 || !strings.Contains(made.Stdout, want) {
			t.Errorf("exit code %d, want %s: %s%s", made.Code, want, made.Stdout, made.Stderr)
		}
	}
}

// TestSecurityHeaders checks the headers of responses that come through the aggregator, errors included.
func TestSecurityHeaders(t *testing.T) {
	const group = "/apis/subresources.template.kubevirt.io"
	for path, want := range map[string]int{
		group + "/v1beta1/":            http.StatusOK,
		group + "/v1alpha1/":           http.StatusOK,
		group + "/v1beta1/nonexistent": http.StatusNotFound,
		group + "/v1beta1/namespaces/default/virtualmachinetemplates/does-not-exist/process": http.StatusMethodNotAllowed,
	} {
		code, header := get(t, path)
		if code != want {
			t.Errorf("GET %s: %d, want %d", path, code, want)
		}
		if got := list(header, "X-Content-Type-Options"); !strings.Contains(got, "nosniff") {
			t.Errorf("GET %s: X-Content-Type-Options %q", path, got)
		}
		for _, directive := range []string{"no-cache", "no-store", "must-revalidate"} {
			if got := list(header, "Cache-Control"); !strings.Contains(got, directive) {
				t.Errorf("GET %s: Cache-Control %q has no %s", path, got, directive)
			}
		}
	}
}
