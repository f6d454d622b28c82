package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

func creation(t *testing.T, as *controlplane.User, template, body string) request {
	t.Helper()
	return request{as: as, path: subresource(t, "v1beta1", template, "create"), body: body}
}

func TestSomebodyWithoutRightsOnMachinesCreatesOne(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, user := range []*controlplane.User{ada, carl} {
			t.Run(version+" "+user.Name, func(t *testing.T) {
				discard(t, shop(t), "web-2")
				if out := kubectl(t, user, "", "auth", "can-i", "create", "virtualmachines.kubevirt.io", "--namespace="+shop(t)); out.Code == 0 {
					t.Fatalf("%s may create VirtualMachines", user.Name)
				}
				got := request{as: user, path: subresource(t, version, "box", "create"), body: "parameters: {NAME: web-2, CORES: 2, UNUSED: x}"}.do(t)
				p := decode(t, got)
				if p.VirtualMachine.Metadata.UID == "" || p.VirtualMachine.Metadata.Namespace != shop(t) || p.VirtualMachine.Spec.Template.Spec.Domain.CPU.Cores != "2" {
					t.Errorf("%+v", p.VirtualMachine)
				}
				annotations := p.VirtualMachine.Metadata.Annotations
				for key, want := range map[string]string{
					"template.kubevirt.io/created-by":              user.Name,
					"template.kubevirt.io/template-ref":            shop(t) + "/box",
					"parameter.template.kubevirt.io/NAME":          "web-2",
					"parameter.template.kubevirt.io/PASSWORD":      "",
					"delegation.template.kubevirt.io/bound-values": "",
				} {
					if annotations[key] != want {
						t.Errorf("annotation %s is %q, want %q", key, annotations[key], want)
					}
				}
				if !strings.Contains(annotations["template.kubevirt.io/rendered"], `"digest":"sha256:`) || p.VirtualMachine.Metadata.Labels["vm.kubevirt.io/template"] != "box" {
					t.Errorf("the record is missing: %+v", p.VirtualMachine.Metadata)
				}
				_, password, _ := strings.Cut(p.VirtualMachine.Spec.Template.Spec.Volumes[0].CloudInitNoCloud.UserData, "password: ")
				if password = strings.TrimSpace(password); len(password) != 12 || !strings.Contains(p.Message, "has password "+password+" ") {
					t.Errorf("the message %q does not say the generated password %q of the VM that is stored", p.Message, password)
				}
				if len(got.warnings) != 1 || !strings.Contains(got.warnings[0], "UNUSED") {
					t.Errorf("warnings %q", got.warnings)
				}
				stored := mustKubectl(t, "", "get", "virtualmachine", "web-2", "--namespace="+shop(t), "-o", "json", "--show-managed-fields")
				if strings.Contains(stored, "bound-values") || !strings.Contains(stored, password) {
					t.Errorf("stored: %s", stored)
				}
			})
		}
	}
}

func TestATemplateThatNamesItsMachinesByAPrefix(t *testing.T) {
	p := decode(t, creation(t, ada, "crate", "").do(t))
	if !strings.HasPrefix(p.VirtualMachine.Metadata.Name, "crate-") || len(p.VirtualMachine.Metadata.Name) != len("crate-")+5 {
		t.Errorf("name %q", p.VirtualMachine.Metadata.Name)
	}
}

func TestADryRunStoresNothing(t *testing.T) {
	dry := creation(t, ada, "box", "parameters: {NAME: web-3}")
	dry.path += "?dryRun=All"
	if p := decode(t, dry.do(t)); p.VirtualMachine.Metadata.Annotations["template.kubevirt.io/created-by"] != "ada" {
		t.Errorf("%+v", p.VirtualMachine)
	}
	if out := kubectl(t, nil, "", "get", "virtualmachine", "web-3", "--namespace="+shop(t)); out.Code == 0 {
		t.Error("it was stored")
	}
}

func TestAnotherNamespaceTakesTheRightThere(t *testing.T) {
	floor := floor(t)
	elsewhere := creation(t, ada, "box", "parameters: {NAME: web-5}\ntargetNamespace: "+floor)
	if got := elsewhere.do(t); got.code != http.StatusForbidden || !strings.Contains(got.body, `in namespace \"`+floor+`\"`) {
		t.Fatalf("%d %s", got.code, got.body)
	}
	named := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"virtualmachinetemplates/create"}, Verbs: []string{"create"}, ResourceNames: []string{"box"}}
	harness.Grant(t, stencil.Plane, ada, floor, named)
	if got := elsewhere.do(t); got.code != http.StatusForbidden {
		t.Errorf("a right that is for templates of that namespace by name was enough: %d", got.code)
	}
	harness.Bind(t, stencil.Plane, ada, floor, "stencil-template-create")
	// A denial is cached for a moment.
	harness.Eventually(t, "the new permission is known", func() error {
		got := elsewhere.do(t)
		if got.code != http.StatusOK {
			return fmt.Errorf("%d %s", got.code, got.body)
		}
		if p := decode(t, got); p.VirtualMachine.Metadata.Namespace != floor || p.VirtualMachine.Metadata.Annotations["template.kubevirt.io/template-ref"] != shop(t)+"/box" {
			t.Errorf("%+v", p.VirtualMachine)
		}
		return nil
	})
}

// The approval selects a group, and the policy a username: both are those of the requesting user, not of the server.
func TestApprovalsAndPoliciesJudgeThePerson(t *testing.T) {
	// ada and carl already have permission to create VirtualMachines.
	harness.Bind(t, stencil.Plane, bob, shop(t), "stencil-template-create")
	space := shop(t)
	const module = `package notcarl

deny contains {"msg": sprintf("%s makes no machines here", [input.request.userInfo.username]), "field": "metadata.name"} if {
  input.request.userInfo.username == "carl"
}
`
	rules := gen.Manifest(
		gen.Approval("for-team-ada", gen.Governs(space), gen.Approves(space+"/box"),
			gen.Spec("{subjects: [{kind: Group, name: team-ada}, {kind: User, name: carl}], parameters: [{name: CORES, maximum: 4}]}")),
		gen.Policy("not-carl", module, appliesIn(space)))
	mustKubectl(t, rules, "apply", "-f", "-")
	t.Cleanup(func() { mustKubectl(t, rules, "delete", "--ignore-not-found", "-f", "-") })
	everyForm(t, evaluatesUser)
}

func evaluatesUser(t *testing.T, version, form string) {
	create := func(as *controlplane.User, template, body string) answer {
		return request{as: as, path: subresource(t, version, template, "create") + "?dryRun=All", body: body}.in(t, form).do(t)
	}
	harness.Eventually(t, "the approval is for the team", func() error {
		if got := create(bob, "box", "parameters: {NAME: web-6}"); got.code != http.StatusForbidden || !strings.Contains(got.body, "for-team-ada") {
			return fmt.Errorf("bob, who is not of the team: %d %s", got.code, got.body)
		}
		got := create(carl, "box", "parameters: {NAME: web-6}")
		var status struct {
			Reason  string
			Details struct {
				Causes []struct{ Message, Field string }
			}
		}
		if err := yaml.Unmarshal([]byte(got.body), &status); err != nil {
			return err
		}
		if got.code != http.StatusForbidden || status.Reason != "Forbidden" || len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != "metadata.name" || !strings.Contains(status.Details.Causes[0].Message, "carl makes no machines here") {
			return fmt.Errorf("carl, whom the policy denies: %d %s", got.code, got.body)
		}
		if got := create(ada, "box", "parameters: {NAME: web-6, CORES: 8}"); got.code != http.StatusForbidden || !strings.Contains(got.body, "CORES") {
			return fmt.Errorf("ada, with too many cores: %d %s", got.code, got.body)
		}
		if got := create(ada, "crate", "{}"); got.code != http.StatusForbidden {
			return fmt.Errorf("ada, from a template that is not approved: %d %s", got.code, got.body)
		}
		if got := create(ada, "box", "parameters: {NAME: web-6, CORES: 4}"); got.code != http.StatusOK {
			return fmt.Errorf("ada: %d %s", got.code, got.body)
		}
		return nil
	})
}

// A VM and its message come from one version of the template.
func TestNothingIsMixedWhileTheTemplateChanges(t *testing.T) {
	version := func(n int) string {
		text := fmt.Sprintf("version %d", n)
		return gen.Manifest(gen.Template("moving", gen.InNamespace(shop(t)), gen.Spec("message: "+text),
			gen.Renders("", gen.GenerateName("box-"), gen.Annotation("version", text), gen.LeastSpec())))
	}
	mustKubectl(t, version(0), "apply", "-f", "-")
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	var work sync.WaitGroup
	for worker := range 4 {
		verb := []string{"process", "create"}[worker%2]
		work.Go(func() {
			for ctx.Err() == nil {
				r := request{as: ada, path: subresource(t, "v1beta1", "moving", verb) + "?dryRun=All"}
				got := r.do(t)
				var p processed
				if err := json.Unmarshal([]byte(got.body), &p); got.code != http.StatusOK || err != nil || p.Message == "" || p.Message != p.VirtualMachine.Metadata.Annotations["version"] {
					t.Errorf("%s: %d %v %s", verb, got.code, err, got.body)
					return
				}
			}
		})
	}
	for n := 1; ctx.Err() == nil; n++ {
		mustKubectl(t, version(n), "apply", "-f", "-")
	}
	work.Wait()
}
