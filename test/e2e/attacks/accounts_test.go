package attacks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// TestAStolenTokenOfAnAccountDoesNothingElse writes, with the rights of each account that the manager impersonates, what no user has ordered. The manager is
// not asked: RBAC or an admission policy denies it.
func TestAStolenTokenOfAnAccountDoesNothingElse(t *testing.T) {
	namespace := namespaces.Of(t)
	mustKubectl(t, mallory, vm("victim", "kiosks/kiosk"), "create", "-f", "-")
	mustKubectl(t, nil, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"}}`, "create", "-f", "-")
	mustKubectl(t, nil, `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "theirs"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`, "create", "-f", "-")
	uid := mustKubectl(t, nil, "", "get", "vm", "victim", "-o", "jsonpath={.metadata.uid}").Stdout
	owner := fmt.Sprintf(`"ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "victim", "uid": %q, "controller": true, "blockOwnerDeletion": true}]`, uid)
	volume := func(metadata, source string) string {
		return `{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "loot", ` + metadata + `}, "spec": {` + source + `, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}`
	}
	secret := func(metadata string) string {
		return `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "loot", ` + metadata + `}}`
	}
	labelled := owner + fmt.Sprintf(`, "labels": {"objects.template.kubevirt.io/owner": %q}`, uid)
	const (
		http     = `"source": {"http": {"url": "https://example.com/x"}}`
		foreign  = `"source": {"pvc": {"namespace": "kube-system", "name": "x"}}`
		indirect = `"sourceRef": {"kind": "DataSource", "namespace": "golden", "name": "fedora"}`
	)
	create := []string{"create", "--dry-run=server", "--validate=false", "-f", "-"}
	really := []string{"create", "-f", "-"}
	patch := func(kind, name, change string) []string {
		return []string{"patch", kind, name, "--dry-run=server", "--type=merge", "--patch", change}
	}
	type attack struct {
		what      string
		stdin     string
		arguments []string
	}
	for account, attacks := range map[string][]attack{
		"stencil-disks": {
			{"a download", volume(owner, http), create},
			{"a copy for no VM", volume(`"labels": {}`, foreign), create},
			{"what a DataSource leads to", volume(owner, indirect), create},
			{"the disk of another", "", []string{"delete", "pvc", "theirs", "--dry-run=server"}},
		},
		"stencil-images": {
			{"a copy of another namespace's disk", volume(`"labels": {}`, foreign), create},
			{"a download for no golden image", volume(`"labels": {}`, http), create},
			{"a DataSource of nobody", `{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "fedora"}, "spec": {"source": {"pvc": {"namespace": "kube-system", "name": "x"}}}}`, create},
			{"the claim of another", "", []string{"delete", "pvc", "theirs", "--dry-run=server"}},
			{"a Secret", "", []string{"get", "secret", "theirs"}},
		},
		"stencil-objects": {
			// In a dry run it tries objects before their VM exists.
			{"a Secret that no VM owns", secret(`"labels": {}`), really},
			{"a Secret that another kind owns", secret(strings.Replace(labelled, "VirtualMachine", "ReplicaSet", 1)), really},
			{"a Secret that a VM does not control", secret(strings.Replace(labelled, `"controller": true`, `"controller": false`, 1)), really},
			{"a Secret of another VM than its label says", secret(strings.Replace(labelled, uid, "u-1", 1)), really},
			{"a role", `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "loot"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]}`, create},
			{"another VM's specification", "", patch("vm", "victim", `{"spec": {"runStrategy": "Always"}}`)},
			{"another VM's labels", "", patch("vm", "victim", `{"metadata": {"labels": {"team": "x"}}}`)},
			{"a Secret that exists", "", []string{"get", "secret", "theirs"}},
		},
		"stencil-apiserver": {
			{"a VM of no template", gen.Manifest(gen.VM("loot", gen.SmallSpec())), create},
			{"a VM for nobody", vm("loot", "kiosks/kiosk"), create},
			{"another VM's specification", "", patch("vm", "victim", `{"spec": {"runStrategy": "Always"}}`)},
			{"a VM of another", "", []string{"delete", "vm", "victim", "--dry-run=server"}},
		},
		"stencil-policy-sources": {
			{"a policy", `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "VirtualMachinePolicy", "metadata": {"name": "loot"}, "spec": {"rego": "package a"}}`, create},
			{"an approval", `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "loot"}, "spec": {"namespaces": ["` + namespace + `"]}}`, create},
			{"a Secret", "", []string{"get", "secret", "theirs"}},
		},
		"stencil-revisions": {
			{"another VM's specification", "", patch("vm", "victim", `{"spec": {"runStrategy": "Always"}}`)},
			{"a ControllerRevision", `{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "loot"}, "revision": 1}`, create},
			{"a Secret", "", []string{"get", "secret", "theirs"}},
		},
	} {
		t.Run(account, func(t *testing.T) {
			thief := harness.User(t, stencil.Plane, "system:serviceaccount:"+install.Namespace+":"+account, gen.Group("system:serviceaccounts"), gen.Group("system:serviceaccounts:"+install.Namespace))
			for _, attack := range attacks {
				out := harness.Kubectl(t, stencil.Plane, thief, attack.stdin, harness.In(namespace, attack.arguments)...)
				if out.Code == 0 || !strings.Contains(strings.ToLower(out.Stderr), "forbidden") && !strings.Contains(out.Stderr, "denied the request") {
					t.Errorf("%s: exit code %d\n%s%s", attack.what, out.Code, out.Stdout, out.Stderr)
				}
			}
		})
	}
}
