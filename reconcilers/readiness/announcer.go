package readiness

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

const (
	// quiet is the time without another flip for the same cause after which its event is written.
	quiet = 5 * time.Second
	// longest is the maximum time from the first flip to its event. A slow API server takes more than a minute for the statuses of 10 000 templates.
	longest = 5 * time.Minute
)

// announcer writes the events about flips: one for all templates of a namespace that flip for the same cause.
type announcer struct {
	recorder events.EventRecorder
	metrics  *metrics
	clock    clock.WithTicker

	mutex  sync.Mutex
	causes map[common]*collected
}

// common is what the flips of one event have in common.
type common struct {
	cause sources.Key
	ready bool
	// namespace of the templates. Their names are shown in no other.
	namespace string
}

// collected are flips that are not reported yet.
type collected struct {
	// flips have the last flip of each template.
	flips       map[types.NamespacedName]flip
	began, last time.Time
}

func newAnnouncer(recorder events.EventRecorder, m *metrics, c clock.WithTicker) *announcer {
	return &announcer{recorder: recorder, metrics: m, clock: c, causes: map[common]*collected{}}
}

// add reports a flip, at once if its cause is no source.
func (a *announcer) add(one flip) {
	if one.cause == (sources.Key{}) {
		a.write(reportOf([]flip{one}, nil))
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	key, now := common{one.cause, one.ready.Status == metav1.ConditionTrue, one.template.Namespace}, a.clock.Now()
	group := a.causes[key]
	if group == nil {
		group = &collected{flips: map[types.NamespacedName]flip{}, began: now}
		a.causes[key] = group
	}
	group.flips[one.template], group.last = one, now
}

// run reports flips until ctx ends, and then the remaining ones. identify returns what identifies a source in an event.
func (a *announcer) run(ctx context.Context, identify func(sources.Key) *metav1.PartialObjectMetadata) {
	ticker := a.clock.NewTicker(quiet / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			a.report(identify, true)
			return
		case <-ticker.C():
			a.report(identify, false)
		}
	}
}

// report writes the events that are due, or all of them.
func (a *announcer) report(identify func(sources.Key) *metav1.PartialObjectMetadata, all bool) {
	for _, flips := range a.due(all) {
		a.write(reportOf(flips, identify(flips[0].cause)))
	}
}

// due removes and returns the flips whose events are due, those for the same cause together, in the order of their first flips.
func (a *announcer) due(all bool) [][]flip {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := a.clock.Now()
	var groups []*collected
	for key, group := range a.causes {
		if all || now.Sub(group.last) >= quiet || now.Sub(group.began) >= longest {
			groups = append(groups, group)
			delete(a.causes, key)
		}
	}
	slices.SortFunc(groups, func(one, other *collected) int { return one.began.Compare(other.began) })
	var found [][]flip
	for _, group := range groups {
		flips := slices.Collect(maps.Values(group.flips))
		slices.SortFunc(flips, func(one, other flip) int { return strings.Compare(one.template.String(), other.template.String()) })
		found = append(found, flips)
	}
	return found
}

func (a *announcer) write(one report) {
	// related is nil if the event is about a template.
	object := objectTemplate
	if one.related != nil {
		object = objectSource
		a.recorder.Eventf(one.about, one.related, one.kind, one.reason, "CheckReadiness", "%s", one.note)
	} else {
		// A nil pointer in an interface is no nil interface.
		a.recorder.Eventf(one.about, nil, one.kind, one.reason, "CheckReadiness", "%s", one.note)
	}
	a.metrics.events.WithLabelValues(object).Inc()
}
