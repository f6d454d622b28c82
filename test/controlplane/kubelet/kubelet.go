// Package kubelet simulates the nodes of a cluster for the worker pods of CDI, which import, clone, upload and prepare volumes: it binds them to a
// node once their claims are bound, sets them running, and lets them succeed. Pods of a namespace that is served (Nodes.Serve) run and stay ready, as those
// of Deployments and DaemonSets do, and those of Jobs are executed. Pods with a label that was given to Nodes.RunProcesses run as processes of this machine. Other
// pods are ignored and stay Pending.
//
// Rules (Nodes.When) delay a pod, hold it, or let its container fail as a real one does: it is restarted again and again.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/vmstencil/stencil/test/controlplane/conflict"
)

// Node is the name of the fake node.
const Node = "node-1"

// workerLabel is on every worker pod of CDI.
const workerLabel = "cdi.kubevirt.io"

const (
	retry   = 200 * time.Millisecond
	workers = 4
	// beat is the time between two heartbeats, as kubelet's. After about four that are missing, kube-controller-manager taints the node.
	beat = 10 * time.Second
	// selectedNode is the annotation in which the scheduler names the node for which the volume of a claim is required.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// Rule changes how pods run.
type Rule struct {
	// Namespace and Prefix limit the rule to pods of one namespace, and to names that begin like this; empty is any.
	Namespace, Prefix string
	// Delay is how long the pod runs before it succeeds.
	Delay time.Duration
	// Hold leaves the pod running until the rule is removed.
	Hold bool
	// Fail makes the container end with this message, and be restarted.
	Fail string
}

// Nodes simulates the nodes of a cluster.
type Nodes struct {
	kube    kubernetes.Interface
	options Options
	queue   workqueue.TypedRateLimitingInterface[string]
	cancel  context.CancelFunc
	running sync.WaitGroup
	pods    cache.Store

	mutex sync.Mutex
	rules []*Rule
	// served are the functions that execute the pods of Jobs, by namespace.
	served map[string]func(ctx context.Context, pod *corev1.Pod) error
	// programs of pods that run as processes, by label; sandboxes are these pods, by namespace and name.
	programs  map[string]Program
	sandboxes map[string]*sandbox
}

// Start creates a node and simulates it until Stop.
func Start(ctx context.Context, config *rest.Config, options Options) (*Nodes, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the nodes: %w", err)
	}
	if err := register(ctx, kube); err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(kube, 0)
	informer := factory.Core().V1().Pods().Informer()
	n := &Nodes{
		kube: kube, options: options, cancel: cancel, pods: informer.GetStore(), served: map[string]func(context.Context, *corev1.Pod) error{},
		programs: map[string]Program{}, sandboxes: map[string]*sandbox{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemFastSlowRateLimiter[string](retry, retry, 1)),
	}
	enqueue := func(changed any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(changed); err == nil {
			n.queue.Add(key)
		}
	}
	// Handlers of an informer that does not run yet are always accepted.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, changed any) { enqueue(changed) }, DeleteFunc: enqueue,
	})
	factory.Start(life.Done())
	for range workers {
		n.running.Go(func() { n.work(life) })
	}
	n.running.Go(func() { n.live(life) })
	n.running.Go(func() {
		<-life.Done()
		factory.Shutdown()
	})
	return n, nil
}

// Stop ends the nodes and the processes of their pods, and waits for them.
func (n *Nodes) Stop() {
	n.cancel()
	n.queue.ShutDown()
	n.running.Wait()
	n.mutex.Lock()
	keys := slices.Collect(maps.Keys(n.sandboxes))
	n.mutex.Unlock()
	for _, key := range keys {
		// Files that remain are deleted with the plane.
		_ = n.discard(key)
	}
}

// When adds a rule. If several rules apply, the first counts. The returned function removes the rule, and pods that it held proceed.
func (n *Nodes) When(rule Rule) (remove func()) {
	added := &rule
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.rules = append(n.rules, added)
	return sync.OnceFunc(func() {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		for i, one := range n.rules {
			if one == added {
				n.rules = append(n.rules[:i:i], n.rules[i+1:]...)
				break
			}
		}
		for _, key := range n.pods.ListKeys() {
			n.queue.Add(key)
		}
	})
}

// Serve lets the pods of a namespace run. A pod that is not restarted always, as that of a Job, is executed by a function: it succeeds when the function
// returns, and fails if that returns an error.
func (n *Nodes) Serve(namespace string, execute func(ctx context.Context, pod *corev1.Pod) error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.served[namespace] = execute
	for _, key := range n.pods.ListKeys() {
		n.queue.Add(key)
	}
}

// executes returns what executes the pods of a namespace, and whether they run at all.
func (n *Nodes) executes(namespace string) (execute func(context.Context, *corev1.Pod) error, runs bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	execute, runs = n.served[namespace]
	return execute, runs
}

func (n *Nodes) rule(pod *corev1.Pod) Rule {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, one := range n.rules {
		if (one.Namespace == "" || one.Namespace == pod.Namespace) && strings.HasPrefix(pod.Name, one.Prefix) {
			return *one
		}
	}
	return Rule{}
}

// register creates the node with the status of a ready one.
func register(ctx context.Context, kube kubernetes.Interface) error {
	nodes := kube.CoreV1().Nodes()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: Node, Labels: map[string]string{
			corev1.LabelHostname: Node, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH, "kubevirt.io/schedulable": "true",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the node %s: %w", Node, err)
	}
	now := metav1.Now()
	err = conflict.Retry(func() error {
		node, err := nodes.Get(ctx, Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
		}}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("reporting the node %s as ready: %w", Node, err)
	}
	return nil
}

// live renews the Lease of the node. What fails is tried again with the next heartbeat.
func (n *Nodes) live(ctx context.Context) {
	ticks := time.NewTicker(beat)
	defer ticks.Stop()
	for {
		_ = renew(ctx, n.kube)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func renew(ctx context.Context, kube kubernetes.Interface) error {
	leases, now := kube.CoordinationV1().Leases(corev1.NamespaceNodeLease), metav1.NowMicro()
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	_, err := leases.Patch(ctx, Node, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Node}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(Node), LeaseDurationSeconds: new(int32(40)), RenewTime: &now,
		}}, metav1.CreateOptions{})
	}
	return err
}

func (n *Nodes) work(ctx context.Context) {
	for {
		key, ended := n.queue.Get()
		if ended {
			return
		}
		after, err := n.simulate(ctx, key)
		switch {
		case ctx.Err() != nil || apierrors.IsNotFound(err):
		case err != nil:
			n.queue.AddAfter(key, retry)
		case after > 0:
			n.queue.AddAfter(key, after)
		}
		n.queue.Done(key)
	}
}

// simulate performs the next step of a pod. It returns after how long the next step may be due.
func (n *Nodes) simulate(ctx context.Context, key string) (time.Duration, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, fmt.Errorf("reading the key of a pod: %w", err)
	}
	pod, err := n.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, n.discard(key)
	}
	if err != nil {
		return 0, err
	}
	if program := n.program(pod); program != nil {
		return n.simulateProcess(ctx, key, pod, program)
	}
	_, worker := pod.Labels[workerLabel]
	execute, served := n.executes(namespace)
	switch {
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName == Node:
		now := int64(0)
		return 0, n.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	case !worker && !served || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return 0, nil
	case pod.Spec.NodeName == "":
		return n.schedule(ctx, pod)
	}
	if served {
		return 0, n.serve(ctx, pod, execute)
	}
	rule := n.rule(pod)
	switch {
	case rule.Fail != "":
		return 0, n.crash(ctx, pod, rule.Fail)
	case rule.Hold, pod.Status.Phase != corev1.PodRunning:
		return max(rule.Delay, retry), n.run(ctx, pod)
	case rule.Delay > 0 && pod.Status.StartTime != nil && time.Since(pod.Status.StartTime.Time) < rule.Delay:
		return rule.Delay, nil
	}
	if err := n.imported(ctx, pod); err != nil {
		return 0, err
	}
	return 0, n.succeed(ctx, pod)
}

// schedule binds a pod to the node when all its claims are bound, and annotates claims that wait for a consumer with the node.
func (n *Nodes) schedule(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := n.kube.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return retry, nil
		}
		if err != nil {
			return 0, err
		}
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if claim.Annotations[selectedNode] == "" {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, selectedNode, Node)
			if _, err := n.kube.CoreV1().PersistentVolumeClaims(pod.Namespace).Patch(ctx, claim.Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				return 0, err
			}
		}
		return retry, nil
	}
	err := n.kube.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: Node},
	}, metav1.CreateOptions{})
	return retry, err
}

func (n *Nodes) run(ctx context.Context, pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodRunning && pod.Status.ContainerStatuses[0].State.Running != nil {
		return nil
	}
	now := metav1.Now()
	return n.report(ctx, pod, corev1.PodRunning, corev1.ContainerStatus{
		Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	})
}

// serve runs a pod of a served namespace.
func (n *Nodes) serve(ctx context.Context, pod *corev1.Pod, execute func(context.Context, *corev1.Pod) error) error {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return n.run(ctx, pod)
	}
	if err := execute(ctx, pod); err != nil {
		return errors.Join(err, n.fail(ctx, pod, err.Error()))
	}
	return n.succeed(ctx, pod)
}

func (n *Nodes) fail(ctx context.Context, pod *corev1.Pod, message string) error {
	now := metav1.Now()
	return n.report(ctx, pod, corev1.PodFailed, corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: message, StartedAt: now, FinishedAt: now}},
	})
}

func (n *Nodes) succeed(ctx context.Context, pod *corev1.Pod) error {
	now := metav1.Now()
	return n.report(ctx, pod, corev1.PodSucceeded, corev1.ContainerStatus{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: "{}", StartedAt: now, FinishedAt: now}},
	})
}

// crash reports a container that ended with a message and is about to be restarted, which is when CDI reads the message.
func (n *Nodes) crash(ctx context.Context, pod *corev1.Pod, message string) error {
	if statuses := pod.Status.ContainerStatuses; len(statuses) > 0 && statuses[0].State.Terminated != nil {
		return nil
	}
	now := metav1.Now()
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: message, StartedAt: now, FinishedAt: now,
	}}
	return n.report(ctx, pod, corev1.PodRunning, corev1.ContainerStatus{
		RestartCount: 1, State: ended, LastTerminationState: ended,
	})
}

// report writes the status of a pod, with one like this for each of its containers. After a conflict, as after any error, the queue makes play read
// the pod again and decide again.
func (n *Nodes) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase, container corev1.ContainerStatus) error {
	if len(pod.Spec.Containers) == 0 {
		return errors.New("a pod without containers")
	}
	if pod.Status.StartTime == nil {
		now := metav1.Now()
		pod.Status.StartTime = &now
	}
	pod.Status.Phase, pod.Status.PodIP = phase, "127.0.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.ContainerStatuses = nil
	for _, one := range pod.Spec.Containers {
		status := container
		status.Name, status.Image = one.Name, one.Image
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	ready := corev1.ConditionFalse
	if container.Ready {
		ready = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	_, err := n.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
