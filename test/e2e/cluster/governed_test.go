package cluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// identity are the facts that a guest reports each time it boots.
var identity = []string{"hostname", "machine", "uuid", "serial", "userdata"}

// TestWhatRunsIsWhatWasApproved governs a namespace, and compares the audit, the guest and the denials with pods that run.
func TestWhatRunsIsWhatWasApproved(t *testing.T) {
	namespace := namespaces.Of(t)
	approval := fmt.Sprintf(`{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": %[1]q},
		"spec": {"namespaces": [%[1]q], "templates": [{"namespace": "golden", "name": "small"}], "parameters": [{"name": "PASSWORD", "anyValue": true}]}}`, namespace)
	harness.Must(t, kube.Plane, nil, approval, "create", "--filename=-")
	harness.Must(t, kube.Plane, nil, "", "wait", "templateapproval", namespace, "--for=condition=Ready", "--timeout=2m")
	create(t, namespace, "web")
	running(t, namespace, "web")
	booted := facts(t, namespace, "web")
	pod := strings.TrimSpace(harness.Must(t, kube.Plane, nil, "", "get", "pods", "--namespace="+namespace, "--selector=vm.kubevirt.io/name=web", "--output=jsonpath={.items[0].metadata.name}").Stdout)

	audited := func(t *testing.T) {
		t.Helper()
		harness.Within(t, "the audit reports the VM as conforming", bootLimit, func() error {
			var stored v1alpha1.TemplateApproval
			if err := json.Unmarshal([]byte(harness.Must(t, kube.Plane, nil, "", "get", "templateapproval", namespace, "--output=json").Stdout), &stored); err != nil {
				return err
			}
			if status := stored.Status; status.Conforming == nil || *status.Conforming != 1 || status.Violating == nil || *status.Violating != 0 {
				return fmt.Errorf("the status is %+v", status)
			}
			return nil
		})
	}
	// With the pods that KubeVirt's own controllers made.
	audited(t)

	for _, tc := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{
			name: "a VM without a template", args: []string{"create", "--filename=-"}, want: "template",
			stdin: `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "own"},
				"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}}}`,
		},
		{name: "a command in the pod", args: []string{"exec", pod, "--container=compute", "--", "virsh", "list"}, want: "commands cannot be run"},
		{name: "another image of the pod", args: []string{"set", "image", "pod/" + pod, "compute=stencil.test/pause:1"}, want: "KubeVirt alone changes the pod"},
		{name: "another disk", args: []string{"patch", "virtualmachine", "web", "--type=json",
			`--patch=[{"op": "replace", "path": "/spec/template/spec/volumes/0/containerDisk/image", "value": "registry.example.com/guests/other:1"}]`}, want: "containerDisk.image"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result := as(t, ada, namespace, tc.stdin, tc.args...)
			if result.Code == 0 || !strings.Contains(result.Stderr, tc.want) {
				t.Errorf("kubectl %s: code %d, want a denial with %q: %s%s", strings.Join(tc.args, " "), result.Code, tc.want, result.Stdout, result.Stderr)
			}
		})
	}

	t.Run("a restart without managers", func(t *testing.T) {
		scale := func(replicas int) {
			harness.Must(t, kube.Plane, nil, "", "scale", "deployment/stencil-manager", fmt.Sprintf("--replicas=%d", replicas), "--namespace="+install.Namespace)
		}
		scale(0)
		harness.Must(t, kube.Plane, nil, "", "wait", "pods", "--selector=app.kubernetes.io/component=manager", "--for=delete", "--timeout=2m", "--namespace="+install.Namespace)
		result := as(t, ada, namespace, "", "delete", "virtualmachineinstance", "web", "--wait")
		if result.Code != 0 {
			t.Errorf("deleting the instance: %s", result.Stderr)
		}
		running(t, namespace, "web")
		compare(t, booted, facts(t, namespace, "web"))
		if result := as(t, ada, namespace, "", "delete", "virtualmachine", "none", "--ignore-not-found"); result.Code != 0 {
			t.Errorf("deleting is not possible: %s", result.Stderr)
		}
		scale(2)
		harness.Must(t, kube.Plane, nil, "", "rollout", "status", "deployment/stencil-manager", "--timeout=3m", "--namespace="+install.Namespace)
	})
	t.Run("a pod that is deleted", func(t *testing.T) {
		if result := as(t, nil, namespace, "", "delete", "pods", "--selector=vm.kubevirt.io/name=web", "--wait"); result.Code != 0 {
			t.Fatal(result.Stderr)
		}
		running(t, namespace, "web")
		compare(t, booted, facts(t, namespace, "web"))
		audited(t)
	})
}

// as runs kubectl as a user in a namespace.
func as(t *testing.T, user *controlplane.User, namespace, stdin string, arguments ...string) controlplane.Result {
	t.Helper()
	return harness.Kubectl(t, kube.Plane, user, stdin, harness.In(namespace, arguments)...)
}

// facts returns what the guest prints at its serial console while it boots. KubeVirt keeps what was printed before a user connects in the log of the pod.
func facts(t *testing.T, namespace, name string) map[string][]string {
	t.Helper()
	var found map[string][]string
	harness.Within(t, "the guest of "+name+" is ready", bootLimit, func() error {
		log := as(t, nil, namespace, "", "logs", "--selector=vm.kubevirt.io/name="+name, "--container=guest-console-log", "--tail=-1")
		found = map[string][]string{}
		for line := range strings.Lines(log.Stdout) {
			if text, is := strings.CutPrefix(strings.TrimSpace(line), "guest: "); is {
				key, value, _ := strings.Cut(text, "=")
				found[key] = append(found[key], value)
			}
		}
		if len(found["ready"]) == 0 {
			return fmt.Errorf("it has printed:\n%s%s", log.Stdout, log.Stderr)
		}
		return nil
	})
	return found
}

// compare requires that a guest sees the same VM as before.
func compare(t *testing.T, before, after map[string][]string) {
	t.Helper()
	for _, key := range identity {
		if !slices.Equal(before[key], after[key]) {
			t.Errorf("the guest sees %s %q, and saw %q before", key, after[key], before[key])
		}
	}
}
