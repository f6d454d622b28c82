package transfers_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// ledger creates the disk that attackers want, in a namespace in which they have no right, and returns the namespace.
func ledger(t *testing.T) string {
	t.Helper()
	finance := open(t)
	finance.machine(t, content(9))
	return finance.namespace
}

// dataSource returns a DataSource that leads to a claim or to another DataSource.
func dataSource(name, kind, namespace, to string) string {
	return fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": %q}, "spec": {"source": {%q: {"namespace": %q, "name": %q}}}}`, name, kind, namespace, to)
}

// template creates the template golden, whose only disk has this source.
func (s *shop) template(t *testing.T, source string) {
	t.Helper()
	s.does(t, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "golden"}, "spec": {
		"parameters": [{"name": "NAME", "value": "x"}], "virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {"runStrategy": "Halted",
		"dataVolumeTemplates": [{"metadata": {"name": "${NAME}-root"}, "spec": {`+source+`, "storage": {"resources": {"requests": {"storage": "64Mi"}}}}}],
		"template": {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
			"volumes": [{"name": "root", "dataVolume": {"name": "${NAME}-root"}}]}}}}}}`, "apply", "-f", "-")
}

// copied lists the DataVolumes of the namespace that Stencil has created.
func (s *shop) copied(t *testing.T) string {
	t.Helper()
	return s.does(t, "", "get", "datavolumes", "-l", "template.kubevirt.io/transfer", "-o", "jsonpath={.items[*].spec}")
}

// TestAnExportIsNoWayToDisksOfOthers exports, as a user with edit in one namespace, what leads to a disk of another one.
func TestAnExportIsNoWayToDisksOfOthers(t *testing.T) {
	t.Parallel()
	finance := ledger(t)
	for name, tc := range map[string]struct {
		objects []string
		source  string
		// replaced is where the DataSource mine leads after the export was created.
		replaced string
	}{
		"by a DataSource of their own": {objects: []string{dataSource("mine", "pvc", finance, "web-root")}, source: `"sourceRef": {"kind": "DataSource", "name": "mine"}`},
		"by two DataSources of their own": {
			objects: []string{dataSource("mine", "dataSource", "$NAMESPACE", "other"), dataSource("other", "pvc", finance, "web-root")},
			source:  `"sourceRef": {"kind": "DataSource", "name": "mine"}`,
		},
		"by the claim itself": {source: `"source": {"pvc": {"namespace": "` + finance + `", "name": "web-root"}}`},
		"by a DataSource that changes while the export begins": {
			objects: []string{dataSource("mine", "pvc", "$NAMESPACE", "absent")}, source: `"sourceRef": {"kind": "DataSource", "name": "mine"}`,
			replaced: dataSource("mine", "pvc", finance, "web-root"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for _, object := range tc.objects {
				s.does(t, strings.ReplaceAll(object, "$NAMESPACE", s.namespace), "create", "-f", "-")
			}
			s.template(t, tc.source)
			s.exports(t, "loot", "")
			if tc.replaced != "" {
				s.does(t, tc.replaced, "apply", "-f", "-")
			}
			s.reaches(t, "vmte", "loot", "{.status.phase}", "Failed")
			got := s.condition(t, "vmte", "loot")
			want := "SourceDenied: the disk root of the template comes from namespace " + finance + ", which spec.sourceNamespaces does not name: create an export that names it"
			if got != want && (tc.replaced == "" || got != "TemplateUnusable: the disk root cannot be copied: PersistentVolumeClaim "+s.namespace+"/absent does not exist") {
				t.Errorf("got %s, want %s", got, want)
			}
			if copied := s.copied(t); copied != "" {
				t.Errorf("Stencil copies %s", copied)
			}
		})
	}
	t.Run("by naming the namespace without a right in it", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.template(t, `"source": {"pvc": {"namespace": "`+finance+`", "name": "web-root"}}`)
		got := harness.Kubectl(t, stencil.Plane, s.owner, `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "metadata": {"name": "loot"},
			"spec": {"templateRef": {"name": "golden"}, "sourceNamespaces": ["`+finance+`"]}}`, "create", "-f", "-", "-n", s.namespace)
		if want := "User is not allowed to copy volumes of namespace " + finance; got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("got %s%s", got.Stdout, got.Stderr)
		}
	})
}

// TestDisksOfListedNamespacesAreExported exports a disk of another namespace as a user who may copy it: after the cluster admin listed the namespace, and not before.
func TestDisksOfListedNamespacesAreExported(t *testing.T) {
	t.Parallel()
	golden, s := open(t), open(t)
	disk := content(10)
	golden.machine(t, disk)
	harness.Grant(t, stencil.Plane, s.owner, golden.namespace, rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"datavolumes/source"}, Verbs: []string{"create"}})
	golden.does(t, dataSource("image", "pvc", golden.namespace, "web-root"), "create", "-f", "-")
	s.does(t, dataSource("mine", "dataSource", golden.namespace, "image"), "create", "-f", "-")
	s.template(t, `"sourceRef": {"kind": "DataSource", "name": "mine"}`)
	named := `, "sourceNamespaces": ["` + golden.namespace + `"]`

	s.exports(t, "early", named)
	s.reaches(t, "vmte", "early", "{.status.phase}", "Failed")
	if got, want := s.condition(t, "vmte", "early"), "SourceDenied: the disk root is not copied from namespace "+golden.namespace+": a cluster admin can list the namespace in the chart value transfers.sourceNamespaces: "; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	// What the chart creates for a listed namespace, which would have to exist when it is installed.
	harness.Must(t, stencil.Plane, nil, "", "create", "rolebinding", "stencil-transfers-sources", "-n", golden.namespace, "--clusterrole=stencil-transfers-sources", "--serviceaccount="+install.Namespace+":stencil-transfers")
	offered := s.export(t, "out", named)
	if copied := s.copied(t); !strings.Contains(copied, `"pvc":{"name":"web-root","namespace":"`+golden.namespace+`"}`) || strings.Contains(copied, "sourceRef") {
		t.Errorf("Stencil copies %s", copied)
	}
	if whole := offered.download(t); len(whole) == 0 || bytes.Equal(whole, disk) {
		t.Errorf("the package has %d bytes", len(whole))
	}
}

// TestAStolenTokenOfTheTransferAccount writes, with the rights of the account, what no transfer needs. The manager is not asked.
func TestAStolenTokenOfTheTransferAccount(t *testing.T) {
	t.Parallel()
	finance, s := ledger(t), open(t)
	thief := harness.User(t, stencil.Plane, "system:serviceaccount:"+install.Namespace+":stencil-transfers")
	const owned = `"labels": {"template.kubevirt.io/transfer": "u-1"}, "ownerReferences": [{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateExport", "name": "x", "uid": "u-1"}]`
	s.does(t, dataSource("mine", "pvc", finance, "web-root"), "create", "-f", "-")
	s.does(t, dataSource("own", "pvc", s.namespace, "web-root"), "create", "-f", "-")
	refused(t, thief, s.namespace, "a DataSource of another namespace", `"sourceRef": {"kind": "DataSource", "name": "mine"}`, owned, "insufficient permissions in clone source namespace")
	refused(t, thief, s.namespace, "a DataSource", `"sourceRef": {"kind": "DataSource", "name": "own"}`, owned, "creates DataVolumes only that copy one claim or VolumeSnapshot")
	refused(t, thief, s.namespace, "a download", `"source": {"http": {"url": "https://example.com/a"}}`, owned, "creates DataVolumes only that copy one claim or VolumeSnapshot")
	refused(t, thief, s.namespace, "a claim of another namespace", `"source": {"pvc": {"namespace": "`+finance+`", "name": "web-root"}}`, owned, "insufficient permissions in clone source namespace")
	refused(t, thief, s.namespace, "no transfer", `"source": {"pvc": {"namespace": "`+s.namespace+`", "name": "web-root"}}`, `"labels": {}`, "with its UID in label template.kubevirt.io/transfer")
}

func refused(t *testing.T, user *controlplane.User, namespace, what, source, metadata, want string) {
	t.Helper()
	got := harness.Kubectl(t, stencil.Plane, user, `{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "x", `+metadata+`}, "spec": {`+source+`, "storage": {}}}`, "create", "-n", namespace, "-f", "-")
	if got.Code == 0 || !strings.Contains(got.Stderr, want) {
		t.Errorf("%s: %s%s", what, got.Stdout, got.Stderr)
	}
}

// TestAnImportThatWaitsDoesWhatItsUserMayDoThen revokes the rights of a user whose import waits for approval, which another user approves.
func TestAnImportThatWaitsDoesWhatItsUserMayDoThen(t *testing.T) {
	t.Parallel()
	s := open(t)
	ova, _ := appliance(t)
	colleague := harness.User(t, stencil.Plane, s.namespace+"-colleague", gen.Role(s.namespace, "edit"))
	const forged = `{"metadata": {"annotations": {"template.kubevirt.io/written-by": "1 system:admin system:masters"}}}`
	for _, name := range []string{"kept", "revoked"} {
		s.imports(t, name, `{"source": {"http": {"url": "`+offer(t, name+".ova", ova)+`"}}, "approval": "Manual"}`)
		s.reaches(t, "vmti", name, "{.status.phase}", "Waiting")
		got := harness.Kubectl(t, stencil.Plane, s.owner, "", "patch", "vmti", name, "-n", s.namespace, "--type=merge", "-p", forged)
		if want := "annotation template.kubevirt.io/written-by names the user who wrote the specification"; got.Code == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("the record of another user: %s%s", got.Stdout, got.Stderr)
		}
	}
	approve := func(name string) {
		digest := s.does(t, "", "get", "vmti", name, "-o", "jsonpath={.status.plan.digest}")
		harness.Must(t, stencil.Plane, colleague, "", "patch", "vmti", name, "-n", s.namespace, "--type=merge", "-p", `{"spec": {"approvedPlan": "`+digest+`"}}`)
	}
	approve("kept")
	s.reaches(t, "vmti", "kept", "{.status.phase}", "Succeeded")
	owner := s.owner
	harness.Revoke(t, stencil.Plane, owner, s.namespace, "create", "virtualmachinetemplates.template.kubevirt.io")
	s.owner = colleague
	approve("revoked")
	s.reaches(t, "vmti", "revoked", "{.status.phase}", "Failed")
	if got, want := s.condition(t, "vmti", "revoked"), "NotPermitted: the user who created it may not create virtualmachinetemplates in "+s.namespace+": create the import again when that is permitted"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.nothing(t, s.uid(t, "vmti", "revoked"))
}
