package road_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestBadRequestsAreRefusedWithEveryCause checks the exact causes on kubectl's standard error, and that no VirtualMachine is created.
func TestBadRequestsAreRefusedWithEveryCause(t *testing.T) {
	const (
		denied    = `Error from server (Forbidden): error when creating "STDIN": admission webhook "render.template.kubevirt.io" denied the request: virtualmachinetemplates.template.kubevirt.io `
		parameter = `metadata.annotations[parameter.template.kubevirt.io/`
		reference = `metadata.annotations[template.kubevirt.io/template-ref]: `
	)
	for _, tc := range []struct {
		name, manifest string
		as             **controlplane.User
		want           []string
	}{
		{
			name:     "a template that does not exist, to someone who may see templates",
			manifest: vm("bad", "golden/nowhere"),
			want:     []string{`Error from server (NotFound): error when creating "STDIN": admission webhook "render.template.kubevirt.io" denied the request: virtualmachinetemplates.template.kubevirt.io "golden/nowhere" not found`},
		},
		{
			name:     "a template that does not exist, to someone who may use and not see",
			manifest: vm("bad", "golden/nowhere"), as: &carl,
			want: []string{denied + `"golden/nowhere" is forbidden: it does not exist or user "carl" may not use it; ask for verb "use" on virtualmachinetemplates "nowhere" in namespace "golden"`},
		},
		{
			name:     "a template that exists, to someone who may neither use nor see",
			manifest: vm("bad", "golden/fedora"), as: &bob,
			want: []string{denied + `"golden/fedora" is forbidden: it does not exist or user "bob" may not use it; ask for verb "use" on virtualmachinetemplates "fedora" in namespace "golden"`},
		},
		{
			name:     "a template that does not exist, to someone who may neither use nor see",
			manifest: vm("bad", "golden/nowhere"), as: &bob,
			want: []string{denied + `"golden/nowhere" is forbidden: it does not exist or user "bob" may not use it; ask for verb "use" on virtualmachinetemplates "nowhere" in namespace "golden"`},
		},
		{
			name:     "an unknown parameter, with the nearest known name",
			manifest: vm("bad", "golden/fedora", gen.Parameter("INSTANCE_TYPE", "u1.large")),
			want:     []string{parameter + `INSTANCE_TYPE]`, `INSTANCETYPE`},
		},
		{
			name:     "every cause at once: unknown, missing, ill-typed, out of bounds, not in the enum",
			manifest: vm("bad", "golden/ubuntu", gen.Parameter("CORES", "many"), gen.Parameter("ENVIRONMENT", "moon"), gen.Parameter("NOPE", "x"), gen.Parameter("MEMORY", "lots")),
			want: []string{
				parameter + `CORES]: Invalid value: "many"`,
				parameter + `ENVIRONMENT]: Unsupported value: "moon"`,
				parameter + `MEMORY]: Invalid value: "lots"`,
				parameter + `NOPE]`,
				parameter + `SSH_KEY]: Required value`,
			},
		},
		{
			name:     "an integer out of bounds",
			manifest: vm("bad", "golden/ubuntu", gen.Parameter("CORES", "64"), gen.Parameter("SSH_KEY", "ssh-ed25519 AAAA")),
			want:     []string{parameter + `CORES]: Invalid value: "64"`, "32"},
		},
		{
			name:     "a name that contradicts an explicit parameter",
			manifest: vm("bad", "golden/fedora", gen.Parameter("NAME", "good")),
			want:     []string{`The VirtualMachine "bad" is invalid: metadata.name: Invalid value: "bad"`, `NAME`},
		},
		{
			name:     "a name that its parameter does not take",
			manifest: vm("a-name-that-windows-cannot-bear", "golden/windows", gen.Parameter("ANSWERS", "a")),
			want:     []string{`The VirtualMachine "a-name-that-windows-cannot-bear" is invalid: metadata.name: Invalid value: "a-name-that-windows-cannot-bear"`},
		},
		{
			name:     "an empty reference",
			manifest: vm("bad", ""),
			want:     []string{`The VirtualMachine "bad" is invalid: ` + reference + `Required value: name a VirtualMachineTemplate as NAME or NAMESPACE/NAME`},
		},
		{
			name:     "a reference that leaves its namespace",
			manifest: vm("bad", "../fedora"),
			want:     []string{reference + `Invalid value: "../fedora": the namespace part is not a namespace name`},
		},
		{
			name:     "a reference in another case",
			manifest: vm("bad", "golden/Fedora"),
			want:     []string{reference + `Invalid value: "golden/Fedora": the name part is not a template name`},
		},
		{
			name:     "a reference with white space",
			manifest: vm("bad", "golden/fedora "),
			want:     []string{reference + `Invalid value: "golden/fedora ": the name part is not a template name`},
		},
		{
			name:     "a spec that is not an object",
			manifest: vm("bad", "golden/fedora", gen.Fields("spec: [1]")),
			want:     []string{`spec`},
		},
		{
			name:     "a spec that KubeVirt refuses",
			manifest: vm("bad", "golden/fedora", gen.Spec("running: true\nrunStrategy: Always")),
			want:     []string{`Running and RunStrategy are mutually exclusive`},
		},
		{
			name:     "a value that makes the VM too large",
			manifest: vm("bad", "golden/bulky", gen.Parameter("BULK", strings.Repeat("x", 100_000))),
			want:     []string{`1048576`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			discard(t, "bad")
			as := ada
			if tc.as != nil {
				as = *tc.as
			}
			if strings.Contains(tc.manifest, "golden/bulky") {
				createBulkyTemplate(t)
			}
			out := kubectl(t, as, tc.manifest, "create", "--validate=false", "-f", "-")
			if out.Code == 0 {
				t.Fatalf("it was created: %s", out.Stdout)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.Stderr, want) {
					t.Errorf("standard error lacks %q:\n%s", want, out.Stderr)
				}
			}
			if got := kubectl(t, nil, "", "get", "virtualmachines", "-o", "name"); strings.Contains(got.Stdout, "/bad") {
				t.Errorf("something was created: %s", got.Stdout)
			}
		})
	}
}

// createBulkyTemplate makes a template that multiplies its parameter by twenty.
func createBulkyTemplate(t *testing.T) {
	t.Helper()
	bulk := gen.Spec("template: {metadata: {annotations: {a: '" + strings.Repeat("${BULK}", 20) + "'}}}")
	mustKubectl(t, nil, gen.Manifest(gen.Template("bulky", gen.InNamespace("golden"), gen.Declares("BULK"), gen.Renders("", gen.LeastSpec(), bulk))), "apply", "-f", "-", "--namespace=golden")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "bulky", "--namespace=golden") })
}

func TestARefusalNeverShowsASensitiveValue(t *testing.T) {
	const secret = "swordfish-0815"
	template := gen.Template("secretive", gen.InNamespace("golden"), gen.Declares("PIN", "{type: int, sensitive: true}"),
		gen.Declares("TOKEN", "{pattern: '[0-9]+', sensitive: true}"), gen.Renders("", gen.Annotation("a", "${PIN}${TOKEN}"), gen.LeastSpec()))
	mustKubectl(t, nil, gen.Manifest(template), "apply", "-f", "-", "--namespace=golden")
	t.Cleanup(func() { mustKubectl(t, nil, "", "delete", "vmt", "secretive", "--namespace=golden") })
	out := kubectl(t, ada, vm("bad", "golden/secretive", gen.Parameter("PIN", secret), gen.Parameter("TOKEN", secret)), "create", "-f", "-")
	if out.Code == 0 {
		t.Fatal("it was created")
	}
	for _, want := range []string{"PIN]", "TOKEN]"} {
		if !strings.Contains(out.Stderr, want) {
			t.Errorf("standard error lacks %q: %s", want, out.Stderr)
		}
	}
	logs, err := stencil.ManagerLogs()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.Stderr, secret) || strings.Contains(logs, secret) {
		t.Errorf("the secret is shown: %s", out.Stderr)
	}
}

func TestATemplateThatIsDeletedIsGoneForTheNextRequest(t *testing.T) {
	mustKubectl(t, nil, gen.Manifest(gen.Template("fleeting", gen.InNamespace("golden"), gen.Renders("", gen.LeastSpec()))), "create", "-f", "-", "--namespace=golden")
	mustKubectl(t, ada, vm("bad", "golden/fleeting"), "create", "--dry-run=server", "-f", "-")
	mustKubectl(t, nil, "", "delete", "vmt", "fleeting", "--namespace=golden")
	harness.Eventually(t, "the template is not found", func() error {
		out := kubectl(t, ada, vm("bad", "golden/fleeting"), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, `"golden/fleeting" not found`) {
			return errText("the template is still used: " + out.Stdout + out.Stderr)
		}
		return nil
	})
}

type errText string

func (e errText) Error() string { return string(e) }

func TestAPersonWithoutRightsOnMachinesIsStoppedByRBAC(t *testing.T) {
	withoutRights := harness.User(t, stencil.Plane, "nobody-special")
	out := kubectl(t, withoutRights, vm("bad", "golden/fedora"), "create", "--validate=false", "-f", "-")
	if !strings.Contains(out.Stderr, `cannot create resource "virtualmachines"`) {
		t.Errorf("got %s%s", out.Stdout, out.Stderr)
	}
}

// TestTheContractOfAStoredMachineIsFixed tests the policy on the reference.
func TestTheContractOfAStoredMachineIsFixed(t *testing.T) {
	discard(t, "fixed", "plain")
	mustKubectl(t, ada, vm("fixed", "golden/fedora", gen.Parameter("INSTANCETYPE", "u1.large")), "create", "-f", "-")
	mustKubectl(t, ada, gen.Manifest(gen.VM("plain", gen.SmallSpec(), gen.Memory("1Gi"))), "create", "-f", "-")
	before := get(t, "fixed")
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"changing the reference", []string{"annotate", "vm", "fixed", "--overwrite", "template.kubevirt.io/template-ref=golden/ubuntu"}, []string{"template.kubevirt.io/template-ref"}},
		{"removing the reference", []string{"annotate", "vm", "fixed", "template.kubevirt.io/template-ref-"}, []string{"template.kubevirt.io/template-ref"}},
		{"changing a parameter", []string{"annotate", "vm", "fixed", "--overwrite", "parameter.template.kubevirt.io/INSTANCETYPE=u1.medium"}, []string{"INSTANCETYPE"}},
		{"removing a parameter", []string{"annotate", "vm", "fixed", "parameter.template.kubevirt.io/INSTANCETYPE-"}, []string{"INSTANCETYPE"}},
		{"adding a parameter", []string{"annotate", "vm", "fixed", "parameter.template.kubevirt.io/DATA_SOURCE_NAME=other"}, []string{"DATA_SOURCE_NAME"}},
		{"adding a reference to a VM that has none", []string{"annotate", "vm", "plain", "template.kubevirt.io/template-ref=golden/fedora"}, []string{"template.kubevirt.io/template-ref"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := kubectl(t, ada, "", tc.args...)
			if out.Code == 0 {
				t.Fatalf("it was taken: %s", out.Stdout)
			}
			for _, want := range append(tc.want, "ValidatingAdmissionPolicy") {
				if !strings.Contains(out.Stderr, want) {
					t.Errorf("standard error lacks %q: %s", want, out.Stderr)
				}
			}
		})
	}
	if diff := cmp.Diff(before.GetAnnotations()["template.kubevirt.io/template-ref"], get(t, "fixed").GetAnnotations()["template.kubevirt.io/template-ref"]); diff != "" {
		t.Error(diff)
	}
	t.Run("changing the record of what was rendered changes nothing", func(t *testing.T) {
		mustKubectl(t, ada, "", "annotate", "vm", "fixed", "--overwrite", `template.kubevirt.io/rendered={"name":"windows"}`)
		mustKubectl(t, ada, "", "label", "vm", "fixed", "--overwrite", "vm.kubevirt.io/template=windows")
		after := get(t, "fixed")
		if got := after.GetAnnotations()["template.kubevirt.io/rendered"]; got != before.GetAnnotations()["template.kubevirt.io/rendered"] {
			t.Errorf("rendered annotation %s", got)
		}
		if got := after.GetLabels()["vm.kubevirt.io/template"]; got != "fedora" {
			t.Errorf("label %s", got)
		}
	})
}
