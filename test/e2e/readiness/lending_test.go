package readiness_test

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

// lends is the label of a template that lends its disks.
var lends = gen.Label("stencil.kubevirt.io/disk-access", "Lend")

// loan is a namespace of golden images with two filled claims, fedora and payroll, a DataSource fedora, and a namespace of a user who has
// permission to use its templates and no other permission there.
type loan struct {
	*stage
	golden, team string
	user         *controlplane.User
}

func (s *stage) loan(t *testing.T) *loan {
	t.Helper()
	l := &loan{stage: s, golden: s.namespace(t)}
	var err error
	if l.team, err = s.Plane.Namespace(t.Context(), "team"); err != nil {
		t.Fatal(err)
	}
	if l.user, err = gen.User(t.Context(), s.Plane, "user-"+l.team, gen.Role(l.team, "edit"), gen.UsesTemplates(l.golden)); err != nil {
		t.Fatal(err)
	}
	s.apply(t, l.golden, image("fedora"))
	s.apply(t, l.golden, image("payroll"))
	s.apply(t, l.golden, dataSource(l.golden, "fedora", "fedora"))
	l.filled(t, l.golden, "fedora")
	l.filled(t, l.golden, "payroll")
	return l
}

func (l *loan) filled(t *testing.T, namespace, dataVolume string) {
	t.Helper()
	l.eventually(t, "DataVolume "+dataVolume+" is filled", func() error {
		got := l.kubectl(t, nil, "", "get", "datavolume", dataVolume, "-n", namespace, "-o", "jsonpath={.status.phase}")
		if got.Stdout != "Succeeded" {
			all := l.kubectl(t, nil, "", "get", "vm,dv,pvc,events", "-n", namespace)
			return errors.New(got.Stdout + got.Stderr + all.Stdout)
		}
		return nil
	})
}

// publish stores a template as the owner, with one disk that is filled from a source in YAML.
func (l *loan) publish(t *testing.T, name, source string, modifiers ...gen.Modifier) {
	t.Helper()
	common := []gen.Modifier{gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(), gen.DataVolumeDisk("root", "${NAME}-root", source))}
	l.apply(t, l.golden, gen.Manifest(gen.Template(name, append(common, modifiers...)...)))
}

// create creates a VirtualMachine as the user. The template may have been stored a moment before.
func (l *loan) create(t *testing.T, name, template string, modifiers ...gen.Modifier) {
	t.Helper()
	manifest := gen.Manifest(gen.VM(name, append([]gen.Modifier{gen.FromTemplate(l.golden + "/" + template)}, modifiers...)...))
	l.eventually(t, "VM "+name+" is created", func() error {
		if got := l.kubectl(t, l.user, manifest, "create", "-n", l.team, "-f", "-"); got.Code != 0 {
			return errors.New(got.Stderr)
		}
		return nil
	})
}

// notLent waits for the event with this reason, and checks that the DataVolume does not exist.
func (l *loan) notLent(t *testing.T, vm, dataVolume, why string) {
	t.Helper()
	l.eventually(t, "VM "+vm+" reports that its disk is not lent", func() error {
		got := l.kubectl(t, l.user, "", "get", "events", "-n", l.team, "--field-selector=reason=DiskNotLent,involvedObject.name="+vm, "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(got.Stdout, why) {
			all := l.kubectl(t, nil, "", "get", "vm,dv,events", "-n", l.team)
			return errors.New(got.Stdout + got.Stderr + all.Stdout)
		}
		if !strings.Contains(got.Stdout, "kubectl create role copy-to-"+l.team+" -n ") {
			return errors.New("it does not name the command that grants the permission: " + got.Stdout)
		}
		return nil
	})
	if got := l.kubectl(t, nil, "", "get", "datavolume", dataVolume, "-n", l.team); got.Code == 0 {
		t.Errorf("DataVolume %s exists: %s", dataVolume, got.Stdout)
	}
}

func fromDataSource(namespace, name string) string {
	return fmt.Sprintf("{sourceRef: {kind: DataSource, namespace: %s, name: %s}, storage: {resources: {requests: {storage: 1Gi}}}}", namespace, name)
}

func fromClaim(namespace, name string) string {
	return fmt.Sprintf("{source: {pvc: {namespace: %s, name: %s}}, storage: {resources: {requests: {storage: 1Gi}}}}", namespace, name)
}

// TestTheDiskFollowsTheRightToUseTheTemplate tests with KubeVirt's and CDI's own controllers that verb use on a template is enough for a VM that
// starts, from a golden and from a captured template, and that nothing is left afterwards.
func TestTheDiskFollowsTheRightToUseTheTemplate(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	// The template has no label: the webhook adds it, because the writer may copy the disk.
	l.publish(t, "golden", fromDataSource(l.golden, "fedora"))

	starts := func(t *testing.T, vm string) {
		t.Helper()
		l.filled(t, l.team, vm+"-root")
		l.eventually(t, "VM "+vm+" starts", func() error {
			if got := l.kubectl(t, l.user, "", "get", "pods", "-n", l.team, "-l", "vm.kubevirt.io/name="+vm, "-o", "name"); got.Stdout == "" {
				return errors.New(got.Stderr + l.kubectl(t, nil, "", "get", "vm,vmi,dv,pvc,events", "-n", l.team).Stdout)
			}
			return nil
		})
		uid := s.must(t, "", "get", "vm", vm, "-n", l.team, "-o", "jsonpath={.metadata.uid}")
		claim := s.must(t, "", "get", "pvc", vm+"-root", "-n", l.team, "-o", `jsonpath={.metadata.labels.kubevirt\.io/created-by}`)
		if claim != uid {
			t.Errorf("the claim was created for %q, want %q", claim, uid)
		}
	}
	gone := func(t *testing.T, vm string) {
		t.Helper()
		harness.Must(t, s.Plane, l.user, "", "delete", "vm", vm, "-n", l.team)
		l.eventually(t, "nothing of VM "+vm+" is left", func() error {
			if got := s.must(t, "", "get", "vmi,dv,pvc,pods", "-n", l.team, "-o", "name"); got != "" {
				return errors.New(got)
			}
			return nil
		})
	}
	for _, account := range []string{"system:serviceaccount:" + l.team + ":default", l.user.Name} {
		if got := l.kubectl(t, nil, "", "auth", "can-i", "create", "datavolumes.cdi.kubevirt.io/source", "-n", l.golden, "--as", account); !strings.HasPrefix(got.Stdout, "no") {
			t.Errorf("%s may copy from the golden namespace itself: %s%s", account, got.Stdout, got.Stderr)
		}
	}

	t.Run("a golden template", func(t *testing.T) {
		l.create(t, "web", "golden", gen.RunStrategy("Always"))
		starts(t, "web")
		by := s.must(t, "", "get", "datavolume", "web-root", "-n", l.team, "-o", `jsonpath={.metadata.annotations.stencil\.kubevirt\.io/lent-by}`)
		if !strings.HasPrefix(by, l.golden+"/golden ") {
			t.Errorf("lent by %q", by)
		}
		t.Run("its disk is made again", func(t *testing.T) {
			before := s.must(t, "", "get", "datavolume", "web-root", "-n", l.team, "-o", "jsonpath={.metadata.uid}")
			s.must(t, "", "delete", "datavolume", "web-root", "-n", l.team)
			l.eventually(t, "there is another DataVolume", func() error {
				got := l.kubectl(t, nil, "", "get", "datavolume", "web-root", "-n", l.team, "-o", "jsonpath={.metadata.uid}")
				if got.Code != 0 || got.Stdout == before {
					return errors.New(got.Stdout + got.Stderr)
				}
				return nil
			})
			if by := s.must(t, "", "get", "datavolume", "web-root", "-n", l.team, "-o", `jsonpath={.metadata.annotations.stencil\.kubevirt\.io/lent-by}`); by == "" {
				t.Error("another controller made it")
			}
		})
		t.Run("after an outage of the manager", func(t *testing.T) {
			if err := s.StopManager(); err != nil {
				t.Fatal(err)
			}
			s.must(t, "", "delete", "datavolume", "web-root", "-n", l.team)
			if err := s.StartManager(); err != nil {
				t.Fatal(err)
			}
			l.filled(t, l.team, "web-root")
		})
		gone(t, "web")
	})
	t.Run("a governed namespace", func(t *testing.T) {
		s.must(t, gen.Manifest(gen.Approval(l.team, gen.Governs(l.team), gen.Approves(l.golden+"/golden"), gen.Overrides("spec.runStrategy"))), "apply", "-f", "-")
		t.Cleanup(func() { s.must(t, "", "delete", "templateapproval", l.team, "--ignore-not-found") })
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=true`)
		l.create(t, "approved", "golden", gen.RunStrategy("Always"))
		starts(t, "approved")
		got := l.kubectl(t, l.user, "", "label", "pvc", "approved-root", "-n", l.team, "kubevirt.io/created-by=other", "--overwrite")
		if got.Code == 0 || !strings.Contains(got.Stderr, "records which VirtualMachine a disk was created for") {
			t.Errorf("another user changes the label of the disk: %s%s", got.Stdout, got.Stderr)
		}
		gone(t, "approved")
		s.must(t, "", "delete", "templateapproval", l.team)
		s.must(t, "", "wait", "namespace/"+l.team, `--for=jsonpath={.metadata.labels.stencil\.kubevirt\.io/governed}=false`)
	})
	t.Run("a captured template", func(t *testing.T) {
		s.apply(t, l.golden, gen.Manifest(gen.VM("source", gen.SmallSpec(), gen.DataVolumeTemplate("source-root", "1Gi"))))
		l.filled(t, l.golden, "source-root")
		s.apply(t, l.golden, fmt.Sprintf(`{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplateRequest", "metadata": {"name": "captured"},
			"spec": {"virtualMachineRef": {"namespace": %q, "name": "source"}}}`, l.golden))
		s.must(t, "", "wait", "vmtr/captured", "-n", l.golden, "--for=condition=Ready", "--timeout=3m")
		l.create(t, "copy", "captured", gen.RunStrategy("Always"))
		l.eventually(t, "the disk of the VM is filled", func() error {
			got := l.kubectl(t, nil, "", "get", "datavolumes", "-n", l.team, "-o", "jsonpath={.items[*].status.phase}")
			if got.Stdout != "Succeeded" {
				return errors.New(got.Stdout + l.kubectl(t, nil, "", "get", "vm,dv,pvc,events", "-n", l.team).Stdout)
			}
			return nil
		})
		gone(t, "copy")
	})
}

// TestNothingElseIsLent attacks the loan of disks as a user who may use templates of a namespace and wants another claim of it.
func TestNothingElseIsLent(t *testing.T) {
	s := full.on(t)
	l := s.loan(t)
	finance := s.namespace(t)
	s.apply(t, finance, image("ledger"))
	l.filled(t, finance, "ledger")
	l.publish(t, "golden", fromDataSource(l.golden, "fedora"), lends)
	l.publish(t, "private", fromDataSource(l.golden, "fedora"), gen.Label("stencil.kubevirt.io/disk-access", "None"))
	l.publish(t, "open", fromDataSource(l.golden, "'${SOURCE}'"), lends, gen.Declares("SOURCE", "{value: fedora}"))
	l.publish(t, "reaching", fromClaim(finance, "ledger"), lends)
	// The control: what is permitted works while the attacks do not.
	l.create(t, "control", "golden")
	l.filled(t, l.team, "control-root")

	l.apply(t, l.golden, dataSource(l.golden, "payroll", "payroll"))
	override := func(source string) func(string) gen.Modifier {
		return func(vm string) gen.Modifier {
			return gen.Spec("dataVolumeTemplates: [{metadata: {name: " + vm + "-root}, spec: " + source + "}]")
		}
	}
	plain := func(modifier gen.Modifier) func(string) gen.Modifier {
		return func(string) gen.Modifier { return modifier }
	}
	for name, tc := range map[string]struct {
		template string
		change   func(vm string) gen.Modifier
		want     string
	}{
		"another-claim":   {"golden", override(fromClaim(l.golden, "payroll")), "does not name PersistentVolumeClaim " + l.golden + "/payroll"},
		"claim-directly":  {"golden", override(fromClaim(l.golden, "fedora")), "does not name PersistentVolumeClaim " + l.golden + "/fedora"},
		"third-namespace": {"golden", override(fromClaim(finance, "ledger")), "lends only what is in its own namespace"},
		"not-lending":     {"private", plain(gen.Parameter("NAME", "not-lending")), "does not lend its disks: it lacks label stencil.kubevirt.io/disk-access=Lend"},
		"own-label":       {"private", plain(lends), "does not lend its disks"},
		"forged-record":   {"private", plain(gen.Annotation("template.kubevirt.io/rendered", `{"namespace":"`+l.golden+`","name":"golden","uid":"x"}`)), "does not lend its disks"},
		"other-parameter": {"open", plain(gen.Parameter("SOURCE", "payroll")), "parameter SOURCE selects the source"},
		"foreign-source":  {"reaching", plain(gen.Parameter("NAME", "foreign-source")), "lends only what is in its own namespace, and PersistentVolumeClaim " + finance + "/ledger is not"},
	} {
		t.Run(name, func(t *testing.T) {
			l.create(t, name, tc.template, tc.change(name))
			l.notLent(t, name, name+"-root", tc.want)
		})
	}
	t.Run("a disk added to a stored VM", func(t *testing.T) {
		l.create(t, "updated", "golden")
		l.filled(t, l.team, "updated-root")
		harness.Must(t, s.Plane, l.user, "", "patch", "vm", "updated", "-n", l.team, "--type=json", "-p", `[
			{"op": "add", "path": "/spec/dataVolumeTemplates/-", "value": {"metadata": {"name": "updated-more"}, "spec": {"source": {"pvc": {"namespace": "`+l.golden+`", "name": "payroll"}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}},
			{"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "more", "dataVolume": {"name": "updated-more"}}}]`)
		l.notLent(t, "updated", "updated-more", "does not name PersistentVolumeClaim "+l.golden+"/payroll")
	})
	t.Run("a template of the user's own", func(t *testing.T) {
		harness.Must(t, s.Plane, l.user, gen.Manifest(gen.Template("own", lends, gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(),
			gen.DataVolumeDisk("root", "${NAME}-root", fromDataSource(l.golden, "fedora"))))), "apply", "-n", l.team, "-f", "-")
		l.eventually(t, "the VM is created", func() error {
			if got := l.kubectl(t, l.user, gen.Manifest(gen.VM("own", gen.FromTemplate("own"))), "create", "-n", l.team, "-f", "-"); got.Code != 0 {
				return errors.New(got.Stderr)
			}
			return nil
		})
		l.notLent(t, "own", "own-root", "lends only what is in its own namespace, and DataSource "+l.golden+"/fedora is not")
	})
	t.Run("a VM without a template", func(t *testing.T) {
		harness.Must(t, s.Plane, l.user, gen.Manifest(gen.VM("plain", gen.SmallSpec(), gen.DataVolumeDisk("root", "plain-root", fromDataSource(l.golden, "fedora")))), "create", "-n", l.team, "-f", "-")
		l.eventually(t, "KubeVirt denies the copy", func() error {
			got := l.kubectl(t, l.user, "", "get", "vm", "plain", "-n", l.team, "-o", `jsonpath={.status.conditions[?(@.type=="Failure")].message}`)
			if !strings.Contains(got.Stdout, "insufficient permissions in clone source namespace") {
				return errors.New(got.Stdout + got.Stderr)
			}
			return nil
		})
		if got := l.kubectl(t, nil, "", "get", "datavolume", "plain-root", "-n", l.team); got.Code == 0 {
			t.Errorf("DataVolume exists: %s", got.Stdout)
		}
	})
	t.Run("a dry run", func(t *testing.T) {
		harness.Must(t, s.Plane, l.user, gen.Manifest(gen.VM("dry", gen.FromTemplate(l.golden+"/golden"))), "create", "--dry-run=server", "-n", l.team, "-f", "-")
		warned := l.kubectl(t, l.user, gen.Manifest(gen.VM("warned", gen.FromTemplate(l.golden+"/private"))), "create", "--dry-run=server", "-n", l.team, "-f", "-")
		for _, want := range []string{`Warning: spec.dataVolumeTemplates[0].metadata.name: disk "warned-root" will not be created`,
			"system:serviceaccount:" + l.team + ":default may not copy from namespace " + l.golden, "kubectl create role copy-to-" + l.team} {
			if !strings.Contains(warned.Stderr, want) {
				t.Errorf("the creation does not warn %q: %s", want, warned.Stderr)
			}
		}
		l.becomes(t, l.golden, "private", condition("DisksLent"), `"status":"False"`, "does not lend its disks")
		l.becomes(t, l.golden, "golden", condition("DisksLent"), `"status":"True"`)
		l.create(t, "after-dry", "golden")
		l.filled(t, l.team, "after-dry-root")
		if got := l.kubectl(t, nil, "", "get", "datavolume", "dry-root", "-n", l.team); got.Code == 0 {
			t.Errorf("DataVolume exists: %s", got.Stdout)
		}
	})
	t.Run("a template writer who may not copy", func(t *testing.T) {
		writer, err := gen.User(t.Context(), s.Plane, "writer-"+l.team, gen.Permits(l.golden, rbacv1.PolicyRule{
			APIGroups: []string{"template.kubevirt.io"}, Resources: []string{"virtualmachinetemplates"}, Verbs: []string{"get", "create", "update", "patch"},
		}))
		if err != nil {
			t.Fatal(err)
		}
		const want = "label stencil.kubevirt.io/disk-access=Lend lends the disks of the namespace that the template names, and you may not copy them yourself"
		for what, got := range map[string]controlplane.Result{
			"creates a lending template": l.kubectl(t, writer, gen.Manifest(gen.Template("written", lends, gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec()))), "create", "-n", l.golden, "-f", "-"),
			"labels one":                 l.kubectl(t, writer, "", "label", "vmt", "private", "-n", l.golden, "stencil.kubevirt.io/disk-access=Lend", "--overwrite"),
			"changes a lending one":      l.kubectl(t, writer, "", "patch", "vmt", "golden", "-n", l.golden, "--type=json", "-p", `[{"op": "replace", "path": "/spec/virtualMachine/spec/dataVolumeTemplates/0/spec/sourceRef/name", "value": "payroll"}]`),
			"through v1alpha1":           l.kubectl(t, writer, "", "label", "virtualmachinetemplates.v1alpha1.template.kubevirt.io", "private", "-n", l.golden, "stencil.kubevirt.io/disk-access=Lend", "--overwrite"),
		} {
			if got.Code == 0 || !strings.Contains(got.Stderr, want) {
				t.Errorf("%s: exit code %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
			}
		}
		harness.Must(t, s.Plane, writer, gen.Manifest(gen.Template("unlabelled", gen.Declares("NAME"), gen.Renders("${NAME}", gen.SmallSpec(),
			gen.DataVolumeDisk("root", "${NAME}-root", fromDataSource(l.golden, "payroll"))))), "create", "-n", l.golden, "-f", "-")
		l.create(t, "unlabelled", "unlabelled")
		l.notLent(t, "unlabelled", "unlabelled-root", "does not lend its disks")
		if got := l.kubectl(t, writer, "", "label", "vmt", "golden", "-n", l.golden, "team=x"); got.Code != 0 {
			t.Errorf("another label of a lending template: %s", got.Stderr)
		}
	})
	t.Run("the account of the disks", func(t *testing.T) {
		account := "system:serviceaccount:" + install.Namespace + ":stencil-disks"
		dataVolume := gen.Manifest(gen.DataVolume("stolen", "{pvc: {namespace: "+l.golden+", name: payroll}}"))
		manager, err := s.Options().ManagerUser(s.Plane)
		if err != nil {
			t.Fatal(err)
		}
		got := l.kubectl(t, manager, dataVolume, "create", "--validate=false", "-n", l.team, "--as", account, "-f", "-")
		if got.Code == 0 || !strings.Contains(got.Stderr, "creates DataVolumes for one VirtualMachine only") {
			t.Errorf("the manager's token uses it for itself: exit code %d: %s%s", got.Code, got.Stdout, got.Stderr)
		}
		for _, what := range [][]string{{"impersonate", "serviceaccounts/stencil-disks"}, {"create", "serviceaccounts/stencil-disks", "--subresource=token"}} {
			if got := l.kubectl(t, l.user, "", append([]string{"auth", "can-i", "-n", install.Namespace}, what...)...); !strings.HasPrefix(got.Stdout, "no") {
				t.Errorf("a user may %v: %s%s", what, got.Stdout, got.Stderr)
			}
		}
		for _, what := range [][]string{{"get", "secrets"}, {"create", "pods"}, {"delete", "datavolumes.cdi.kubevirt.io"}, {"get", "persistentvolumeclaims"}} {
			if got := l.kubectl(t, nil, "", append([]string{"auth", "can-i", "-n", l.golden, "--as", account}, what...)...); !strings.HasPrefix(got.Stdout, "no") {
				t.Errorf("it may %v: %s%s", what, got.Stdout, got.Stderr)
			}
		}
	})
	// These change what the templates and DataSources of the golden namespace are.
	again := func(t *testing.T, vm, why string) {
		t.Helper()
		s.must(t, "", "delete", "datavolume", vm+"-root", "-n", l.team)
		l.notLent(t, vm, vm+"-root", why)
	}
	t.Run("a DataSource that was retargeted", func(t *testing.T) {
		s.must(t, "", "patch", "datasource", "fedora", "-n", l.golden, "--type=merge", "-p", `{"spec":{"source":{"pvc":{"namespace":"`+finance+`","name":"ledger"}}}}`)
		again(t, "control", "lends only what is in its own namespace, and PersistentVolumeClaim "+finance+"/ledger is not")
		s.must(t, "", "patch", "datasource", "fedora", "-n", l.golden, "--type=merge", "-p", `{"spec":{"source":{"pvc":{"namespace":"`+l.golden+`","name":"fedora"}}}}`)
	})
	t.Run("a template that stopped lending", func(t *testing.T) {
		s.must(t, "", "label", "vmt", "golden", "-n", l.golden, "stencil.kubevirt.io/disk-access-")
		again(t, "after-dry", "does not lend its disks")
		s.must(t, "", "label", "vmt", "golden", "-n", l.golden, "stencil.kubevirt.io/disk-access=Lend")
		l.filled(t, l.team, "after-dry-root")
	})
	t.Run("a template that was created anew", func(t *testing.T) {
		l.create(t, "before", "golden")
		l.filled(t, l.team, "before-root")
		s.must(t, "", "delete", "vmt", "golden", "-n", l.golden)
		l.publish(t, "golden", fromDataSource(l.golden, "fedora"), lends)
		again(t, "before", "does not exist any more")
	})
}
