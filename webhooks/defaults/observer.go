package defaults

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/internal/guestdefaults"
)

// Environments returns the versions that the defaulter reproduces; a client.Client implements it.
type Environments interface {
	Environment(ctx context.Context) (*defaulting.Environment, error)
}

// KubeVirts returns the KubeVirt of the cluster; a kubevirtconfig.Cache implements it.
type KubeVirts interface {
	guestdefaults.Clusters
	// Object returns a reference to the KubeVirt object; its name is empty if there is none.
	Object() corev1.ObjectReference
	Changed() <-chan struct{}
}

// Interval is the default interval between two checks of an Observer.
const Interval = 15 * time.Second

// environmentTimeout is the timeout of a request for the defaulter's environment. The first one queries QEMU for its machine
// types.
const environmentTimeout = 10 * time.Second

// ObserverOptions are the dependencies of an Observer.
type ObserverOptions struct {
	Defaulter Environments
	KubeVirt  KubeVirts
	Metrics   *Metrics
	Recorder  events.EventRecorder
	// Elected is closed when this replica becomes leader. Only the leader records events.
	Elected  <-chan struct{}
	Logger   logr.Logger
	Interval time.Duration
}

// Observer checks whether the defaulter responds, and whether it reproduces the KubeVirt version of the cluster. It
// reports each change once and not for every VM.
type Observer struct {
	ObserverOptions
	// up and differs are the results of the last check.
	up      bool
	differs string
	checked bool
	// lastEvent is the content of the last event.
	lastEvent string
	// target is the version that KubeVirt was being updated to at the last check.
	target string
}

// NewObserver returns an Observer that has not started.
func NewObserver(o ObserverOptions) *Observer {
	if o.Interval == 0 {
		o.Interval = Interval
	}
	return &Observer{ObserverOptions: o}
}

// NeedLeaderElection returns false: every replica checks its own sidecar.
func (o *Observer) NeedLeaderElection() bool { return false }

// Start checks until the context ends.
func (o *Observer) Start(ctx context.Context) error {
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	elected := o.Elected
	for {
		changed := o.KubeVirt.Changed()
		o.check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
		case <-elected:
			// The channel stays closed; recording events reads it again.
			elected = nil
		}
	}
}

// check checks the defaulter once.
func (o *Observer) check(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, environmentTimeout)
	defer cancel()
	environment, err := o.Defaulter.Environment(limited)
	if ctx.Err() != nil {
		return
	}
	if up := err == nil; up != o.up || !o.checked {
		o.up, o.checked = up, true
		o.Metrics.up.Set(number(up))
		if up {
			o.Logger.Info("the defaulter answers", "libvirt", environment.Libvirt, "qemu", environment.QEMU, "image", environment.Image, "reproduces", environment.Reproduces)
		} else {
			o.Logger.Info("the defaulter does not answer", "cause", err.Error())
		}
	}
	if err != nil {
		return
	}
	cluster := o.KubeVirt.Cluster()
	o.reportUpdate(cluster)
	differs := difference(cluster, environment)
	if differs != o.differs {
		o.differs = differs
		o.Metrics.differs.Set(number(differs != ""))
		if differs != "" {
			o.Logger.Info("warning: " + differs)
		} else {
			o.Logger.Info("the defaulter reproduces the cluster's KubeVirt again")
		}
	}
	o.recordEvent()
}

// reportUpdate logs the begin and the end of an update of KubeVirt.
func (o *Observer) reportUpdate(cluster defaulting.Cluster) {
	if cluster.Target == o.target {
		return
	}
	o.target = cluster.Target
	if o.target == "" {
		o.Logger.Info("the update of KubeVirt is complete", "kubevirt", cluster.KubeVirt)
		return
	}
	o.Logger.Info("KubeVirt is being updated: only defaults on which both versions agree are written", "kubevirt", cluster.KubeVirt, "target", cluster.Target)
}

// difference returns what is not written because the defaulter does not reproduce the cluster's KubeVirt, or has the libvirt of
// another one; empty if there is nothing.
func difference(cluster defaulting.Cluster, environment *defaulting.Environment) string {
	for _, version := range []string{cluster.KubeVirt, cluster.Target} {
		if version == "" {
			continue
		}
		if !slices.ContainsFunc(environment.Reproduces, func(known string) bool { return minor(known) == minor(version) }) {
			return "the cluster runs KubeVirt " + version + " and the defaulter reproduces " + strings.Join(environment.Reproduces, ", ") +
				": machine types are not pinned and addresses not written until the defaulter is updated"
		}
		if environment.Image != "" && minor(environment.Image) != minor(version) {
			return "the cluster runs KubeVirt " + version + " and the defaulter has the libvirt and QEMU of " + environment.Image +
				": machine types are not pinned until its image is replaced"
		}
	}
	return ""
}

// recordEvent records an event about a version difference, once.
func (o *Observer) recordEvent() {
	if o.differs == "" || o.differs == o.lastEvent {
		o.lastEvent = o.differs
		return
	}
	object := o.KubeVirt.Object()
	select {
	case <-o.Elected:
	default:
		return
	}
	if object.Name == "" {
		return
	}
	o.lastEvent = o.differs
	o.Recorder.Eventf(&object, nil, corev1.EventTypeWarning, "DefaulterOfAnotherKubeVirt", "Default", "%s", o.differs)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// minor returns the major and minor parts of a version.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
