package attacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

const kubevirtController = "system:serviceaccount:kubevirt:kubevirt-controller"

// storage is a user with the role edit in a namespace, and what CDI adds to it.
func storage(t *testing.T, name, space string) *controlplane.User {
	t.Helper()
	user := harness.User(t, stencil.Plane, name, gen.Role(space, "edit"), gen.UsesTemplates("kiosks"),
		gen.Permits(space, rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}))
	return user
}

// bench is a namespace in which disks are created.
type bench struct {
	space string
	// insider makes disks and VMs. cdi acts as CDI does, which this plane does not have.
	insider, cdi *controlplane.User
}

func newBench(t *testing.T, name, space string) bench {
	t.Helper()
	cdi := harness.User(t, stencil.Plane, "system:serviceaccount:cdi:cdi-sa", gen.Permits("", install.Bypass()), gen.Permits(space,
		rbacv1.PolicyRule{APIGroups: []string{"cdi.kubevirt.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"*"}}))
	return bench{space: space, insider: storage(t, name, space), cdi: cdi}
}

func (b bench) kubectl(t *testing.T, as *controlplane.User, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, stencil.Plane, as, stdin, harness.In(b.space, arguments)...)
}

func (b bench) must(t *testing.T, as *controlplane.User, stdin string, arguments ...string) string {
	t.Helper()
	return strings.TrimSpace(harness.Must(t, stencil.Plane, as, stdin, harness.In(b.space, arguments)...).Stdout)
}

// create creates a VM that is to run.
func (b bench) create(t *testing.T, name string) controlplane.Result {
	t.Helper()
	return b.kubectl(t, b.insider, vm(name, "kiosks/stand", gen.RunStrategy("Always")), "create", "-f", "-")
}

// seen waits until the creation of a VM is denied for a disk that exists: the webhook finds it by a watch. A VM that is faster does not start.
func (b bench) seen(t *testing.T, name, why string) {
	t.Helper()
	harness.Eventually(t, "the disk of VM "+name+" is seen", func() error {
		if out := b.kubectl(t, b.insider, vm(name, "kiosks/stand", gen.RunStrategy("Always")), "create", "--dry-run=server", "-f", "-"); !strings.Contains(out.Stderr, why) {
			return errors.New(out.Stdout + out.Stderr)
		}
		return nil
	})
}

// volume is a manifest of a DataVolume.
func volume(name string, labels ...gen.Modifier) string {
	return gen.Manifest(gen.DataVolume(name, `{registry: {url: "docker://evil.example.com/rootkit"}}`, labels...))
}

// claim is a manifest of a PersistentVolumeClaim.
func claim(name string, labels ...gen.Modifier) string {
	return gen.Manifest(gen.Claim(name, labels...))
}

// populate does what CDI does for a DataVolume: it creates the claim, with the labels of the DataVolume, or adopts an existing one unchanged.
func (b bench) populate(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, "DataVolume "+name+" exists", func() error {
		if out := b.kubectl(t, nil, "", "get", "dv", name); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	if b.kubectl(t, nil, "", "get", "pvc", name).Code != 0 {
		var labels []gen.Modifier
		if created := b.must(t, nil, "", "get", "dv", name, "-o", `jsonpath={.metadata.labels.kubevirt\.io/created-by}`); created != "" {
			labels = append(labels, gen.Label("kubevirt.io/created-by", created))
		}
		b.must(t, b.cdi, claim(name, labels...), "create", "-f", "-")
	}
	b.must(t, b.cdi, "", "patch", "dv", name, "--type=merge", "--subresource=status", "-p", `{"status":{"phase":"Succeeded"}}`)
}

// starts waits for the instance of a VM.
func (b bench) starts(t *testing.T, name string) {
	t.Helper()
	harness.Eventually(t, "VM "+name+" starts", func() error {
		if out := b.kubectl(t, nil, "", "get", "vmi", name); out.Code != 0 {
			return errors.New(out.Stderr + b.kubectl(t, nil, "", "get", "events,dv,pvc", "-o", "wide").Stdout)
		}
		return nil
	})
}

// stays waits until virt-controller has been denied an instance for a reason, and checks that there is none.
func (b bench) stays(t *testing.T, name, why string) {
	t.Helper()
	harness.Eventually(t, "virt-controller reports that VM "+name+" cannot start", func() error {
		events := b.must(t, nil, "", "get", "events", "--field-selector=involvedObject.kind=VirtualMachine,reason=FailedCreate,involvedObject.name="+name, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(events, why) {
			return errors.New("it reports " + events + b.kubectl(t, nil, "", "get", "events,vmi,dv,pvc").Stdout)
		}
		return nil
	})
	if out := b.kubectl(t, nil, "", "get", "vmi", name); out.Code == 0 {
		t.Errorf("it runs: %s", out.Stdout)
	}
}

// hold prevents virt-controller from creating DataVolumes until it is released, so that a user can create a disk of the same name first.
func (b bench) hold(t *testing.T) (release func()) {
	t.Helper()
	manifest := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: hold-SPACE}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: SPACE}}
    resourceRules: [{apiGroups: [cdi.kubevirt.io], apiVersions: [v1beta1], operations: [CREATE], resources: [datavolumes]}]
  validations: [{expression: "request.userInfo.username != 'USER'", message: "virt-controller is too late"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: hold-SPACE}
spec: {policyName: hold-SPACE, validationActions: [Deny]}
`
	manifest = strings.NewReplacer("SPACE", b.space, "USER", kubevirtController).Replace(manifest)
	b.must(t, nil, manifest, "apply", "-f", "-")
	released := false
	release = func() {
		if !released {
			released = true
			b.must(t, nil, manifest, "delete", "-f", "-")
		}
	}
	t.Cleanup(release)
	harness.Eventually(t, "virt-controller is held", func() error {
		if out := b.kubectl(t, nil, volume("probe"), "create", "--dry-run=server", "--as="+kubevirtController, "-f", "-"); !strings.Contains(out.Stderr, "too late") {
			return errors.New(out.Stdout + out.Stderr)
		}
		return nil
	})
	return release
}

// TestADiskBelongsToItsMachine has a user with the roles edit of Kubernetes, KubeVirt and CDI create the disk of a VM before KubeVirt does.
func TestADiskBelongsToItsMachine(t *testing.T) {
	b := newBench(t, "insider-of-disks", namespaces.Of(t))
	forged := gen.Label("kubevirt.io/created-by", "11111111-2222-3333-4444-555555555555")
	const lacks = `it lacks the label kubevirt.io/created-by, which KubeVirt gives to disks that it creates`

	t.Run("a VM starts with the disk that KubeVirt creates", func(t *testing.T) {
		if out := b.create(t, "web"); out.Code != 0 {
			t.Fatal(out.Stderr)
		}
		b.populate(t, "web-root")
		b.starts(t, "web")
		uid := b.must(t, nil, "", "get", "vm", "web", "-o", "jsonpath={.metadata.uid}")
		if got := b.must(t, nil, "", "get", "pvc", "web-root", "-o", `jsonpath={.metadata.labels.kubevirt\.io/created-by}`); got != uid {
			t.Errorf("the claim was created by %q, want %q", got, uid)
		}
		if out := b.create(t, "web"); !strings.Contains(out.Stderr, "already exists") {
			t.Errorf("to create it again answers %s%s", out.Stdout, out.Stderr)
		}
	})

	t.Run("the disk before the VM", func(t *testing.T) {
		for kind, manifest := range map[string]string{"DataVolume": volume("early-root"), "PersistentVolumeClaim": claim("early-root")} {
			b.must(t, b.insider, manifest, "create", "-f", "-")
			b.seen(t, "early", kind+` "early-root" exists already`)
			wantDenied(t, b.create(t, "early"), `it is not approved in namespace "`+b.space+`": spec.dataVolumeTemplates[0].metadata.name: `+kind+` "early-root" exists already, `+
				`and the VirtualMachine would start from it: delete it or choose another name, or ask a cluster admin to allow it with existingDisks (approval "vault")`)
			b.must(t, b.insider, manifest, "delete", "-f", "-")
		}
		if out := b.kubectl(t, nil, "", "get", "vm", "early"); out.Code == 0 {
			t.Errorf("it exists: %s", out.Stdout)
		}
	})

	t.Run("a label that says who created it", func(t *testing.T) {
		const cron = "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataImportCron\nmetadata: {name: cron, labels: {kubevirt.io/created-by: 11111111-2222-3333-4444-555555555555}}\nspec:\n  managedDataSource: early\n  schedule: \"* * * * *\"\n" +
			"  template: {spec: {source: {registry: {url: \"docker://evil.example.com/rootkit\"}}, storage: {resources: {requests: {storage: 1Gi}}}}}\n"
		for name, manifest := range map[string]string{
			"of a DataVolume":                       volume("forged", forged),
			"of a claim":                            claim("forged", forged),
			"that CDI copies from a DataImportCron": cron,
		} {
			t.Run(name, func(t *testing.T) {
				wantDenied(t, b.kubectl(t, b.insider, manifest, "create", "-f", "-"), "forbidden", "label kubevirt.io/created-by records which VirtualMachine a disk was created for")
			})
		}
	})

	t.Run("the label later", func(t *testing.T) {
		b.must(t, b.insider, volume("later"), "create", "-f", "-")
		b.must(t, b.insider, claim("later"), "create", "-f", "-")
		label := "kubevirt.io/created-by=" + b.must(t, nil, "", "get", "vm", "web", "-o", "jsonpath={.metadata.uid}")
		for _, args := range [][]string{
			{"label", "dv", "later", label}, {"label", "pvc", "later", label},
			{"label", "dv", "web-root", "--overwrite", "kubevirt.io/created-by=other"},
			{"label", "pvc", "web-root", "kubevirt.io/created-by-"},
		} {
			wantDenied(t, b.kubectl(t, b.insider, "", args...), "forbidden", "cannot be added, changed or removed later")
		}
		b.must(t, b.insider, "", "label", "pvc", "web-root", "backup=nightly")
		// The label that CDI derives from KUBEVIRT_IO_CREATED_BY in the environment of an imported image.
		wantDenied(t, b.kubectl(t, b.cdi, "", "label", "pvc", "later", label), "forbidden", "import an image without KUBEVIRT_IO_CREATED_BY")
	})

	t.Run("the disk between the VM and KubeVirt", func(t *testing.T) {
		release := b.hold(t)
		for name, manifest := range map[string]string{"raced-volume": volume("raced-volume-root"), "raced-claim": claim("raced-claim-root")} {
			if out := b.create(t, name); out.Code != 0 {
				t.Fatal(out.Stderr)
			}
			b.must(t, b.insider, manifest, "create", "-f", "-")
		}
		release()
		for _, name := range []string{"raced-volume", "raced-claim"} {
			b.populate(t, name+"-root")
			b.stays(t, name, fmt.Sprintf(`spec.volumes[name=root]: claim "%s-root" was not created for VirtualMachine "%s": %s; `+
				`delete the claim and the DataVolume of this name, so that KubeVirt creates them, or ask a cluster admin to allow it with existingDisks (approval "vault")`, name, name, lacks))
		}
		// The instructions of the denial.
		b.must(t, b.insider, "", "delete", "dv,pvc", "raced-claim-root")
		b.populate(t, "raced-claim-root")
		b.starts(t, "raced-claim")
	})

	t.Run("the disk that a deleted VM has left behind", func(t *testing.T) {
		if out := b.create(t, "left"); out.Code != 0 {
			t.Fatal(out.Stderr)
		}
		b.populate(t, "left-root")
		b.starts(t, "left")
		b.must(t, b.insider, "", "delete", "vm", "left", "--cascade=orphan")
		// The garbage collector deletes the DataVolume, and leaves the claim, if it learns of it after the VM is gone.
		wantDenied(t, b.create(t, "left"), `"left-root" exists already`)
	})
}

// TestExistingDisksAreAllowedWhereEachApprovalSaysSo restores a disk and creates its VM over it.
func TestExistingDisksAreAllowedWhereEachApprovalSaysSo(t *testing.T) {
	space := harness.Namespace(t, stencil.Plane, "restores")
	b := newBench(t, "restorer", space)
	approve := func(name, disks string) {
		t.Helper()
		b.must(t, nil, gen.Manifest(gen.Approval(name, gen.Governs(space), gen.Approves("kiosks/stand"), gen.Overrides("spec.runStrategy"), gen.Spec("existingDisks: "+disks))), "apply", "-f", "-")
		t.Cleanup(func() { b.must(t, nil, "", "delete", "templateapproval", name, "--ignore-not-found") })
	}
	approve("restores", "{policy: Allow, selector: {matchLabels: {restored: yes-of-course}}}")
	b.must(t, nil, "", "wait", "namespace/"+space, "--for=jsonpath={.metadata.labels.stencil\\.kubevirt\\.io/governed}=true")
	b.must(t, b.insider, claim("found-root"), "create", "-f", "-")
	b.must(t, b.insider, claim("restored-root", gen.Label("restored", "yes-of-course")), "create", "-f", "-")

	b.seen(t, "found", `PersistentVolumeClaim "found-root" exists already`)
	wantDenied(t, b.create(t, "found"), `PersistentVolumeClaim "found-root" exists already`)
	if out := b.create(t, "restored"); out.Code != 0 {
		t.Fatal(out.Stderr)
	}
	b.populate(t, "restored-root")
	b.starts(t, "restored")

	// Another approval of the namespace that does not allow it.
	approve("strict", "{}")
	b.must(t, b.insider, claim("second-root", gen.Label("restored", "yes-of-course")), "create", "-f", "-")
	harness.Eventually(t, "the second approval denies", func() error {
		out := b.kubectl(t, b.insider, vm("second", "kiosks/stand"), "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out.Stderr, `PersistentVolumeClaim "second-root" exists already`) || !strings.Contains(out.Stderr, `(approval "strict")`) {
			return errors.New(out.Stdout + out.Stderr)
		}
		return nil
	})
}

// TestADiskComesFromThePinnedContent replaces the source of the DataSource that an approved template names.
func TestADiskComesFromThePinnedContent(t *testing.T) {
	space := harness.Namespace(t, stencil.Plane, "pinned")
	b := newBench(t, "retargeter", space)
	b.must(t, nil, gen.Manifest(gen.Template("copy", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(),
		gen.DataVolumeDisk("root", "${NAME}-root", "sourceRef: {kind: DataSource, name: base}")))), "apply", "--namespace=kiosks", "-f", "-")
	t.Cleanup(func() { b.must(t, nil, "", "delete", "virtualmachinetemplate", "copy", "--namespace=kiosks") })
	uid := func(claim string) string {
		t.Helper()
		return b.must(t, nil, "", "get", "pvc", claim, "-o", "jsonpath={.metadata.uid}")
	}
	b.must(t, b.insider, claim("release-1"), "create", "-f", "-")
	b.must(t, b.insider, claim("rootkit"), "create", "-f", "-")
	source := func(target string) string {
		return "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataSource\nmetadata: {name: base}\nspec: {source: " + target + "}\n"
	}
	b.must(t, b.insider, source("{pvc: {name: release-1, namespace: "+space+"}}"), "apply", "-f", "-")
	approval := func(sources string) string {
		templates := gen.Spec("templates: [{namespace: kiosks, name: copy, sources: " + sources + "}, {namespace: kiosks, name: kiosk, sources: [{uid: none}]}]")
		return gen.Manifest(gen.Approval("pinned", gen.Governs(space), templates, gen.Overrides("spec.runStrategy")))
	}
	for sources, want := range map[string]string{
		"[{}]": "exactly one of uid and digest must be given",
		"[{uid: a, digest: 'sha256:" + strings.Repeat("0", 64) + "'}]": "exactly one of uid and digest must be given",
		"[{digest: 'sha256:0'}]": "spec.templates[0].sources[0].digest",
		"[]":                     "spec.templates[0].sources",
	} {
		wantDenied(t, b.kubectl(t, nil, approval(sources), "apply", "-f", "-"), want)
	}
	pinned := uid("release-1")
	b.must(t, nil, approval("[{uid: "+pinned+"}]"), "apply", "-f", "-")
	t.Cleanup(func() { b.must(t, nil, "", "delete", "templateapproval", "pinned") })
	b.must(t, nil, "", "wait", "templateapproval/pinned", "--for=condition=Active", "--timeout=60s")

	create := func(name, template string) controlplane.Result {
		t.Helper()
		return b.kubectl(t, b.insider, vm(name, template), "create", "-f", "-")
	}
	const objection = `spec.dataVolumeTemplates[0].spec.sourceRef: the content of the disk is none that is approved with template kiosks/copy: `
	harness.Eventually(t, "the approval holds", func() error {
		if out := create("first", "kiosks/copy"); out.Code != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	b.must(t, b.insider, source("{pvc: {name: rootkit, namespace: "+space+"}}"), "apply", "-f", "-")
	wantDenied(t, create("retargeted", "kiosks/copy"), objection+"PersistentVolumeClaim "+space+"/rootkit with UID "+uid("rootkit")+` (approval "pinned")`)

	b.must(t, b.insider, source("{pvc: {name: release-1, namespace: "+space+"}}"), "apply", "-f", "-")
	b.must(t, b.insider, "", "delete", "pvc", "release-1")
	wantDenied(t, create("deleted", "kiosks/copy"), objection+"PersistentVolumeClaim "+space+"/release-1 does not exist")
	b.must(t, b.insider, claim("release-1"), "create", "-f", "-")
	wantDenied(t, create("replaced", "kiosks/copy"), objection+"PersistentVolumeClaim "+space+"/release-1 with UID "+uid("release-1"))

	b.must(t, b.insider, "", "delete", "datasource", "base")
	wantDenied(t, create("gone", "kiosks/copy"), objection+"DataSource "+space+"/base does not exist")
	wantDenied(t, create("tagged", "kiosks/kiosk"), `spec.template.spec.volumes[0].containerDisk.image: the content of the disk is none that is approved with template kiosks/kiosk: `+
		`the image is not named by its digest, as in NAME@sha256:…`)
	// Existing VMs remain usable.
	b.must(t, b.insider, "", "patch", "vm", "first", "--type=merge", "-p", `{"spec":{"runStrategy":"Manual"}}`)
}
