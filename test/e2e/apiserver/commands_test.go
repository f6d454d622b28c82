package apiserver_test

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

var update = stencilctl.UpdateFlag()

// booth returns what the commands read. kiosk has an approval and a policy that evaluate VirtualMachines.
func booth() string {
	const (
		rules  = `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 134217728, "message": "it is slow", "justWarning": true}]`
		module = `package kiosknames

deny contains {"msg": sprintf("%s may not be called that", [input.object.metadata.name]), "field": "metadata.name", "fix": "begin with web-"} if {
  not startswith(input.object.metadata.name, "web-")
}
`
	)
	return gen.Manifest(
		gen.Namespace("booth"), gen.Namespace("kiosk"),
		gen.Template("web", gen.InNamespace("booth"), gen.Annotation("validations", rules), gen.Spec(`message: "${NAME} has ${CORES} cores."`),
			gen.Declares("NAME", "{displayName: Name, required: true, description: Name of the machine}"), gen.Declares("CORES", "{type: int, minimum: 1, maximum: 8, value: '2'}"),
			gen.Declares("MEMORY", "value: 128Mi"), gen.Declares("TIER", "{required: true, enum: [front, back]}"),
			gen.Declares("PASSWORD", "{displayName: Password, sensitive: true, required: true}"),
			gen.Renders("${NAME}", gen.Label("tier", "${TIER}"), gen.LeastSpec(), gen.Memory("${MEMORY}"),
				gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}, volumes: [{name: init, cloudInitNoCloud: {userData: "password: ${PASSWORD}"}}]}}`))),
		gen.Approval("kiosk", gen.Governs("kiosk"), gen.Approves("booth/web"), gen.Spec("parameters: [{name: CORES, maximum: 4}]"), gen.AnyValue("MEMORY", "TIER", "PASSWORD")),
		gen.Policy("kiosk-names", module, appliesIn("kiosk")))
}

// openShift defines OpenShift's Templates.
const openShift = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: templates.template.openshift.io}
spec:
  group: template.openshift.io
  scope: Namespaced
  names: {kind: Template, listKind: TemplateList, plural: templates, singular: template}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

const openShiftTemplate = `
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: rhel, namespace: booth, labels: {os: rhel}}
labels: {app: "${NAME}"}
objects: [{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: "${NAME}", namespace: elsewhere}, spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}}]
parameters: [{name: NAME, required: true}]
`

// virtualMachine is a manifest as users of kiosk write it.
const virtualMachine = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: NAME
  namespace: kiosk
  annotations:
    template.kubevirt.io/template-ref: booth/web
    parameter.template.kubevirt.io/TIER: front
    parameter.template.kubevirt.io/PASSWORD: hunter2
    parameter.template.kubevirt.io/CORES: "CORES"
`

// TestCommands runs every command of stencilctl against the cluster, with pipes and on a terminal, and compares what is printed.
func TestCommands(t *testing.T) {
	mustKubectl(t, booth()+"---"+openShift, "apply", "-f", "-")
	t.Cleanup(func() {
		mustKubectl(t, "", "delete", "templateapproval/kiosk", "templateapproval/team-y", "--ignore-not-found")
		mustKubectl(t, "", "delete", "virtualmachinepolicy/kiosk-names", "--ignore-not-found")
	})
	// A VirtualMachine that differs from its template.
	stored := gen.Manifest(gen.VM("drifted", gen.InNamespace("booth"), gen.Label("tier", "side"), gen.FromTemplate("booth/web"), gen.Parameter("NAME", "drifted"),
		gen.Parameter("TIER", "front"), gen.Parameter("PASSWORD", "hunter2"), gen.Spec("{runStrategy: Always, template: {spec: {domain: {cpu: {cores: 3}}}}}"))) + "---" + openShiftTemplate
	harness.Eventually(t, "everything is stored", func() error {
		// The kind and the template must be available first.
		if out := kubectl(t, nil, stored, "apply", "-f", "-"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	mustKubectl(t, "", "wait", "vmt/web", "--namespace=booth", "--for=condition=Ready", "--timeout=60s")
	fay := commander(t)
	// Approvals and policies take effect a moment after they are stored.
	harness.Eventually(t, "approval and policy judge", func() error {
		ran, err := stencilctl.Command{Binary: binary, Kubeconfig: fay.Kubeconfig, Line: "process booth/web -n kiosk -p NAME=web-1 -p TIER=front -p PASSWORD=hunter2 --explain"}.Run(t.Context())
		if err == nil && (!strings.Contains(ran.Output, "TemplateApproval/kiosk") || !strings.Contains(ran.Output, "VirtualMachinePolicy/kiosk-names")) {
			err = errors.New(ran.Output + ran.Problems)
		}
		return err
	})
	for _, tc := range []struct {
		name string
		as   *controlplane.User
		line string
		// stdin is piped; on a terminal it is a file that takes the place of the last argument, "-".
		stdin string
		// differently is the line on a terminal, where the first line would find the objects that its first run left.
		differently string
		answers     []stencilctl.Answer
	}{
		{name: "templates", as: fay, line: "templates -n kiosk"},
		{name: "templates, as YAML", as: fay, line: "templates -n booth -o yaml"},
		{name: "templates, none", as: fay, line: "templates -n kiosk -l os=none"},
		{name: "templates, without rights", as: bob, line: "templates -n kiosk"},
		{name: "templates, no namespace", as: stencil.Plane.Admin(), line: "templates -n nowhere"},
		{name: "schema", as: fay, line: "schema booth/web -n kiosk"},
		{name: "schema, no template", as: fay, line: "schema web -n kiosk"},
		{name: "process", as: fay, line: "process web -n booth -p NAME=web-1 -p TIER=front -p PASSWORD=hunter2 -p CORES=4"},
		{name: "process, without rights", as: bob, line: "process web -n booth -p NAME=web-1"},
		{name: "process, explain, everybody consents", as: fay, line: "process booth/web -n kiosk -p NAME=web-1 -p TIER=front -p PASSWORD=hunter2 --explain"},
		{name: "process, explain, a warning", as: fay, line: "process booth/web -n kiosk -p NAME=web-1 -p TIER=front -p PASSWORD=hunter2 -p MEMORY=64Mi --explain"},
		{name: "process, explain, denied", as: fay, line: "process booth/web -n kiosk -p NAME=box -p TIER=front -p PASSWORD=hunter2 -p MEMORY=64Mi -p CORES=8 --explain"},
		{name: "process, explain, as JSON", as: fay, line: "process booth/web -n kiosk -p NAME=box -p TIER=front -p PASSWORD=hunter2 --explain -o json"},
		{name: "process, explain, nobody judges", as: fay, line: "process booth/web -n booth -p NAME=box -p TIER=front -p PASSWORD=hunter2 --explain"},
		{name: "create", as: fay, line: "create web -n booth -p NAME=web-1 -p TIER=front -p PASSWORD=hunter2", differently: "create web -n booth -p NAME=web-2",
			answers: []stencilctl.Answer{{Prompt: "TIER: ", Text: "side"}, {Prompt: "TIER: ", Text: "2"}, {Prompt: "PASSWORD: ", Text: "hunter2"}}},
		{name: "create, the whole form", as: fay, line: "create web -n booth", differently: "create web -n booth",
			answers: []stencilctl.Answer{{Prompt: "NAME: ", Text: "web-3"}, {Prompt: "TIER: ", Text: "front"}, {Prompt: "PASSWORD: ", Text: "hunter2"}}},
		{name: "create, denied", as: fay, line: "create booth/web -n kiosk -p NAME=box -p TIER=front -p PASSWORD=hunter2"},
		{name: "convert", as: fay, line: "convert rhel -n booth"},
		{name: "lint", as: fay, line: "lint -", stdin: mustKubectl(t, "", "get", "vmt", "web", "--namespace=booth", "-o", "yaml")},
		{name: "capture", as: fay, line: "capture booth/drifted -n booth --name golden-web --dry-run=server -o name"},
		{name: "capture, without rights", as: bob, line: "capture booth/drifted -n booth"},
		{name: "capture, no VM", as: fay, line: "capture booth/none -n booth"},
		{name: "diff", as: fay, line: "diff drifted -n booth"},
		{name: "approve", as: stencil.Plane.Admin(), line: "approve team-y --template booth/web -n team-y --allow CORES=1,2", differently: "approve team-y --allow TIER=front --any-value PASSWORD,MEMORY --enforcement Warn"},
		{name: "approve, without rights", as: fay, line: "approve mine --template booth/web -n team-y"},
		{name: "explain, allowed", as: fay, line: "explain -f -", stdin: strings.NewReplacer("NAME", "web-1", `"CORES"`, `"4"`).Replace(virtualMachine)},
		{name: "explain, denied", as: fay, line: "explain -f -", stdin: strings.NewReplacer("NAME", "box", `"CORES"`, `"8"`).Replace(virtualMachine)},
		{name: "policy check", as: fay, line: "policy check docs/examples/policies/owners.yaml docs/examples/policies/mistaken.yaml"},
		{name: "policy test", as: fay, line: "policy test docs/examples/policies/owners.yaml -v"},
		{name: "policy eval", as: fay, line: "policy eval -f docs/examples/stencilctl/vm.yaml -p docs/examples/policies/owners.yaml -n team-a --template-file docs/examples/golden/fedora.yaml --instancetype-file docs/examples/stencilctl/sizes.yaml"},
		{name: "policy explain", as: fay, line: "policy explain -f docs/examples/stencilctl/vm.yaml -p docs/examples/policies/owners.yaml -n team-a --template-file docs/examples/golden/fedora.yaml --instancetype-file docs/examples/stencilctl/sizes.yaml"},
		{name: "policy fmt", as: fay, line: "policy fmt --check docs/examples/policies/owners.yaml cmd/stencilctl/testdata/unformatted/policy.yaml"},
		{name: "policy simulate", as: fay, line: "policy simulate -n booth -p cmd/stencilctl/testdata/policies/cpus.rego"},
		{name: "defaults, no defaulter", as: fay, line: "defaults -f cmd/stencilctl/testdata/machines/web-1.yaml --socket /nowhere/defaulter.sock"},
		{name: "defaults unpin", as: fay, line: "defaults unpin drifted -n booth"},
		{name: "defaults repin", as: fay, line: "defaults repin --all -n booth"},
		{name: "completion of names", as: fay, line: "__complete process booth/"},
		{name: "completion of machines", as: fay, line: "__complete diff -n booth d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stdin.yaml")
			golden := stencilctl.Golden{Folder: "testdata/commands", Update: update, Scrub: func(text string) string {
				return scrub(strings.ReplaceAll(text, file, "FILE"))
			}}
			command := stencilctl.Command{Binary: binary, Kubeconfig: tc.as.Kubeconfig, Line: tc.line, Stdin: tc.stdin, Folder: "../../.."}
			ran, err := command.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, tc.name, command, ran)

			if tc.stdin != "" {
				testfile.Write(t, file, tc.stdin)
				command.Line, command.Stdin = strings.TrimSuffix(tc.line, "-")+file, ""
			}
			if tc.differently != "" {
				command.Line = tc.differently
			}
			shown, err := command.OnTerminal(t.Context(), tc.answers...)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(shown.Output, "hunter2") && !strings.Contains(command.Line, "hunter2") {
				t.Errorf("what was typed for a sensitive parameter is shown:\n%s", shown.Output)
			}
			golden.Compare(t, tc.name+", on a terminal", command, shown)
		})
	}
	t.Run("the page about available templates", func(t *testing.T) {
		const page = "../../../docs/available-templates.md"
		text := string(testfile.Read(t, page))
		for _, line := range []string{"get availabletemplates -n kiosk -o wide", "get availabletemplates booth.web -n kiosk -o yaml"} {
			out := kubectl(t, fay, "", strings.Fields(line)...)
			before, after, _ := strings.Cut(text, "$ kubectl "+line+"\n")
			shown, rest, found := strings.Cut(after, "```\n")
			if !found || out.Code != 0 {
				t.Fatalf("kubectl %s: %+v", line, out)
			}
			if shown != out.Stdout && !*update {
				t.Errorf("%s does not show what kubectl %s prints:\n%s", page, line, out.Stdout)
			}
			text = before + "$ kubectl " + line + "\n" + out.Stdout + "```\n" + rest
		}
		if *update {
			testfile.Write(t, page, text)
		}
	})
}

// The output in the document was printed by one of the commands.
func TestTheDocumentShowsWhatCommandsPrint(t *testing.T) {
	document := testfile.Read(t, "../../../docs/stencilctl.md")
	for _, name := range []string{"create-the-whole-form-on-a-terminal", "process-explain-denied", "process-explain-everybody-consents", "templates", "schema"} {
		golden := testfile.Read(t, filepath.Join("testdata/commands", name+".txt"))
		printed, _, _ := strings.Cut(regexp.MustCompile("<[0-9]+>").ReplaceAllString(string(golden), ""), "--- exit code")
		if want := strings.Replace(printed, "$ stencilctl ", "$ kubectl stencil ", 1); !strings.Contains(string(document), want) {
			t.Errorf("docs/stencilctl.md does not show:\n%s", want)
		}
	}
}

// commander returns a user with the permissions that the commands require in booth, and to create VirtualMachines in kiosk from the templates of
// booth.
func commander(t *testing.T) *controlplane.User {
	t.Helper()
	var roles []gen.UserModifier
	for _, namespace := range []string{"booth", "kiosk"} {
		for _, role := range []string{"kubevirt.io:edit", "stencil-template-process", "stencil-template-create", "stencil-available-templates"} {
			roles = append(roles, gen.Role(namespace, role))
		}
	}
	// stencil-edit, not edit, which grants reading the Namespace: one of the commands reports that it cannot. The other permissions are granted by
	// CDI and OpenShift.
	roles = append(roles, gen.Role("booth", "stencil-edit"), gen.Permits("booth",
		rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"template.openshift.io"}, Resources: []string{"templates"}, Verbs: []string{"get"}},
	))
	fay := harness.User(t, stencil.Plane, "fay", roles...)
	return fay
}

// scrubbed are the values that differ in every run.
var scrubbed = map[*regexp.Regexp]string{
	// The line with the progress, whose number depends on the speed of the machine.
	regexp.MustCompile(`(\robjects evaluated: [0-9]+)+\r\x1b\[K`):                                   "",
	regexp.MustCompile(`virtualmachinetemplaterequest\.template\.kubevirt\.io/drifted-[a-z0-9]{5}`): "virtualmachinetemplaterequest.template.kubevirt.io/drifted-xxxxx",
}

func scrub(text string) string {
	for pattern, by := range scrubbed {
		text = pattern.ReplaceAllString(text, by)
	}
	return text
}
