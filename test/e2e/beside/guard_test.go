package beside_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/harness"
)

// TestDefinitionsAreNotDeletedByMistake deletes a definition in a dry run, as the administrator and as virt-operator, which has the permission.
func TestDefinitionsAreNotDeletedByMistake(t *testing.T) {
	const denied = "all templates of the cluster are deleted with this definition: to delete it nevertheless, first run kubectl annotate crd %s stencil.kubevirt.io/allow-deletion=true"
	admin(t, "", "create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin", "--serviceaccount=kubevirt:kubevirt-operator")
	for _, as := range []string{"", "--as=system:serviceaccount:kubevirt:kubevirt-operator"} {
		for _, name := range []string{definition, "virtualmachinetemplaterequests.template.kubevirt.io"} {
			arguments := []string{"delete", "crd", name, "--dry-run=server"}
			if as != "" {
				arguments = append(arguments, as)
			}
			got := harness.Kubectl(t, stage.Plane, nil, "", arguments...)
			if got.Code == 0 || !strings.Contains(got.Stderr, fmt.Sprintf(denied, name)) {
				t.Errorf("%v: exit code %d:\n%s", arguments, got.Code, got.Stderr)
			}
		}
	}
	for _, selector := range []string{"--all", "-l app.kubernetes.io/instance=stencil"} {
		got := harness.Kubectl(t, stage.Plane, nil, "", append([]string{"delete", "crd", "--dry-run=server"}, strings.Fields(selector)...)...)
		if !strings.Contains(got.Stderr, fmt.Sprintf(denied, definition)) {
			t.Errorf("%s: exit code %d:\n%s", selector, got.Code, got.Stderr)
		}
	}

	// Other values permit nothing; the annotation does.
	for value, permitted := range map[string]bool{"false": false, "": false, "true": true} {
		admin(t, "", "annotate", "crd", definition, "stencil.kubevirt.io/allow-deletion="+value, "--overwrite")
		got := harness.Kubectl(t, stage.Plane, nil, "", "delete", "crd", definition, "--dry-run=server")
		if (got.Code == 0) != permitted {
			t.Errorf("%q: exit code %d:\n%s", value, got.Code, got.Stderr)
		}
	}
	admin(t, "", "annotate", "crd", definition, "stencil.kubevirt.io/allow-deletion-")
	// Definitions of others are theirs.
	if got := harness.Kubectl(t, stage.Plane, nil, "", "delete", "crd", "kubevirts.kubevirt.io", "--dry-run=server"); got.Code != 0 {
		t.Errorf("another definition: %s", got.Stderr)
	}
}
