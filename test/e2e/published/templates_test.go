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
