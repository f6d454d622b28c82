package kubelet

import (
	"context"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Options are what nodes use of the machine. Only pods that run as processes need more than the zero value.
type Options struct {
	// Folder is where the containers of pods have their files, and Logs where their output goes: pod-NAMESPACE-NAME.log.
	Folder, Logs string
	// Volumes finds the volumes of claims.
	Volumes Volumes
	// Attributes returns the attributes with which processes start. Each must lead a process group of its own.
	Attributes func() *syscall.SysProcAttr
}

// Volumes finds and fills the volumes of claims; csi.Driver implements it.
type Volumes interface {
	// Path returns where the bytes of a bound claim are: a file if the volume mode is Block, otherwise a folder.
	Path(ctx context.Context, namespace, claim string) (path string, block bool, err error)
	// WriteDisk replaces the raw disk in the volume of a bound claim.
	WriteDisk(ctx context.Context, namespace, claim string, content io.Reader) error
}

// Program returns the path of the program on this machine that stands for the one in the image of a container.
type Program func(container *corev1.Container) (path string, ok bool)

// Programs returns a Program that looks up paths by name. The name is that of the container's command, or, if the image decides about the command, the last
// part of the image's name without tag and digest: stencil-mover for registry.example/stencil-mover:v1.
func Programs(paths map[string]string) Program {
	return func(container *corev1.Container) (string, bool) {
		name, _, _ := strings.Cut(path.Base(container.Image), "@")
		name, _, _ = strings.Cut(name, ":")
		if len(container.Command) > 0 {
			name = path.Base(container.Command[0])
		}
		found, ok := paths[name]
		return found, ok
	}
}

// RunProcesses lets pods with a label, whatever its value, run as processes of this machine. A pod that is scheduled gets an address of its own in
// 127.0.0.0/8. Its container's program is what the function returns, and runs without isolation:
//
//   - It gets the further arguments --root FOLDER, and has to look for each absolute path below that folder. What the container mounts is there: Secrets,
//     ConfigMaps and projected volumes as files with the content that they had at the start, empty folders, and claims as symbolic links to what
//     Options.Volumes returns. The link at a devicePath leads to a sparse file. Mounts are never read-only.
//   - It has the container's environment and that of a shell on this machine for PATH, HOME, TMPDIR and HOSTNAME only, and the rights of the test. Limits of
//     CPU and memory do not apply.
//   - Its exit code and the file at the terminationMessagePath become the status of the container. It is restarted as the restartPolicy specifies, after
//     0.2 s and more. A running pod is ready, or ready for good once its readinessProbe (httpGet or tcpSocket) has succeeded.
//   - It gets SIGTERM when its pod is deleted, and SIGKILL, with its children, after the grace period.
//
// Of rules, Delay and Hold defer the start of the container, and Fail ends it instead of starting it; a process that runs is not affected.
// Pods have exactly one container; others do not start, and their status has the reason.
func (n *Nodes) RunProcesses(label string, program Program) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.programs[label] = program
	for _, key := range n.pods.ListKeys() {
		n.queue.Add(key)
	}
}

// program returns what finds the program of a pod; nil if the pod does not run as a process.
func (n *Nodes) program(pod *corev1.Pod) Program {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for label, program := range n.programs {
		if _, has := pod.Labels[label]; has {
			return program
		}
	}
	return nil
}

// backoff is how long a container waits for its next start after n restarts: a kubelet begins with ten seconds.
func backoff(restarts int32) time.Duration { return retry << min(restarts, 4) }
