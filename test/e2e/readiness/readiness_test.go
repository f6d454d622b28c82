package readiness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/controlplane/csi"
	"github.com/vmstencil/stencil/test/controlplane/kubelet"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

const (
	fedora = "sourceRef: {kind: DataSource, name: fedora}"
	blank  = "source: {blank: {}}"
)

// onVLAN gives the VMs of a template an interface in a network of Multus.
var onVLAN = gen.Spec("template: {spec: {domain: {devices: {interfaces: [{name: lan, bridge: {}}]}}, networks: [{name: lan, multus: {networkName: vlan7}}]}}")

func TestATemplateBecomesReadyWithItsImage(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, template("box", fedora))
	s.becomes(t, own, "box", condition("Ready"), `"status":"False"`, `"reason":"SourcesNotReady"`, fmt.Sprintf("volume ${NAME}-root: DataSource %s/fedora does not exist", own))
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotFound"`, `"kind":"DataSource"`, `"name":"fedora"`, `"volume":"${NAME}-root"`)

	remove := s.Plane.Nodes().When(kubelet.Rule{Namespace: own, Hold: true})
	s.apply(t, own, dataSource(own, "fedora", "disk"))
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"NotFound"`, fmt.Sprintf("DataSource %s/fedora stands for PersistentVolumeClaim %s/disk", own, own))
	s.apply(t, own, image("disk"))
	s.becomes(t, own, "box", ".status.volumes[0]", `"state":"Importing"`)
	s.becomes(t, own, "box", condition("SourcesReady"), `"reason":"Importing"`)
	remove()
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`, `"reason":"Reconciled"`)
	s.becomes(t, own, "box", condition("DryRunSucceeded"), `"status":"True"`, `"reason":"Accepted"`)

	columns := strings.Fields(s.kubectl(t, s.owner, "", "get", "virtualmachinetemplates", "-n", own, "--no-headers").Stdout)
	if len(columns) != 4 || columns[2] != "True" || columns[3] != "AllReady" {
		t.Errorf("columns Name, Age, Ready and Sources: %q", columns)
	}
	s.eventually(t, "both changes are events", func() error {
		got := s.kubectl(t, s.owner, "", "get", "events", "-n", own, "-o", `jsonpath={range .items[?(@.involvedObject.kind=="VirtualMachineTemplate")]}{.type} {.reason};{end}`)
		if !strings.Contains(got.Stdout, "Warning SourcesNotReady;") || !strings.Contains(got.Stdout, "Normal Reconciled;") {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})

	if err := s.Plane.CSI().VanishVolume(t.Context(), own, "disk"); err != nil {
		t.Fatal(err)
	}
	s.becomes(t, own, "box", condition("Ready"), `"status":"False"`, "Lost")
	if got := s.kubectl(t, s.owner, "", "delete", "datasource", "fedora", "-n", own); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	s.becomes(t, own, "box", condition("Ready"), `"status":"False"`, "fedora does not exist")
}

func TestEveryBadStateIsTold(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, image("disk"))
	s.eventually(t, "the image is there", func() error {
		if got := s.kubectl(t, s.owner, "", "get", "dv/disk", "-n", own, "-o", "jsonpath={.status.phase}"); got.Stdout != "Succeeded" {
			return errors.New(got.Stdout + got.Stderr)
		}
		return nil
	})
	remove := s.Plane.CSI().When(csi.TakeSnapshot, csi.Rule{Namespace: own, Name: "daily", Fail: "the array is offline"})
	defer remove()
	s.snapshot(t, own, `{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "daily"}, "spec": {"source": {"persistentVolumeClaimName": "disk"}}}`)
	s.apply(t, own, gen.Manifest(gen.Claim("unbound", gen.Spec("storageClassName: csi-wait"))))
	s.apply(t, own, fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "second"}, "spec": {"source": {"dataSource": {"name": "first", "namespace": %q}}}}`, own))
	s.apply(t, own, dataSource(own, "first", "disk"))
	s.apply(t, own, fmt.Sprintf(`{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "third"}, "spec": {"source": {"dataSource": {"name": "second", "namespace": %q}}}}`, own))
	failing := s.Plane.Nodes().When(kubelet.Rule{Namespace: own, Fail: "Unable to process data: 404 Not Found"})
	defer failing()
	s.apply(t, own, image("absent"))
	for name, tc := range map[string]struct {
		from string
		want []string
	}{
		"snapshot-missing": {`source: {snapshot: {name: nowhere, namespace: NS}}`, []string{`"state":"NotFound"`, "VolumeSnapshot NS/nowhere does not exist"}},
		"snapshot-failed":  {`source: {snapshot: {name: daily, namespace: NS}}`, []string{`"state":"NotReady"`, `"reason":"Failed"`, "the array is offline"}},
		"claim-missing":    {`source: {pvc: {name: nowhere, namespace: NS}}`, []string{`"state":"NotFound"`, "PersistentVolumeClaim NS/nowhere does not exist"}},
		"claim-unbound":    {`source: {pvc: {name: unbound, namespace: NS}}`, []string{`"state":"NotReady"`, `"reason":"Pending"`}},
		"import-failed":    {`source: {pvc: {name: absent, namespace: NS}}`, []string{`"state":"NotReady"`, "404 Not Found"}},
		"claim-good":       {`source: {pvc: {name: disk, namespace: NS}}`, []string{`"state":"Ready"`}},
		"second":           {`sourceRef: {kind: DataSource, name: second}`, []string{`"state":"Ready"`}},
		"third":            {`sourceRef: {kind: DataSource, name: third}`, []string{`"state":"NotReady"`, `"reason":"MaxReferenceDepthReached"`}},
		"remote":           {`source: {registry: {url: "docker://quay.io/x"}}`, []string{`"state":"Remote"`, `"kind":"Registry"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s.apply(t, own, template(name, strings.ReplaceAll(tc.from, "NS", own)))
			var want []string
			for _, text := range tc.want {
				want = append(want, strings.ReplaceAll(text, "NS", own))
			}
			s.becomes(t, own, name, ".status.volumes[0]", want...)
		})
	}
	remove()
	s.becomes(t, own, "snapshot-failed", condition("SourcesReady"), `"status":"True"`)
	failing()
	s.becomes(t, own, "import-failed", condition("SourcesReady"), `"status":"True"`)
}

func TestInstanceTypesPreferencesAndNetworksAreLookedFor(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, template("box", blank, gen.Spec("{instancetype: {kind: VirtualMachineInstancetype, name: small}, preference: {name: fedora}}")))
	s.becomes(t, own, "box", ".status.instancetype", `"state":"NotFound"`, "VirtualMachineInstancetype "+own+"/small does not exist")
	s.becomes(t, own, "box", ".status.preference", `"state":"Ready"`)
	s.becomes(t, own, "box", condition("Ready"), `"status":"False"`)

	s.apply(t, own, template("wired", blank, onVLAN))
	s.becomes(t, own, "wired", ".status.networks[0]", `"state":"Unknown"`, `"reason":"NotServed"`, `"name":"vlan7"`)
	s.becomes(t, own, "wired", condition("Ready"), `"status":"Unknown"`)
}

// TestWhatIsNotReadIsListed also tests the command of docs/readiness.md.
func TestWhatIsNotReadIsListed(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, template("web", blank, gen.Spec(`template: {spec: {
		domain: {devices: {disks: [{name: seed, disk: {bus: virtio}}, {name: root, disk: {bus: virtio}}]}},
		volumes: [{name: seed, cloudInitNoCloud: {secretRef: {name: web-login}}}, {name: root, dataVolume: {name: "${NAME}-root"}}]}}`)))
	s.becomes(t, own, "web", condition("Ready"), `"status":"True"`)
	got := harness.Must(t, s.Plane, s.owner, "", "get", "vmt", "web", "--namespace="+own, "-o", `jsonpath={range .status.volumes[?(@.reason=="NotRead")]}{.kind} {.namespace}/{.name}{"\n"}{end}`).Stdout
	if want := "Secret " + own + "/web-login\n"; got != want {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func TestADryRunHasKubeVirtJudge(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, template("diskless", blank,
		gen.Spec("template: {spec: {domain: {devices: {disks: [{name: root, disk: {bus: virtio}}, {name: lost, disk: {bus: virtio}}]}}}}")))
	s.becomes(t, own, "diskless", condition("DryRunSucceeded"), `"status":"False"`, `"reason":"Refused"`, "lost")
	s.becomes(t, own, "diskless", condition("Ready"), `"status":"False"`, `"reason":"DryRunFailed"`)
	if got := s.kubectl(t, s.owner, "", "get", "vm", "-n", own, "-o", "name"); got.Stdout != "" {
		t.Errorf("a dry run has left %s", got.Stdout)
	}

	manager := harness.User(t, s.Plane, "system:serviceaccount:stencil-system:stencil-manager", gen.Group("system:serviceaccounts"))
	vm := gen.Manifest(gen.VM("stolen", gen.SmallSpec(), gen.Memory("1Gi")))
	if got := s.kubectl(t, manager, vm, "create", "-n", own, "--dry-run=server", "-f", "-"); got.Code != 0 {
		t.Errorf("the manager may not try a machine: %s", got.Stderr)
	}
	got := s.kubectl(t, manager, vm, "create", "-n", own, "-f", "-")
	if got.Code == 0 || !strings.Contains(got.Stderr, "creates VirtualMachines in dry runs only") {
		t.Errorf("with the manager's token somebody creates machines: %s%s", got.Stdout, got.Stderr)
	}
}

func TestAnImageBecomesStale(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, image("disk"))
	s.apply(t, own, dataSource(own, "fedora", "disk"))
	s.apply(t, own, template("box", fedora))
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	digest := "sha256:" + strings.Repeat("a", 64)
	annotate := func(annotations ...string) {
		t.Helper()
		s.must(t, "", append([]string{"annotate", "--overwrite", "datasource", "fedora", "-n", own}, annotations...)...)
	}
	annotate("stencil.kubevirt.io/golden-image=fedora", "stencil.kubevirt.io/digest="+digest, "stencil.kubevirt.io/imported-at=2026-11-01T08:00:00Z")
	s.becomes(t, own, "box", condition("SourcesReady"), "DataSource "+own+"/fedora has image "+digest+" of GoldenImage fedora imported at 2026-11-01T08:00:00Z")
	// Nothing happens at the limit.
	soon := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	annotate("stencil.kubevirt.io/stale-after=" + soon)
	s.becomes(t, own, "box", condition("BootSourceStale"), `"status":"True"`, `"reason":"Stale"`, "a newer one was due by "+soon)
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	annotate("stencil.kubevirt.io/stale-after=tomorrow")
	s.becomes(t, own, "box", condition("SourcesReady"), "ignored because they are malformed: annotations stencil.kubevirt.io/stale-after")
	if got := s.kubectl(t, s.owner, "", "get", "vmt", "box", "-n", own, "-o", "jsonpath={"+condition("BootSourceStale")+"}"); got.Stdout != "" {
		t.Errorf("a limit that is none: %s", got.Stdout)
	}
}

func TestADataSourceFlipReachesItsTemplates(t *testing.T) {
	const many = 50
	s := full.on(t)
	own := s.namespace(t)
	var manifests strings.Builder
	for i := range many {
		manifests.WriteString("---\n" + template(fmt.Sprintf("box-%02d", i), fedora))
	}
	s.apply(t, own, manifests.String())
	all := func(status string) func() error {
		return func() error {
			got := s.kubectl(t, s.owner, "", "get", "virtualmachinetemplates", "-n", own, "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="SourcesReady")].status} {end}`)
			if n := strings.Count(got.Stdout, status); n != many {
				return fmt.Errorf("%d of %d are %s: %s", n, many, status, got.Stderr)
			}
			return nil
		}
	}
	s.eventually(t, "all are not ready", all("False"))
	// Until its own dry run is made, no template is ready.
	synced := func() error {
		got := s.kubectl(t, s.owner, "", "get", "virtualmachinetemplates", "-n", own, "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="DryRunSucceeded")].reason} {end}`)
		if n := strings.Count(got.Stdout, "Accepted"); n != many {
			return fmt.Errorf("%d of %d dry runs are done", n, many)
		}
		return nil
	}
	s.eventually(t, "all dry runs are done", synced)
	s.apply(t, own, image("disk"))
	s.apply(t, own, dataSource(own, "fedora", "disk"))
	s.eventually(t, "all are ready", all("True"))
	began := time.Now()
	s.apply(t, own, dataSource(own, "fedora", "nowhere"))
	s.eventually(t, "all are not ready again", all("False"))
	t.Logf("%d templates followed a DataSource in %s", many, time.Since(began).Round(time.Millisecond))
	s.eventually(t, "each flip is one event about the DataSource", func() error {
		got := s.kubectl(t, s.owner, "", "get", "events", "-n", own, "-o", `jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name} {.reason}: {.message}{"\n"}{end}`)
		named := fmt.Sprintf("%[1]s/box-00, %[1]s/box-01, %[1]s/box-02, %[1]s/box-03, %[1]s/box-04 and %[2]d more", own, many-5)
		for _, want := range []string{
			fmt.Sprintf("DataSource/fedora TemplatesReady: %d templates are ready: %s\n", many, named),
			fmt.Sprintf("DataSource/fedora TemplatesNotReady: %d templates are not ready: %s: DataSource %[3]s/fedora stands for PersistentVolumeClaim %[3]s/nowhere", many, named, own),
		} {
			if strings.Count(got.Stdout, want) != 1 {
				return fmt.Errorf("want %q once in:\n%s", want, got.Stdout)
			}
		}
		if n := strings.Count(got.Stdout, "VirtualMachineTemplate/box-"); n > 0 {
			return fmt.Errorf("%d events about templates:\n%s", n, got.Stdout)
		}
		return nil
	})

	// A new leader has nothing to write.
	resourceVersions := func() string {
		return s.kubectl(t, s.owner, "", "get", "virtualmachinetemplates", "-n", own, "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.resourceVersion} {end}`).Stdout
	}
	before := resourceVersions()
	if err := s.RestartManager(); err != nil {
		t.Fatal(err)
	}
	s.apply(t, own, template("late", fedora))
	s.becomes(t, own, "late", condition("Ready"), `"status":"False"`)
	if after := resourceVersions(); !strings.Contains(after, before) {
		t.Errorf("a new leader wrote what was there:\n%s\n%s", before, after)
	}
}
