package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/controlplane/kubelet"
)

// processLabel is on the pods that run as processes in tests here.
const processLabel = "example.com/process"

// worker is the manifest of a pod that runs a shell script as a process. The folder with its files is $1 of the script.
func worker(name, policy, script, more string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "labels": {%q: ""}}, "spec": %s}`, name, processLabel,
		workerSpec(policy, script, more))
}

func workerSpec(policy, script, more string) string {
	return fmt.Sprintf(`{"restartPolicy": %q, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
		"containers": [{"name": "worker", "image": "registry.example/worker:v1@sha256:00", "args": ["-c", %q],
			"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "PLACE", "value": "$(IP)/here"}]%s}`, policy, script, more)
}

// mounts completes a worker's container and its pod with all kinds of volumes.
const mounts = `, "volumeDevices": [{"name": "device", "devicePath": "/dev/disk"}], "volumeMounts": [
	{"name": "secret", "mountPath": "/var/run/secret"}, {"name": "absent", "mountPath": "/var/run/absent"}, {"name": "config", "mountPath": "/etc/config"},
	{"name": "empty", "mountPath": "/scratch"}, {"name": "folder", "mountPath": "/disks/folder"}]}],
	"volumes": [
		{"name": "device", "persistentVolumeClaim": {"claimName": "device"}}, {"name": "folder", "persistentVolumeClaim": {"claimName": "folder"}},
		{"name": "secret", "secret": {"secretName": "task", "items": [{"key": "a", "path": "sub/task.json"}]}},
		{"name": "absent", "secret": {"secretName": "absent", "optional": true}},
		{"name": "config", "configMap": {"name": "config"}}, {"name": "empty", "emptyDir": {}}]`

const (
	noMounts = `}]`
	forever  = `trap 'echo stopped >$1/dev/termination-log; exit 0' TERM; while :; do sleep 0.1; done`
)

func podsRunAsProcesses(t *testing.T, plane *Plane) {
	t.Run("a pod finds its files and writes to its volumes", func(t *testing.T) { podFindsItsFiles(t, plane) })
	t.Run("a pod without a file that it needs waits for it", func(t *testing.T) { podWaitsForFiles(t, plane) })
	t.Run("a pod that is killed is restarted", func(t *testing.T) { killedPodRestarts(t, plane) })
	t.Run("a pod of a Job that fails is replaced, and the Job completes", func(t *testing.T) { jobCompletes(t, plane) })
	t.Run("rules defer a pod and let it fail", func(t *testing.T) { rulesApply(t, plane) })
	t.Run("a pod that is deleted is stopped, or killed after its grace period", func(t *testing.T) { deletedPodEnds(t, plane) })
	t.Run("a pod is ready when its probe succeeds", func(t *testing.T) { probeDecides(t, plane) })
}

func podFindsItsFiles(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, claim("device", "Block", "1Gi", ""))
	apply(t, plane, own, claim("folder", "Filesystem", "1Gi", ""))
	apply(t, plane, own, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "task"}, "stringData": {"a": "first", "b": "second"}}`)
	apply(t, plane, own, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"c": "third"}}`)
	apply(t, plane, own, worker("writer", "Never", `set -e
		echo to the log of $HOSTNAME
		cat $1/var/run/secret/sub/task.json $1/etc/config/c | dd of=$1/dev/disk conv=notrunc
		echo $PLACE >$1/scratch/file; cat $1/scratch/file >$1/disks/folder/place
		ls $1/var/run/absent $1/var/run/secret >$1/dev/termination-log
		test "$0" = --root`, mounts))
	becomes(t, plane, own, "pod/writer", ".status.phase", "Succeeded")
	if got := content(t, plane, own, "device", 10); got != "firstthird" {
		t.Errorf("the device has %q", got)
	}
	ip := field(t, plane, own, "pod/writer", ".status.podIP")
	if !strings.HasPrefix(ip, "127.") || ip == "127.0.0.1" {
		t.Errorf("the pod has the address %s", ip)
	}
	path, _, err := plane.CSI().Path(t.Context(), own, "folder")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path + "/place"); err != nil || string(got) != ip+"/here\n" {
		t.Errorf("the folder has %q, want the address %s: %v", got, ip, err)
	}
	ended := ".status.containerStatuses[0].state.terminated"
	if got := field(t, plane, own, "pod/writer", ended+".message"); !strings.Contains(got, "sub") || strings.Contains(got, "task") {
		t.Errorf("the termination message is %q", got)
	}
	if got := field(t, plane, own, "pod/writer", ended+".reason"); got != "Completed" {
		t.Errorf("the reason is %q", got)
	}
	log, err := os.ReadFile(plane.Dir() + "/logs/pod-" + own + "-writer.log")
	if err != nil || !strings.Contains(string(log), "to the log of writer") {
		t.Errorf("the log has %q: %v", log, err)
	}
}

func podWaitsForFiles(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, worker("early", "Never", `cat $1/task/a >$1/dev/termination-log`,
		`, "volumeMounts": [{"name": "task", "mountPath": "/task"}]}], "volumes": [{"name": "task", "secret": {"secretName": "task"}}`+"]"))
	becomes(t, plane, own, "pod/early", ".status.containerStatuses[0].state.waiting.message", `reading the Secret task: secrets "task" not found`)
	apply(t, plane, own, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "task"}, "stringData": {"a": "first"}}`)
	becomes(t, plane, own, "pod/early", ".status.containerStatuses[0].state.terminated.message", "first")
}

func killedPodRestarts(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, worker("again", "OnFailure", forever, noMounts))
	apply(t, plane, own, worker("never", "Never", forever, noMounts))
	for _, name := range []string{"again", "never"} {
		becomes(t, plane, own, "pod/"+name, ".status.conditions[?(@.type==\"Ready\")].status", "True")
		first := plane.Nodes().Process(own, name)
		if err := plane.Nodes().Kill(own, name); err != nil {
			t.Fatal(err)
		}
		if running(first) {
			t.Errorf("the process %d of %s runs", first, name)
		}
	}
	becomes(t, plane, own, "pod/again", ".status.containerStatuses[0].restartCount", "1")
	becomes(t, plane, own, "pod/again", ".status.containerStatuses[0].lastState.terminated.exitCode", "137")
	becomes(t, plane, own, "pod/again", ".status.containerStatuses[0].ready", "true")
	becomes(t, plane, own, "pod/never", ".status.phase", "Failed")
	if err := plane.Nodes().Kill(own, "never"); err == nil {
		t.Error("a pod without a process was killed")
	}
}

func jobCompletes(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	bound(t, plane, own, claim("folder", "Filesystem", "1Gi", ""), "folder")
	apply(t, plane, own, fmt.Sprintf(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {"backoffLimit": 3, "template": {
		"metadata": {"labels": {%q: ""}}, "spec": %s}}}`, processLabel, workerSpec("Never", `mkdir $1/folder/second || exit 0; exit 3`,
		`, "volumeMounts": [{"name": "folder", "mountPath": "/folder"}]}], "volumes": [{"name": "folder", "persistentVolumeClaim": {"claimName": "folder"}}`+"]")))
	becomes(t, plane, own, "job/work", ".status.failed", "1")
	becomes(t, plane, own, "job/work", ".status.conditions[?(@.type==\"Complete\")].status", "True")
}

func rulesApply(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	release := plane.Nodes().When(kubelet.Rule{Namespace: own, Prefix: "held", Hold: true})
	plane.Nodes().When(kubelet.Rule{Namespace: own, Prefix: "failing", Fail: "the disk is on fire"})
	apply(t, plane, own, worker("held", "Never", "exit 0", noMounts))
	apply(t, plane, own, worker("failing", "Never", "exit 0", noMounts))
	becomes(t, plane, own, "pod/failing", ".status.containerStatuses[0].state.terminated.message", "the disk is on fire")
	becomes(t, plane, own, "pod/failing", ".status.phase", "Failed")
	becomes(t, plane, own, "pod/held", ".status.containerStatuses[0].state.waiting.reason", "ContainerCreating")
	release()
	becomes(t, plane, own, "pod/held", ".status.phase", "Succeeded")
}

func deletedPodEnds(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, worker("willing", "Always", forever, noMounts))
	apply(t, plane, own, worker("stubborn", "Always", `trap '' TERM; sleep 300 & echo $! >$1/child; cp $1/child $1/dev/termination-log; while :; do sleep 0.1; done`, noMounts))
	apply(t, plane, own, worker("forced", "Always", forever, noMounts))
	for name, option := range map[string]string{"willing": "--grace-period=600", "stubborn": "--grace-period=1", "forced": "--force"} {
		becomes(t, plane, own, "pod/"+name, ".status.containerStatuses[0].ready", "true")
		process := plane.Nodes().Process(own, name)
		if process == 0 {
			t.Fatalf("%s has no process", name)
		}
		if got := kubectl(t, plane, nil, "", "delete", "pod", name, "-n", own, option, "--timeout=60s"); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
		eventually(t, "the process of "+name+" has ended", func() error {
			if running(process) {
				return errors.New("it runs")
			}
			return nil
		})
	}
}

// probeDecides has a pod whose probe is of a port that the test opens.
func probeDecides(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, worker("served", "Never", forever, `, "readinessProbe": {"tcpSocket": {"port": 18443}}}`+"]"))
	becomes(t, plane, own, "pod/served", ".status.phase", "Running")
	if got := field(t, plane, own, "pod/served", ".status.containerStatuses[0].ready"); got != "false" {
		t.Errorf("without a listener, ready is %q", got)
	}
	listener, err := net.Listen("tcp", field(t, plane, own, "pod/served", ".status.podIP")+":18443")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	becomes(t, plane, own, "pod/served", ".status.containerStatuses[0].ready", "true")
}

func stopEndsProcesses(t *testing.T, plane *Plane) {
	own := namespace(t, plane)
	apply(t, plane, own, worker("last", "Always", `sleep 300 & echo $! >$1/dev/termination-log; `+forever, noMounts))
	becomes(t, plane, own, "pod/last", ".status.containerStatuses[0].ready", "true")
	process := plane.Nodes().Process(own, "last")
	uid := field(t, plane, own, "pod/last", ".metadata.uid")
	child := 0
	eventually(t, "the pod has started its child", func() error {
		text, err := os.ReadFile(filepath.Join(plane.Dir(), "pods", uid, "root", "dev", "termination-log"))
		if err == nil {
			child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod's process and its child have ended", func() error {
		if running(process) || running(child) {
			return errors.New("they run")
		}
		return nil
	})
	if _, err := os.Stat(plane.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
