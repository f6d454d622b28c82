package published_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// sourceRole is the role by which the published API lends VirtualMachines as sources.
const sourceRole = "virt-template-virtualmachinetemplaterequest-source-role"

// TestRightsOfARequest creates requests as a ServiceAccount. None of the VirtualMachines exists, which does not matter to the published API.
func TestRightsOfARequest(t *testing.T) {
	for _, tc := range []struct {
		name string
		// volumes and templates are the permissions to create DataVolumes and templates in the namespace of the request. source is the name of the
		// VirtualMachines that may be used there, * for all.
		volumes, templates bool
		source             string
		same               bool
		want               string
	}{
		{name: "no right to the source", want: "User is not allowed to use VirtualMachine"},
		{name: "a right to another source", source: "other-vm", want: "User is not allowed to use VirtualMachine"},
		{name: "no right to create DataVolumes", source: "*", templates: true, want: "User is not allowed to create DataVolumes"},
		{name: "no right to create templates", source: "*", volumes: true, want: "User is not allowed to create VirtualMachineTemplates"},
		{name: "a right to this source", source: "test-vm", volumes: true, templates: true},
		{name: "a right to all sources of the namespace", source: "*", volumes: true, templates: true},
		{name: "a source in the namespace of the request", volumes: true, templates: true, same: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			target, source := harness.Namespace(t, stage.Plane, "target"), harness.Namespace(t, stage.Plane, "source")
			account := "system:serviceaccount:" + target + ":requester"
			grant := func(namespace, resource, name string) {
				t.Helper()
				role := strings.NewReplacer(".", "-", "/", "-").Replace(resource)
				arguments := []string{"create", "role", role, "-n", namespace, "--verb=create", "--resource=" + resource}
				if name != "" {
					arguments = append(arguments, "--resource-name="+name)
				}
				must(t, "", arguments...)
				must(t, "", "create", "rolebinding", role, "-n", namespace, "--role="+role, "--serviceaccount="+target+":requester")
			}
			must(t, "", "create", "serviceaccount", "requester", "-n", target)
			grant(target, "virtualmachinetemplaterequests.template.kubevirt.io", "")
			if tc.volumes {
				grant(target, "datavolumes.cdi.kubevirt.io", "")
			}
			if tc.templates {
				grant(target, "virtualmachinetemplates.template.kubevirt.io", "")
			}
			switch tc.source {
			case "":
			case "*":
				must(t, "", "create", "rolebinding", "source", "-n", source, "--clusterrole="+sourceRole, "--serviceaccount="+target+":requester")
			default:
				grant(source, "virtualmachinetemplaterequests.template.kubevirt.io/source", tc.source)
			}
			if tc.same {
				source = target
			}
			manifest := fmt.Sprintf("apiVersion: template.kubevirt.io/v1alpha1\nkind: VirtualMachineTemplateRequest\nmetadata: {generateName: request-}\nspec: {virtualMachineRef: {namespace: %s, name: test-vm}}", source)
			got := kubectl(t, manifest, "create", "-n", target, "--as="+account, "-f", "-")
			if tc.want == "" && got.Code != 0 || tc.want != "" && (got.Code == 0 || !strings.Contains(got.Stderr, tc.want)) {
				t.Errorf("exit code %d, want %q: %s%s", got.Code, tc.want, got.Stdout, got.Stderr)
			}
			// Who may use a source may know whether it exists. The others may not.
			if told := strings.Contains(got.Stderr, "does not exist"); told != (tc.want == "" && !tc.same) {
				t.Errorf("told %t: %s", told, got.Stderr)
			}
		})
	}
}

// TestARequestOfAMachineThatDoesNotExist creates a request before its VirtualMachine, in both versions. The published API stores it. Its condition says what
// it waits for.
func TestARequestOfAMachineThatDoesNotExist(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			space := harness.Namespace(t, stage.Plane, "early")
			manifest := "apiVersion: template.kubevirt.io/" + version + "\nkind: VirtualMachineTemplateRequest\nmetadata: {name: early}\n" +
				"spec: {virtualMachineRef: {namespace: " + space + ", name: nonexistent-vm}}"
			got := kubectl(t, manifest, "create", "-n", space, "-f", "-")
			if want := "Warning: VirtualMachine " + space + "/nonexistent-vm does not exist; the request waits for it until its timeout"; got.Code != 0 || !strings.Contains(got.Stderr, want) {
				t.Fatalf("exit code %d, want %q: %s", got.Code, want, got.Stderr)
			}
			if name := must(t, "", "get", "virtualmachinetemplaterequests."+version+".template.kubevirt.io", "early", "-n", space, "-o", "jsonpath={.spec.virtualMachineRef.name}"); name != "nonexistent-vm" {
				t.Errorf("it refers to %q", name)
			}
			must(t, "", "wait", "--for=condition=Progressing", "--timeout=60s", "virtualmachinetemplaterequest/early", "-n", space)
			harness.Eventually(t, "the condition says what it waits for", func() error {
				said := must(t, "", "get", "vmtr", "early", "-n", space, "-o", `jsonpath={.status.conditions[?(@.type=="Completed")]}`)
				for _, want := range []string{`"status":"False"`, `"reason":"WaitingForMachine"`, "VirtualMachine " + space + "/nonexistent-vm does not exist; waiting for it until 20"} {
					if !strings.Contains(said, want) {
						return fmt.Errorf("%s does not say %s", said, want)
					}
				}
				return nil
			})
		})
	}
}
