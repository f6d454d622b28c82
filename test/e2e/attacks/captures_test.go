package attacks_test

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// request is a manifest of a VirtualMachineTemplateRequest.
func request(name, namespace, vm, annotations string) string {
	return `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"name": "` + name + `", "annotations": {` + annotations + `}},
		"spec": {"virtualMachineRef": {"namespace": "` + namespace + `", "name": "` + vm + `"}}}`
}

// TestCapturesThatWait has users with edit order captures of VMs that others create later.
func TestCapturesThatWait(t *testing.T) {
	const whose = `{.metadata.annotations.template\.kubevirt\.io/written-by}`
	finance, space := harness.Namespace(t, stencil.Plane, "finance"), harness.Namespace(t, stencil.Plane, "captures")
	source := rbacv1.PolicyRule{APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplaterequests/source"}, Verbs: []string{"create"}}
	disks := gen.Permits(space, rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes"}, Verbs: []string{"create"}})
	eve := harness.User(t, stencil.Plane, "eve-of-captures", gen.Role(space, "edit"), disks, gen.Permits(finance, source))
	other := harness.User(t, stencil.Plane, "other-of-captures", gen.Role(space, "edit"), disks)
	in := func(as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
		t.Helper()
		return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In(space, arguments)...)
	}
	must := func(as *controlplane.User, stdin string, arguments ...string) string {
		t.Helper()
		return harness.Must(t, stencil.Plane, as, stdin, harness.In(space, arguments)...).Stdout
	}
	reaches := func(name, condition, want string) {
		t.Helper()
		harness.Eventually(t, "request "+name+" has "+condition+" "+want, func() error {
			if got := in(eve, "", "get", "vmtr", name, "-o", `jsonpath={.status.conditions[?(@.type=="`+condition+`")]}`); !strings.Contains(got.Stdout, want) {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
	}
	create := func(name string) {
		t.Helper()
		vm := gen.Manifest(gen.VM(name, gen.RunStrategy("Halted"), gen.SmallSpec(), gen.CloudInit("init", "password: hunter2")))
		harness.Must(t, stencil.Plane, nil, vm, "create", "-n", finance, "-f", "-")
	}
	for _, name := range []string{"later", "again", "replaced"} {
		must(eve, request(name, finance, name, ""), "create", "-f", "-")
		reaches(name, "Progressing", "WaitingForMachine")
	}

	t.Run("whose right lasts", func(t *testing.T) {
		must(eve, request("lasting", finance, "lasting", ""), "create", "-f", "-")
		create("lasting")
		reaches("lasting", "Ready", `"status":"True"`)
		if template := must(nil, "", "get", "vmt", "lasting", "-o", "json"); !strings.Contains(template, "hunter2") {
			t.Errorf("the template is %s", template)
		}
	})
	t.Run("with the name of another user", func(t *testing.T) {
		must(other, request("own", space, "own", ""), "create", "--dry-run=server", "-f", "-")
		forged := `"template.kubevirt.io/written-by": "1 system:admin system:masters"`
		must(eve, request("forged", finance, "forged", forged), "create", "-f", "-")
		if got := must(eve, "", "get", "vmtr", "forged", "-o", "jsonpath="+whose); !strings.HasPrefix(got, "1 "+eve.Name+" ") {
			t.Errorf("it is created by %q", got)
		}
		const denied = "annotation template.kubevirt.io/written-by names the user who wrote the specification, and is written for the user of the request only"
		wantDenied(t, in(eve, "", "annotate", "--overwrite", "vmtr", "replaced", "template.kubevirt.io/written-by=1 system:admin system:masters"), "forbidden", denied)
		stored := must(eve, "", "get", "vmtr", "replaced", "-o", "json")
		wantDenied(t, in(eve, strings.Replace(stored, "1 "+eve.Name, "1 "+other.Name, 1), "replace", "-f", "-"), "forbidden", denied)
	})
	t.Run("made again under the name by who may not", func(t *testing.T) {
		must(eve, "", "delete", "vmtr", "again")
		for _, arguments := range [][]string{{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}} {
			wantDenied(t, in(other, request("again", finance, "again", ""), arguments...), "User is not allowed to use VirtualMachine "+finance+"/again as the source")
		}
	})
	t.Run("whose right is revoked", func(t *testing.T) {
		harness.Revoke(t, stencil.Plane, eve, finance, "create", "virtualmachinetemplaterequests.template.kubevirt.io", "--subresource=source")
		create("later")
		reaches("later", "Ready", "NotPermitted")
		reaches("later", "Ready", "the user who created it may not create virtualmachinetemplaterequests/source "+finance+"/later: create the request again when that is permitted")
	})
	t.Run("whose record is removed", func(t *testing.T) {
		must(eve, "", "annotate", "vmtr", "replaced", "template.kubevirt.io/written-by-")
		create("replaced")
		reaches("replaced", "Ready", "who created it is not recorded")
	})
	if got := harness.Must(t, stencil.Plane, nil, "", "get", "vmsnapshot", "-n", finance, "-o", "name").Stdout; got != "" {
		t.Errorf("there are %s", got)
	}
	if got := must(nil, "", "get", "vmt", "-o", "name"); strings.TrimSpace(got) != "virtualmachinetemplate.template.kubevirt.io/lasting" {
		t.Errorf("there are %s", got)
	}
}
