package revisions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/harness"
)

// A VirtualMachine that was started with a copy that is old now: its copy is migrated while it runs, its instance and its start revision stay, and
// KubeVirt takes an online snapshot of it afterwards, with the copy that the start revision names.
func TestARunningVirtualMachine(t *testing.T) {
	namespace := harness.Namespace(t, plane, "running")
	w := newWriter(t, nil)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p := newPinned(t, namespace, "web", formatBeta, true)
	p.starts(t, 6)
	// While it starts, it is skipped.
	p.ages(t)
	mode(t, v1alpha1.RevisionMigrationApply, namespace)
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if read(t, namespace, p.before.Name).UID != p.before.UID {
		t.Error("the copy was replaced while the VirtualMachine started")
	}
	p.runs(t)
	p.isRunning(t)
	instance := p.must(t, "", "get", "vmi", "web", "-o", "jsonpath={.metadata.uid} {.spec}")
	started := p.must(t, "", "get", "controllerrevisions", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}`)
	if !strings.Contains(started, "revision-start-vm-") {
		t.Fatalf("there is no start revision: %s", started)
	}
	if err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	p.migrated(t)
	if got := p.must(t, "", "get", "vmi", "web", "-o", "jsonpath={.metadata.uid} {.spec}"); got != instance {
		t.Errorf("the instance has changed: %s, was %s", got, instance)
	}
	for one := range strings.FieldsSeq(started) {
		if name, uid, _ := strings.Cut(one, "="); strings.HasPrefix(name, "revision-start-vm-") && string(read(t, namespace, name).UID) != uid {
			t.Errorf("start revision %s was replaced", name)
		}
	}
	create(t, snapshots, namespace, `{"apiVersion":"snapshot.kubevirt.io/v1beta1","kind":"VirtualMachineSnapshot","metadata":{"name":"online"},"spec":{"source":{"apiGroup":"kubevirt.io","kind":"VirtualMachine","name":"web"}}}`)
	succeeds(t, snapshots, namespace, "online", `"phase":"Succeeded"`)
	succeeds(t, snapshots, namespace, "online", `"Online"`)
	copied := read(t, namespace, strings.Replace(p.before.Name, "web", "online", 1))
	if !strings.HasSuffix(string(copied.Data.Raw), `"spec":`+sixCPUs+`}`) || copied.OwnerReferences[0].Kind != "VirtualMachineSnapshot" {
		t.Errorf("the copy of the snapshot is %+v", copied)
	}
}

func (p *pinned) must(t *testing.T, stdin string, arguments ...string) string {
	t.Helper()
	return harness.Must(t, plane, nil, stdin, harness.In(p.namespace, arguments)...).Stdout
}

// ages puts an old format in the place of the copy.
func (p *pinned) ages(t *testing.T) {
	t.Helper()
	discard(t, p.namespace, p.before.Name)
	p.before = store(t, p.namespace, p.before.Name, p.vm, p.size.data(formatAlpha2, sixCPUs), p.size.labels(formatAlpha2))
}

// runs simulates the node for the pod, and virt-handler for its instance.
func (p *pinned) runs(t *testing.T) {
	t.Helper()
	p.must(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+p.namespace+`"}}`, "create", "-f", "-")
	var pod string
	harness.Eventually(t, "virt-controller makes the pod", func() error {
		if pod = p.must(t, "", "get", "pod", "-l", "kubevirt.io=virt-launcher", "-o", "jsonpath={.items[*].metadata.name}"); pod == "" {
			return errors.New("there is none")
		}
		return nil
	})
	p.must(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"apiVersion":"v1","kind":"Node","name":%q}}`, pod, p.namespace),
		"create", "--raw", "/api/v1/namespaces/"+p.namespace+"/pods/"+pod+"/binding", "-f", "-")
	p.must(t, "", "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],`+
		`"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"PodScheduled","status":"True"}],`+
		`"containerStatuses":[{"name":"compute","ready":true,"restartCount":0,"image":"i","imageID":"i@sha256:0","state":{"running":{"startedAt":"2026-11-23T12:00:00Z"}}}]}}`)
	harness.Eventually(t, "virt-controller hands the instance to the node", func() error {
		if phase := p.must(t, "", "get", "vmi", p.name, "-o", "jsonpath={.status.phase}"); phase != "Scheduled" {
			return errors.New("its phase is " + phase)
		}
		return nil
	})
	handler := harness.Controller(t, plane, "kubevirt:kubevirt-handler")
	harness.Must(t, plane, handler, "", "patch", "vmi", p.name, "-n", p.namespace, "--type=merge", "-p", `{"status":{"phase":"Running","selinuxContext":"none","conditions":[`+
		`{"type":"Ready","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"},{"type":"LiveMigratable","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"}]}}`)
}

func (p *pinned) isRunning(t *testing.T) {
	t.Helper()
	harness.Eventually(t, p.name+" is running", func() error {
		vm, err := objects.Resource(virtualMachines).Namespace(p.namespace).Get(background(t), p.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, _ := vm.Object["status"].(map[string]any)
		if status["printableStatus"] != "Running" {
			return fmt.Errorf("it is %v", status["printableStatus"])
		}
		return nil
	})
}
