package harness

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane"
)

// LauncherPod waits until virt-controller has created the pod of a VirtualMachine that is to run, and returns its name.
func LauncherPod(t *testing.T, plane *controlplane.Plane, namespace, vm string) (pod string) {
	t.Helper()
	Eventually(t, "virt-controller has created the pod of "+vm, func() error {
		pod = Must(t, plane, nil, "", "--namespace="+namespace, "get", "pod", "-l", "kubevirt.io=virt-launcher,vm.kubevirt.io/name="+vm, "-o", "jsonpath={.items[*].metadata.name}").Stdout
		if pod == "" {
			return errors.New("there is none: " + Kubectl(t, plane, nil, "", "--namespace="+namespace, "get", "vm,vmi", "-o", "yaml").Stdout)
		}
		return nil
	})
	return pod
}

// RunInstance simulates the node for a pod, and virt-handler for its instance, which then runs. The Node is created if there is none, because
// kube-controller-manager deletes the pods of nodes that have not existed for 40 s.
func RunInstance(t *testing.T, plane *controlplane.Plane, namespace, name, pod, node string) {
	t.Helper()
	must := func(as *controlplane.User, stdin string, arguments ...string) string {
		t.Helper()
		return Must(t, plane, as, stdin, append([]string{"--namespace=" + namespace}, arguments...)...).Stdout
	}
	made := Kubectl(t, plane, nil, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, node), "create", "-f", "-")
	if made.Code != 0 && !strings.Contains(made.Stderr, "AlreadyExists") {
		t.Fatalf("creating node %s: %s", node, made.Stderr)
	}
	must(nil, fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"apiVersion":"v1","kind":"Node","name":%q}}`, pod, node),
		"create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/"+pod+"/binding", "-f", "-")
	var statuses []string
	for container := range strings.FieldsSeq(must(nil, "", "get", "pod", pod, "-o", "jsonpath={.spec.containers[*].name}")) {
		statuses = append(statuses, fmt.Sprintf(`{"name":%q,"ready":true,"restartCount":0,"image":"i","imageID":"i@sha256:%064d","state":{"running":{"startedAt":"2026-11-23T12:00:00Z"}}}`, container, 1))
	}
	must(nil, "", "patch", "pod", pod, "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],`+
		`"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"},{"type":"PodScheduled","status":"True"}],`+
		`"containerStatuses":[`+strings.Join(statuses, ",")+`]}}`)
	phase := func() string { return must(nil, "", "get", "vmi", name, "-o", "jsonpath={.status.phase}") }
	if phase() == "Running" {
		return
	}
	Eventually(t, "virt-controller has handed instance "+name+" to the node", func() error {
		if phase := phase(); phase != "Scheduled" {
			return errors.New("its phase is " + phase)
		}
		return nil
	})
	handler := Controller(t, plane, "kubevirt:kubevirt-handler")
	must(handler, "", "patch", "vmi", name, "--type=merge", "-p", `{"status":{"phase":"Running","selinuxContext":"none","conditions":[`+
		`{"type":"Ready","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"},{"type":"LiveMigratable","status":"True","lastTransitionTime":"2026-11-23T12:00:00Z"}]}}`)
}
