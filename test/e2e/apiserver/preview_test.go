package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/client"
	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/stencilctl"
)

// evaluators returns all objects that can evaluate VirtualMachines of a namespace: an approval, two policies, the rules of the template, and a policy
// of the cluster that is independent of Stencil.
func evaluators(space string) string {
	const (
		rules = `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 134217728, "message": "it is slow", "justWarning": true}]`
		names = `package previewednames

deny contains {"msg": sprintf("%s may not have a machine %s", [input.request.userInfo.username, input.object.metadata.name]), "field": "metadata.name", "fix": "begin with web-"} if {
  not startswith(input.object.metadata.name, "web-")
}
`
		quiet = `package previewedquiet

deny contains {"msg": "never"} if input.object.metadata.name == "never"
`
		elsewhere = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: previewed-elsewhere}
spec:
  matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}, resourceRules: [{apiGroups: [kubevirt.io], apiVersions: [v1], operations: [CREATE], resources: [virtualmachines]}]}
  validations: [{expression: "object.metadata.name != 'web-taken'", message: this name is for somebody else}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: previewed-elsewhere}
spec: {policyName: previewed-elsewhere, validationActions: [Deny]}
`
	)
	return gen.Manifest(
		gen.Template("judged", gen.InNamespace(space), gen.Annotation("validations", rules),
			gen.Declares("NAME", "required: true"), gen.Declares("CORES", "{type: int, value: '1'}"), gen.Declares("MEMORY", "value: 128Mi"),
			gen.Renders("${NAME}", gen.LeastSpec(), gen.Memory("${MEMORY}"), gen.Spec(`template: {spec: {domain: {cpu: {cores: "${{CORES}}"}}}}`))),
		gen.Approval("previewed", gen.Governs(space), gen.Approves(space+"/judged"), gen.Spec("parameters: [{name: CORES, maximum: 4}]"), gen.AnyValue("MEMORY")),
		gen.Policy("previewed-names", names, appliesIn(space)),
		gen.Policy("previewed-quiet", quiet, appliesIn(space)),
	) + strings.ReplaceAll(elsewhere, "SPACE", space)
}

func TestPreview(t *testing.T) {
	space := shop(t)
	harness.Bind(t, stencil.Plane, dora, space, "stencil-template-process")
	manifests := evaluators(space)
	mustKubectl(t, manifests, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, manifests, "delete", "--ignore-not-found", "-f", "-") })
	explain := func(as *controlplane.User, version, parameters string) ([]v1beta1.Decision, error) {
		r := request{as: as, path: subresource(t, version, "judged", "process"), body: "parameters: {" + parameters + "}\nexplain: true"}
		got := r.do(t)
		var answer struct {
			VirtualMachine map[string]any
			Decisions      []v1beta1.Decision
		}
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.code != http.StatusOK || answer.VirtualMachine == nil {
			return nil, fmt.Errorf("%d %s (%w)", got.code, got.body, err)
		}
		return answer.Decisions, nil
	}
	const approval, policy = v1beta1.DecisionKindApproval, v1beta1.DecisionKindPolicy
	consent := []v1beta1.Decision{
		{Decision: "allow", Kind: approval, Policy: "previewed"},
		{Decision: "allow", Kind: policy, Policy: "previewed-names"},
		{Decision: "allow", Kind: policy, Policy: "previewed-quiet"},
	}
	named := func(who, name string) v1beta1.Decision {
		return v1beta1.Decision{Decision: "deny", Kind: policy, Policy: "previewed-names", Message: who + " may not have a machine " + name, Field: "metadata.name", Fix: "begin with web-"}
	}
	slow := v1beta1.Decision{Decision: "warn", Kind: v1beta1.DecisionKindRules, Policy: "template " + space + "/judged",
		Message: "memory: it is slow (64Mi is less than 134217728)", Field: "spec.template.spec.domain.memory.guest"}
	elsewhere := v1beta1.Decision{Decision: "deny", Message: `virtualmachines.kubevirt.io "web-taken" is forbidden: ValidatingAdmissionPolicy 'previewed-elsewhere' with binding 'previewed-elsewhere' denied request: this name is for somebody else`}
	for _, tc := range []struct {
		name, parameters string
		as               *controlplane.User
		want             []v1beta1.Decision
	}{
		{"somebody else denies", "NAME: web-taken", ada, append([]v1beta1.Decision{elsewhere}, consent...)},
		{"everybody consents", "NAME: web-1", ada, consent},
		{"everybody objects, all at once", "NAME: box, CORES: 8, MEMORY: 64Mi", ada, []v1beta1.Decision{
			{Decision: "deny", Kind: approval, Policy: "previewed", Message: "Invalid value: \"8\": must be at most 4", Field: "parameters[CORES]"},
			named("ada", "box"), slow, consent[2],
		}},
		{"a warning", "NAME: web-1, MEMORY: 64Mi", ada, append([]v1beta1.Decision{slow}, consent...)},
		{"somebody who writes manifests", "NAME: box", dora, []v1beta1.Decision{named("dora", "box"), consent[0], consent[2]}},
		{"somebody who may create nothing is told that and no more", "NAME: box, CORES: 8", bob, []v1beta1.Decision{{Decision: "deny", Message: fmt.Sprintf(
			"user \"bob\" may not create VirtualMachines from template %s/judged in namespace %q, which takes verb \"create\" on virtualmachinetemplates/create of group %s there", space, space, group)}}},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(tc.name+", "+version, func(t *testing.T) {
				// Policies and approvals take effect a moment after they are stored.
				harness.Eventually(t, "the decisions are as wanted", func() error {
					got, err := explain(tc.as, version, tc.parameters)
					if err != nil {
						return err
					}
					if diff := cmp.Diff(tc.want, got); diff != "" {
						return fmt.Errorf("decisions (-want +got):\n%s", diff)
					}
					return nil
				})
			})
		}
	}
	if names := mustKubectl(t, "", "get", "virtualmachines", "--namespace="+space, "-o", "name"); names != "" {
		t.Errorf("a preview stored %s", names)
	}
	t.Run("what was foretold comes true", func(t *testing.T) {
		got := creation(t, ada, "judged", "parameters: {NAME: web-there, MEMORY: 64Mi}\nexplain: true").do(t)
		if got.code != http.StatusOK || !strings.Contains(got.body, `"decision":"warn"`) || len(got.warnings) != 1 ||
			!strings.Contains(got.warnings[0], "rule memory of template "+space+"/judged: it is slow (64Mi is less than 134217728)") {
			t.Errorf("%d %s %q", got.code, got.body, got.warnings)
		}
		decisions, err := explain(ada, "v1beta1", "NAME: web-there")
		if err != nil || len(decisions) == 0 || decisions[0].Decision != "deny" || !strings.Contains(decisions[0].Message, "already exists") {
			t.Errorf("once more: %+v, %v", decisions, err)
		}
	})
	t.Run("the typed client", func(t *testing.T) {
		typed, err := client.New(ada.Config())
		if err != nil {
			t.Fatal(err)
		}
		made, err := typed.Subresources(space).Process(t.Context(), "judged", &v1beta1.ProcessOptions{Parameters: map[string]string{"NAME": "box"}, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]v1beta1.Decision{named("ada", "box"), consent[0], consent[2]}, made.Decisions); diff != "" || made.VirtualMachine.Name != "box" {
			t.Errorf("%+v (-want +got):\n%s", made.VirtualMachine, diff)
		}
		_, err = typed.Subresources(space).Create(t.Context(), "judged", &v1beta1.ProcessOptions{Parameters: map[string]string{"NAME": "box"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeForbidden) {
			t.Errorf("%v", err)
		}
		admin, err := client.New(stencil.Plane.AdminConfig())
		if err != nil {
			t.Fatal(err)
		}
		template, err := admin.TemplateV1beta1().VirtualMachineTemplates(space).Get(t.Context(), "judged", metav1.GetOptions{})
		if err != nil || len(template.Spec.Parameters) != 3 {
			t.Errorf("%+v, %v", template, err)
		}
		if approvals, err := admin.StencilV1alpha1().TemplateApprovals().List(t.Context(), metav1.ListOptions{}); err != nil || len(approvals.Items) == 0 {
			t.Errorf("%+v, %v", approvals, err)
		}
	})
	t.Run("stencilctl", func(t *testing.T) {
		floor := floor(t)
		harness.Bind(t, stencil.Plane, ada, floor, "stencil-template-create")
		run := func(arguments ...string) (string, int) {
			ran, err := stencilctl.Command{Binary: binary, Kubeconfig: ada.Kubeconfig, Arguments: arguments}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return ran.Output, ran.Code
		}
		out, code := run("process", space+"/judged", "-n", space, "-p", "NAME=box", "-p", "MEMORY=64Mi", "--explain")
		want := "DECISION   BY                                     FIELD                                    MESSAGE\n" +
			"deny       VirtualMachinePolicy/previewed-names   metadata.name                            ada may not have a machine box; fix: begin with web-\n" +
			fmt.Sprintf("warn       %-36s   spec.template.spec.domain.memory.guest   memory: it is slow (64Mi is less than 134217728)\n", "template "+space+"/judged") +
			"allow      TemplateApproval/previewed             <none>                                   <none>\n" +
			"allow      VirtualMachinePolicy/previewed-quiet   <none>                                   <none>\n"
		if diff := cmp.Diff(want, out); diff != "" || code != 1 {
			t.Errorf("exit code %d (-want +got):\n%s", code, diff)
		}
		// The target namespace determines what evaluates the VM: nothing there.
		harness.Eventually(t, "nobody judges it there", func() error {
			out, code := run("process", space+"/judged", "-p", "NAME=box", "--target-namespace="+floor, "--explain", "-o", "json")
			if code != 0 || out != "{\n  \"allowed\": true,\n  \"decisions\": []\n}\n" {
				return fmt.Errorf("exit code %d: %s", code, out)
			}
			return nil
		})
		if out, code := run("process", space+"/judged", "-p", "NAME=box", "-n", floor, "--create", "-o", "name"); code != 0 || out != "virtualmachine.kubevirt.io/box\n" {
			t.Errorf("exit code %d: %s", code, out)
		}
		if found := mustKubectl(t, "", "get", "vm", "box", "--namespace="+floor, "-o", `jsonpath={.metadata.annotations.template\.kubevirt\.io/created-by}`); found != "ada" {
			t.Errorf("created by %q", found)
		}
	})
}

// A VirtualMachine without a template has the rules of its own annotation.
func TestRulesOfAMachineWithoutATemplate(t *testing.T) {
	vm := func(memory, warns string) string {
		rules := `[{"name": "memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest", "min": 134217728, "message": "too little"` + warns + `}]`
		return gen.Manifest(gen.VM("ruled", gen.InNamespace(shop(t)), gen.Annotation("vm.kubevirt.io/validations", rules), gen.SmallSpec(), gen.Memory(memory)))
	}
	const found = "rule memory of annotation vm.kubevirt.io/validations: too little (64Mi is less than 134217728) at spec.template.spec.domain.memory.guest"
	if out := kubectl(t, dora, vm("64Mi", ""), "create", "-f", "-"); out.Code == 0 || !strings.Contains(out.Stderr, found) {
		t.Errorf("%d %s", out.Code, out.Stderr)
	}
	if out := kubectl(t, dora, vm("64Mi", `, "justWarning": true`), "create", "-f", "-"); out.Code != 0 || !strings.Contains(out.Stderr, "Warning: "+found) {
		t.Errorf("%d %s", out.Code, out.Stderr)
	}
	if out := kubectl(t, dora, vm("64Mi", ""), "apply", "-f", "-"); out.Code != 0 {
		t.Errorf("a rule that was not satisfied before stands in the way: %s", out.Stderr)
	}
	if out := kubectl(t, dora, vm("128Mi", ""), "apply", "-f", "-"); out.Code != 0 {
		t.Errorf("%s", out.Stderr)
	}
	if out := kubectl(t, dora, vm("64Mi", ""), "apply", "-f", "-"); out.Code == 0 || !strings.Contains(out.Stderr, found) {
		t.Errorf("%d %s", out.Code, out.Stderr)
	}
}
