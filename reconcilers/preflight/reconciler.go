package preflight

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/installation"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/internal/preflight"
	"github.com/vmstencil/stencil/reconcilers/internal/single"
)

const (
	controllerName = "installation"
	// maximumNote is the maximum length of an event's note in bytes.
	maximumNote = 1 << 10

	// Delays between attempts after a failure.
	shortestRetry = time.Second
	longestRetry  = time.Minute
)

// Reasons of events.
const (
	reasonFound  = "InstallationFinding"
	reasonSolved = "InstallationFindingSolved"
	actionCheck  = "CheckInstallation"
)

// Options are the dependencies of a Reconciler.
type Options struct {
	Config *rest.Config
	// Release is Stencil's Helm release, NAMESPACE/NAME.
	Release string
	// TemplateAPI is the component that serves the API of templates.
	TemplateAPI installation.TemplateAPI
	// Interval is the time between two checks.
	Interval time.Duration
	// Webhooks reports whether webhooks are checked that are called after Stencil's defaults.
	Webhooks   bool
	Recorder   events.EventRecorder
	Registerer prometheus.Registerer
}

// Reconciler checks the installation. It has a single request.
type Reconciler struct {
	options  Options
	client   preflight.Client
	findings *prometheus.GaugeVec
	// reported are the findings that were reported last and are not solved.
	reported map[problem]bool
	// series of the metric, by level and subject.
	series map[[2]string]float64
}

// problem identifies a finding: its text may change with the progress of a rollout.
type problem struct {
	level           installation.Level
	subject, action string
}

// New returns a Reconciler. It fails if the metrics are already registered.
func New(o Options) (*Reconciler, error) {
	client, err := newCluster(o.Config)
	if err != nil {
		return nil, err
	}
	r := &Reconciler{options: o, client: client, findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stencil_installation_findings",
		Help: "Findings about KubeVirt's own template component, the definitions that it shares with Stencil, and webhooks after Stencil's, by level (ok, warning, problem) and subject.",
	}, []string{"level", "subject"})}
	if err := o.Registerer.Register(r.findings); err != nil {
		return nil, fmt.Errorf("registering the metrics of the installation: %w", err)
	}
	return r, nil
}

// SetupWithManager adds the reconciler to the manager, which runs it on the leader.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return single.Add(mgr, single.Controller{Name: controllerName, Reconciler: r, ShortestRetry: shortestRetry, LongestRetry: longestRetry}, single.AtStart(reconcile.Request{}))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	_, name, _ := strings.Cut(r.options.Release, "/")
	state, err := preflight.Read(ctx, r.client, name, preflight.Extent{TemplateAPI: r.options.TemplateAPI, Webhooks: r.options.Webhooks})
	if err != nil {
		return reconcile.Result{}, err
	}
	r.report(ctx, state, installation.Check(state, r.options.Release))
	return reconcile.Result{RequeueAfter: r.options.Interval}, nil
}

// report writes the metric, and events about what has changed.
func (r *Reconciler) report(ctx context.Context, state installation.State, findings []installation.Finding) {
	current, open, series := map[problem]bool{}, map[string]bool{}, map[[2]string]float64{}
	for _, f := range findings {
		if f.Subject == "CDI" {
			// It is not read: Stencil works without it.
			continue
		}
		series[[2]string{string(f.Level), f.Subject}]++
		if f.Level == installation.OK {
			continue
		}
		key := problem{f.Level, f.Subject, f.Action}
		current[key], open[f.Subject] = true, true
		if !r.reported[key] {
			logf.FromContext(ctx).Info("installation finding", "level", f.Level, "subject", f.Subject, "found", f.Found, "action", f.Action)
			r.event(state, f.Subject, corev1.EventTypeWarning, reasonFound, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", f.Level, f.Found, f.Action), ": "))
		}
	}
	// Series that stay are not absent for a moment: an alert would begin to wait again.
	for labels, n := range series {
		r.findings.WithLabelValues(labels[:]...).Set(n)
	}
	for labels := range r.series {
		if _, stays := series[labels]; !stays {
			r.findings.DeleteLabelValues(labels[:]...)
		}
	}
	r.series = series
	for key := range r.reported {
		if !open[key.subject] {
			r.event(state, key.subject, corev1.EventTypeNormal, reasonSolved, fmt.Sprintf("the %s about %s is solved", key.level, key.subject))
		}
	}
	r.reported = current
}

// event records an event about the object that a finding is about.
func (r *Reconciler) event(state installation.State, subject, severity, reason, note string) {
	about := &metav1.PartialObjectMetadata{}
	kind, name, _ := strings.Cut(subject, " ")
	switch {
	case kind == "MutatingWebhookConfiguration":
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		about.Name = name
	case kind == "APIService":
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: kind})
		about.Name = name
	case kind != "CustomResourceDefinition" && len(state.KubeVirts) > 0:
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "KubeVirt"})
		about.Namespace, about.Name = state.KubeVirts[0].Namespace, state.KubeVirts[0].Name
	default:
		about.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if about.Name = name; kind != "CustomResourceDefinition" {
			about.Name = installation.Definitions[0]
		}
	}
	r.options.Recorder.Eventf(about, nil, severity, reason, actionCheck, "%s", excerpt.Of(note, maximumNote))
}
