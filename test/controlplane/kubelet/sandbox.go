package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sandbox is a pod that runs as a process. One worker at a time uses it; process is also read by others, under Nodes.mutex.
type sandbox struct {
	uid    types.UID
	folder string
	log    string
	ip     string
	// reserved holds the address while the pod exists.
	reserved net.PacketConn
	// made is when the pod was scheduled, next when its container may start again, and signaled when it received SIGTERM.
	made, next, signaled time.Time
	process              *running
	phase                corev1.PodPhase
	state                corev1.ContainerState
	last                 *corev1.ContainerStateTerminated
	restarts             int32
	ready                bool
}

func (n *Nodes) sandbox(key string) *sandbox {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.sandboxes[key]
}

// simulateProcess performs the next step of a pod that runs as a process. It returns after how long the next step may be due.
func (n *Nodes) simulateProcess(ctx context.Context, key string, pod *corev1.Pod, program Program) (time.Duration, error) {
	s := n.sandbox(key)
	if s != nil && s.uid != pod.UID {
		if err := n.discard(key); err != nil {
			return 0, err
		}
		s = nil
	}
	switch {
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName == Node:
		return n.terminate(ctx, key, pod)
	case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return 0, nil
	case pod.Spec.NodeName == "":
		return n.schedule(ctx, pod)
	}
	if s == nil {
		made, err := n.furnish(ctx, key, pod)
		if err != nil {
			return 0, err
		}
		s = made
	}
	after := n.advance(ctx, s, pod, program)
	return after, n.reportProcess(ctx, s, pod)
}

// furnish gives a pod its address and its folder.
func (n *Nodes) furnish(ctx context.Context, key string, pod *corev1.Pod) (*sandbox, error) {
	ip, reserved, err := reserve(ctx, pod)
	if err != nil {
		return nil, err
	}
	s := &sandbox{
		uid: pod.UID, ip: ip, reserved: reserved, made: time.Now(), phase: corev1.PodPending, state: waiting("ContainerCreating", ""),
		folder: filepath.Join(n.options.Folder, string(pod.UID)),
		log:    filepath.Join(n.options.Logs, "pod-"+pod.Namespace+"-"+pod.Name+".log"),
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.sandboxes[key] = s
	return s, nil
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// advance starts the container of a pod, or processes that it has ended or has become ready.
func (n *Nodes) advance(ctx context.Context, s *sandbox, pod *corev1.Pod, program Program) time.Duration {
	switch {
	case s.phase == corev1.PodSucceeded || s.phase == corev1.PodFailed:
		return 0
	case s.process != nil && s.process.hasEnded():
		n.end(s, pod, false)
		return max(time.Until(s.next), 0)
	case s.process != nil:
		if s.ready = s.ready || probe(ctx, s.ip, pod.Spec.Containers[0].ReadinessProbe); !s.ready {
			return retry
		}
		return 0
	}
	rule := n.rule(pod)
	due := s.next
	if rule.Delay > 0 && s.made.Add(rule.Delay).After(due) {
		due = s.made.Add(rule.Delay)
	}
	switch left := time.Until(due); {
	case rule.Hold:
		// Its removal makes the queue return the pod again.
		return 0
	case left > 0:
		return left
	case rule.Fail != "":
		now := nowSeconds()
		s.finish(pod, &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: rule.Fail, StartedAt: now, FinishedAt: now}, false)
		return max(time.Until(s.next), 0)
	}
	process, reason, err := n.startContainer(ctx, s, pod, program)
	if err != nil {
		s.state = waiting(reason, err.Error())
		return retry
	}
	n.mutex.Lock()
	s.process = process
	n.mutex.Unlock()
	s.phase, s.state = corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: process.began}}
	s.ready = probe(ctx, s.ip, pod.Spec.Containers[0].ReadinessProbe)
	if !s.ready {
		return retry
	}
	return 0
}

// end processes that the process of a container has ended. It is the last one if the pod is being deleted.
func (n *Nodes) end(s *sandbox, pod *corev1.Pod, last bool) {
	process, container := s.process, &pod.Spec.Containers[0]
	n.mutex.Lock()
	s.process = nil
	n.mutex.Unlock()
	terminated := &corev1.ContainerStateTerminated{
		ExitCode: process.exitCode(), Reason: "Completed", StartedAt: process.began, FinishedAt: nowSeconds(),
		Message: terminationMessage(process.root, s.log, container, process.exitCode()),
	}
	if terminated.ExitCode != 0 {
		terminated.Reason = "Error"
	}
	s.finish(pod, terminated, last)
}

// finish decides what follows a container that has ended.
func (s *sandbox) finish(pod *corev1.Pod, terminated *corev1.ContainerStateTerminated, last bool) {
	s.ready, s.state, s.last = false, corev1.ContainerState{Terminated: terminated}, terminated
	policy := pod.Spec.RestartPolicy
	switch succeeded := terminated.ExitCode == 0; {
	case succeeded && (last || policy != corev1.RestartPolicyAlways):
		s.phase = corev1.PodSucceeded
	case last || policy == corev1.RestartPolicyNever:
		s.phase = corev1.PodFailed
	default:
		s.phase = corev1.PodRunning
		s.next = time.Now().Add(backoff(s.restarts))
		s.restarts++
	}
}

// reportProcess writes the status of a pod that runs as a process, if it has changed.
func (n *Nodes) reportProcess(ctx context.Context, s *sandbox, pod *corev1.Pod) error {
	status := pod.Status.DeepCopy()
	status.Phase, status.PodIP, status.PodIPs = s.phase, s.ip, []corev1.PodIP{{IP: s.ip}}
	if status.StartTime == nil {
		now := nowSeconds()
		status.StartTime = &now
	}
	container := corev1.ContainerStatus{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, State: s.state, Ready: s.ready,
		Started: new(s.state.Running != nil), RestartCount: s.restarts,
	}
	if s.last != nil && s.last != s.state.Terminated {
		container.LastTerminationState.Terminated = s.last
	}
	status.ContainerStatuses = []corev1.ContainerStatus{container}
	ready := corev1.ConditionFalse
	if s.ready {
		ready = corev1.ConditionTrue
	}
	status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	if equality.Semantic.DeepEqual(*status, pod.Status) {
		return nil
	}
	pod.Status = *status
	_, err := n.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, updateOptions)
	return err
}

const (
	// reservation is a UDP port at which nodes listen on the addresses of their pods, so that no two pods of planes on one machine have the same. It is
	// outside of the ports that Linux chooses.
	reservation = 64999
	attempts    = 20
)

// reserve returns a loopback address that no other pod has, and at which the container's ports are free.
func reserve(ctx context.Context, pod *corev1.Pod) (ip string, reserved net.PacketConn, err error) {
	var listen net.ListenConfig
	for range attempts {
		ip = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
		if reserved, err = listen.ListenPacket(ctx, "udp", net.JoinHostPort(ip, strconv.Itoa(reservation))); err != nil {
			continue
		}
		if err = portsFree(ctx, ip, pod); err == nil {
			return ip, reserved, nil
		}
		err = errors.Join(err, reserved.Close())
	}
	return "", nil, fmt.Errorf("looking for an address of the pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

func portsFree(ctx context.Context, ip string, pod *corev1.Pod) error {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
				continue
			}
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port.ContainerPort))))
			if err != nil {
				return err
			}
			if err := listener.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// probe reports whether a readinessProbe succeeds. Without one, and with one of another kind than httpGet and tcpSocket, a container is ready.
func probe(ctx context.Context, ip string, probe *corev1.Probe) bool {
	switch {
	case probe == nil:
	case probe.HTTPGet != nil && probe.HTTPGet.Port.Type == intstr.Int:
		return probeHTTP(ctx, ip, probe.HTTPGet)
	case probe.TCPSocket != nil && probe.TCPSocket.Port.Type == intstr.Int:
		dialed, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(ip, probe.TCPSocket.Port.String()))
		return err == nil && dialed.Close() == nil
	}
	return true
}

func probeHTTP(ctx context.Context, ip string, get *corev1.HTTPGetAction) bool {
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(ip, get.Port.String())+get.Path, nil)
	if err != nil {
		return false
	}
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet does
	}}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode >= 200 && response.StatusCode < 400
}

const (
	// mostMessage is how many bytes of a termination message are read, mostLog of a log that stands for one. The limits are kubelet's.
	mostMessage, mostLog = 4096, 2048
)

// terminationMessage returns what a container that has ended left as its message.
func terminationMessage(root, logPath string, container *corev1.Container, exitCode int32) string {
	// What cannot be read is no message.
	message, _ := os.ReadFile(filepath.Join(root, messagePath(container)))
	if len(message) == 0 && exitCode != 0 && container.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		message, _ = os.ReadFile(logPath)
		return string(bytes.TrimSpace(message[max(0, len(message)-mostLog):]))
	}
	return string(message[:min(len(message), mostMessage)])
}

func messagePath(container *corev1.Container) string {
	if container.TerminationMessagePath == "" {
		return corev1.TerminationMessagePathDefault
	}
	return container.TerminationMessagePath
}
