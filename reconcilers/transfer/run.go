package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/powers"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
	"github.com/vmstencil/stencil/transfer"
)

const (
	// pollInterval is the time between two reads of the state of a mover.
	pollInterval = 2 * time.Second
	// maximumMessage is the maximum length of a message in a status, in bytes.
	maximumMessage = 1 << 10
)

// Options are the dependencies and settings of the reconcilers.
type Options struct {
	Config *rest.Config
	// Account is the username as which everything but statuses is written.
	Account string
	// KeySecret is the name of the Secret with the key of transfers, in Settings.Namespace.
	KeySecret string
	Settings  Settings
	// Recorder receives events about imports and exports. Optional.
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
	// Clock is for deadlines and the times of conditions. Default: the real clock.
	Clock clock.PassiveClock
}

// runner has what imports, exports and examinations share.
type runner struct {
	// manager writes statuses, cluster everything else.
	manager, cluster client.Client
	// permissions of users at the moment of the call.
	permissions powers.Actions
	// sources finds the disks that a template names, with what the manager may read.
	sources powers.Resolver
	keys    *keys
	movers  moverClient
	slots   *slots
	// statuses writes conditions of templates.
	statuses *statuswriter.Writer
	settings Settings
	recorder events.EventRecorder
	metrics  *metrics
	clock    clock.PassiveClock
}

func newRunner(o Options) (*runner, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	own, err := newClient(o.Config, "")
	if err != nil {
		return nil, err
	}
	cluster, err := newClient(o.Config, o.Account)
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making the client of transfers: %w", err)
	}
	waiting := &slots{
		limit: o.Settings.Limit, perNamespace: min(o.Settings.LimitPerNamespace, o.Settings.Limit), held: map[place]bool{}, waiting: map[place]time.Time{},
		recover: func(ctx context.Context) ([]place, error) { return inProgress(ctx, own) },
	}
	m, err := newMetrics(o.Registerer, waiting.counts)
	if err != nil {
		return nil, err
	}
	statuses, err := statuswriter.New(o.Config)
	if err != nil {
		return nil, err
	}
	sources, err := disks.NewAPIServer(o.Config)
	if err != nil {
		return nil, err
	}
	permissions, err := powers.Checker(o.Config)
	if err != nil {
		return nil, err
	}
	return &runner{
		permissions: permissions, sources: sources, movers: movers{}, statuses: statuses, manager: own, cluster: cluster, keys: &keys{secrets: typed.CoreV1().Secrets(o.Settings.Namespace), name: o.KeySecret}, slots: waiting,
		settings: o.Settings, recorder: o.Recorder, metrics: m, clock: o.Clock,
	}, nil
}

// observed is what is known about a mover.
type observed struct {
	// state is nil as long as the mover does not answer.
	state *transfer.State
	// ip of its pod.
	ip string
	// missing is true if there is no Job.
	missing bool
	// waiting is what the mover waits for, if it does not answer.
	waiting string
	// template is the version of the template that an export reads.
	template string
}

// observe reads how far the mover of a Job is. It fails permanently if the Job has.
func (r *runner) observe(ctx context.Context, o owner, jobName string, who *identity) (*observed, error) {
	running := &batchv1.Job{}
	found, err := get(ctx, r.cluster, o.namespace, jobName, running)
	if err != nil {
		return nil, err
	}
	// The account does not read events.
	waiting := fmt.Sprintf("waiting for the pod of the mover: if there is none for long, the events of Job %s say why", jobName)
	if !found {
		return &observed{missing: true, waiting: waiting}, nil
	}
	pods := &corev1.PodList{}
	if err := r.cluster.List(ctx, pods, client.InNamespace(o.namespace), client.MatchingLabels{batchv1.JobNameLabel: jobName}); err != nil {
		return nil, fmt.Errorf("listing the pods of the mover: %w", err)
	}
	pod := latest(pods.Items, running)
	for _, condition := range running.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return nil, &permanentError{transfer.ReasonMoverFailed, "the mover has failed again and again: " + lastWords(pod, condition.Message)}
		}
	}
	switch {
	case pod == nil:
		return &observed{waiting: waiting}, nil
	case pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning:
		return &observed{waiting: waitingFor(pod)}, nil
	}
	state, err := r.movers.state(ctx, who, pod.Status.PodIP)
	if err != nil {
		return &observed{ip: pod.Status.PodIP, waiting: fmt.Sprintf("waiting for pod %s of the mover, which does not answer: %v", pod.Name, err)}, nil
	}
	return &observed{state: state, ip: pod.Status.PodIP, template: running.Annotations[annotationTemplateVersion]}, nil
}

// latest returns the newest pod that belongs to a Job; nil if there is none.
func latest(pods []corev1.Pod, of *batchv1.Job) *corev1.Pod {
	var newest *corev1.Pod
	for i := range pods {
		if pod := &pods[i]; metav1.IsControlledBy(pod, of) && pod.DeletionTimestamp == nil && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	return newest
}

// waitingFor describes why a pod does not run.
func waitingFor(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
			return fmt.Sprintf("waiting for pod %s: %s: %s", pod.Name, waiting.Reason, waiting.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("waiting for pod %s: %s", pod.Name, condition.Message)
		}
	}
	return fmt.Sprintf("waiting for pod %s, which does not run yet", pod.Name)
}

// lastWords returns the last message of a mover; otherwise another text.
func lastWords(pod *corev1.Pod, otherwise string) string {
	if pod == nil {
		return otherwise
	}
	for _, status := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.Message != "" {
				return state.Terminated.Message
			}
		}
	}
	return otherwise
}

func (r *runner) deleteJob(ctx context.Context, o owner, name string) error {
	return remove(ctx, r.cluster, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name}})
}

// failure returns the permanent error that a mover reports; nil if it has not failed, or may succeed when it starts again.
func failure(state *transfer.State) error {
	if state == nil || state.Phase != transfer.Failed || state.Failure == nil || state.Failure.Retry {
		return nil
	}
	return &permanentError{state.Failure.Reason, excerpt.Of(state.Failure.Message, maximumMessage)}
}

// lasting reports whether an error of the API server cannot be resolved by retries.
func lasting(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// percentOf returns done of total in percent, and less than 100 until all is done.
func percentOf(done, total int64) int32 {
	if total <= 0 {
		return 0
	}
	return int32(min(float64(done)/float64(total), 1) * 100)
}

// progressOf converts what a mover reports.
func progressOf(disks []transfer.Progress) (converted []v1beta1.TransferDisk, percent int32) {
	var done, total int64
	for _, each := range disks {
		converted = append(converted, v1beta1.TransferDisk{
			Name: each.Name, Bytes: each.Done, Total: each.Total, Percent: percentOf(each.Done, each.Total), Digest: each.Digest,
		})
		done, total = done+each.Done, total+each.Total
	}
	return converted, percentOf(done, total)
}
