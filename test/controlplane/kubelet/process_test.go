package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/vmstencil/stencil/test/deadline"
)

// processes returns nodes on a fake client with a pod that is scheduled and runs a shell script. Each call of step performs the pod's next step.
func processes(t *testing.T, policy corev1.RestartPolicy, script string) (n *Nodes, step func() *corev1.Pod) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "worker", UID: "1", Labels: map[string]string{"process": ""}},
		Spec: corev1.PodSpec{NodeName: Node, RestartPolicy: policy, Containers: []corev1.Container{{
			Name: "worker", Image: "registry.example/worker:v1", Args: []string{"-c", script},
			VolumeMounts: []corev1.VolumeMount{{Name: "task", MountPath: "/var/task"}},
		}}, Volumes: []corev1.Volume{{Name: "task", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "task"}}}}},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "task"}, Data: map[string][]byte{"text": []byte("first")}}
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	n = &Nodes{
		kube: fake.NewClientset(pod, secret), cancel: cancel, pods: cache.NewStore(cache.MetaNamespaceKeyFunc),
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		programs:  map[string]Program{"process": Programs(map[string]string{"worker": "/bin/sh"})},
		sandboxes: map[string]*sandbox{},
		options: Options{Folder: filepath.Join(folder, "pods"), Logs: folder, Attributes: func() *syscall.SysProcAttr {
			return &syscall.SysProcAttr{Setpgid: true}
		}},
	}
	t.Cleanup(n.Stop)
	return n, func() *corev1.Pod {
		t.Helper()
		if _, err := n.simulate(ctx, "a/worker"); err != nil {
			t.Fatal(err)
		}
		found, err := n.kube.CoreV1().Pods("a").Get(ctx, "worker", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return found
	}
}

// await performs steps until the pod is as expected.
func await(t *testing.T, what string, step func() *corev1.Pod, expected func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	err := deadline.Wait(t.Context(), what, time.Minute, func(context.Context) error {
		if pod = step(); !expected(pod) {
			return &unexpected{pod}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

type unexpected struct{ pod *corev1.Pod }

func (u *unexpected) Error() string { return "the status is " + u.pod.Status.String() }

func TestAProcessReadsItsFilesAndLeavesItsMessage(t *testing.T) {
	_, step := processes(t, corev1.RestartPolicyNever, `cat $1/var/task/text >$1/dev/termination-log; test "$0" = --root && exit 3`)
	pod := await(t, "the pod has failed", step, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	if ended == nil || ended.ExitCode != 3 || ended.Message != "first" {
		t.Errorf("the container has ended with %v", ended)
	}
	if ip := pod.Status.PodIP; !strings.HasPrefix(ip, "127.") || ip == "127.0.0.1" {
		t.Errorf("the pod has the address %s", ip)
	}
}

func TestAKilledProcessIsRestarted(t *testing.T) {
	n, step := processes(t, corev1.RestartPolicyOnFailure, `while :; do sleep 0.1; done`)
	ready := func(restarts int32) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready && pod.Status.ContainerStatuses[0].RestartCount == restarts
		}
	}
	await(t, "the pod is ready", step, ready(0))
	if err := n.Kill("a", "worker"); err != nil {
		t.Fatal(err)
	}
	pod := await(t, "the pod is ready again", step, ready(1))
	if last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 137 {
		t.Errorf("the last termination is %v", last)
	}
}

func TestTheEndOfANodeEndsAProcessAndItsChildren(t *testing.T) {
	n, step := processes(t, corev1.RestartPolicyAlways, `sleep 300 & echo $! >$1/child; mv $1/child $1/dev/termination-log; wait`)
	await(t, "the pod runs", step, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	process, folder := n.Process("a", "worker"), n.sandbox("a/worker").folder
	if process == 0 || syscall.Kill(process, 0) != nil {
		t.Fatalf("the process is %d", process)
	}
	n.Stop()
	if syscall.Kill(-process, 0) == nil {
		// The child is a zombie until init has waited for it.
		err := deadline.Wait(t.Context(), "the group has ended", time.Minute, func(context.Context) error {
			if syscall.Kill(-process, 0) == nil {
				return os.ErrExist
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the files of the pod remain: %v", err)
	}
}
