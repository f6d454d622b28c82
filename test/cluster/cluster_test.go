package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/cluster"
	"github.com/vmstencil/stencil/test/harness"
)

// TestNodesRunBesideEachOtherAndLeaveNothing starts two nodes, runs a pod on each, and compares what the host has before and after.
func TestNodesRunBesideEachOtherAndLeaveNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("a node needs root")
	}
	before := hostState(t)
	clusters := make([]*cluster.Cluster, 2)
	for i := range clusters {
		var err error
		if clusters[i], err = cluster.Start(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = clusters[i].Stop() })
	}
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"},
		"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "idle", "image": "stencil.test/pause:1", "resources": {"limits": {"memory": "32Mi"}}}]}}`
	for _, each := range clusters {
		harness.Must(t, each.Plane, nil, pod, "create", "--namespace=default", "--filename=-")
	}
	for _, each := range clusters {
		harness.Within(t, "the pod runs", 2*time.Minute, func() error {
			phase := harness.Must(t, each.Plane, nil, "", "get", "pod", "idle", "--namespace=default", "--output=jsonpath={.status.phase}").Stdout
			if phase == "Running" {
				return nil
			}
			return harness.Complaint("its phase is " + phase)
		})
	}
	for _, each := range clusters {
		if err := each.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(each.Dir()); !os.IsNotExist(err) {
			t.Errorf("the folder %s is left: %v", each.Dir(), err)
		}
		id := strings.TrimPrefix(filepath.Base(each.Dir()), "stencil-cluster-")
		if groups, err := filepath.Glob("/sys/fs/cgroup/*/stencil-node-" + id); err != nil || len(groups) > 0 {
			t.Errorf("the control groups %v are left: %v", groups, err)
		}
	}
	after := hostState(t)
	for what, was := range before {
		if after[what] != was {
			t.Errorf("%s before:\n%s\nafter:\n%s", what, was, after[what])
		}
	}
}

// hostState returns what nodes could change on this host.
func hostState(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, file := range []string{
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops",
		"/proc/sys/kernel/keys/root_maxkeys", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/hostname", "/proc/mounts",
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		state[file] = string(content)
	}
	for _, folder := range []string{"/var/lib/kubelet", "/var/lib/kubevirt", "/var/lib/cni", "/run/containerd", "/etc/cni"} {
		_, err := os.Stat(folder)
		state[folder] = map[bool]string{true: "absent", false: "there"}[os.IsNotExist(err)]
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	links, err := exec.CommandContext(ctx, "ip", "-brief", "link").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, links)
	}
	state["interfaces"] = string(links)
	return state
}
