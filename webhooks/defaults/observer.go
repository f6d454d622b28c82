package defaults

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/vmstencil/stencil/defaulting"
)

// Environments tells with what the defaulter makes its answers; a client.Client does.
type Environments interface {
	Environment(ctx context.Context) (*defaulting.Environment, error)
}

// KubeVirts is the KubeVirt of the cluster; a kubevirtconfig.Cache is.
type KubeVirts interface {
	Clusters
	// Object refers to the KubeVirt object; its name is empty when there is none.
	Object() corev1.ObjectReference
	Changed() <-chan struct{}
}

// Interval is how often an Observer looks.
const Interval = 15 * time.Second

// patience is how long the defaulter may take to describe itself: the first time QEMU
// is asked for its machine types.
const patience = 10 * time.Second

// ObserverOptions are what an Observer needs.
type ObserverOptions struct {
	Defaulter Environments
	KubeVirt  KubeVirts
	Metrics   *Metrics
	Recorder  events.EventRecorder
	// Elected is closed when this replica leads; only then it records events.
	Elected  <-chan struct{}
	Logger   logr.Logger
	Interval time.Duration
}

// Observer watches whether the defaulter answers, and whether it reproduces the
// KubeVirt of the cluster. It says so once and not with every machine.
type Observer struct {
	ObserverOptions
	// up and differs are what was found last.
	up      bool
	differs string
	looked  bool
	// told is what the last event was about.
	told string
}

// NewObserver returns an Observer that has not started.
func NewObserver(o ObserverOptions) *Observer {
	if o.Interval == 0 {
		o.Interval = Interval
	}
	return &Observer{ObserverOptions: o}
}

// NeedLeaderElection says that every replica watches its own sidecar.
func (o *Observer) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (o *Observer) Start(ctx context.Context) error {
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	elected := o.Elected
	for {
		changed := o.KubeVirt.Changed()
		o.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
		case <-elected:
			// It stays closed, and is looked at again by tell.
			elected = nil
		}
	}
}

// look asks the defaulter once.
func (o *Observer) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	environment, err := o.Defaulter.Environment(asking)
	if ctx.Err() != nil {
		return
	}
	if up := err == nil; up != o.up || !o.looked {
		o.up, o.looked = up, true
		o.Metrics.up.Set(number(up))
		if up {
			o.Logger.Info("the defaulter answers", "libvirt", environment.Libvirt, "qemu", environment.QEMU, "kubevirt", environment.KubeVirt)
		} else {
			o.Logger.Info("the defaulter does not answer", "cause", err.Error())
		}
	}
	if err != nil {
		return
	}
	differs := ""
	if cluster := o.KubeVirt.Cluster().KubeVirt; cluster != "" && minor(cluster) != minor(environment.KubeVirt) {
		differs = "the cluster runs KubeVirt " + cluster + " and the defaulter reproduces " + environment.KubeVirt +
			": machine types are not pinned and addresses not written until its image is replaced"
	}
	if differs != o.differs {
		o.differs = differs
		o.Metrics.differs.Set(number(differs != ""))
		if differs != "" {
			o.Logger.Info("warning: " + differs)
		} else {
			o.Logger.Info("the defaulter reproduces the cluster's KubeVirt again")
		}
	}
	o.tell()
}

// tell records an event about what the versions have come to, once.
func (o *Observer) tell() {
	if o.differs == "" || o.differs == o.told {
		o.told = o.differs
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
	o.told = o.differs
	o.Recorder.Eventf(&object, nil, corev1.EventTypeWarning, "DefaulterOfAnotherKubeVirt", "Default", "%s", o.differs)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// minor is a version without its last part.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
