package selfprotection

import "time"

// Times of the decision.
const (
	// missingGracePeriod is how long an object must be missing before it is restored. In that time, an uninstallation removes the manager's rights or
	// the ConfigMap.
	missingGracePeriod = 2 * time.Second
	// quiet is how long nothing is restored after a write of the ConfigMap, because an upgrade may be in progress.
	quiet = 10 * time.Second
	// spacing is the minimum time between two restorations of the same object, so that a client that changes it repeatedly does not
	// overload the API server.
	spacing = time.Second
	// requirementTick is how often a missing ConfigMap that an object requires is read again. It is missing at a first installation only.
	requirementTick = 500 * time.Millisecond
	// tick is the interval of reconciliations without a reported change.
	tick = 5 * time.Minute
)

// observed is the state of one protected object.
type observed struct {
	identity
	// present is set if it exists, same if it equals its manifest.
	present, same bool
	// missingSince is when it was first observed missing.
	missingSince time.Time
	// restored is when it was last restored by this process.
	restored time.Time
	// byManager is set if the manager creates the object instead of Helm, incomplete if it is to add the webhooks of one that exists, and held if the
	// ConfigMap or the caBundle that this requires does not exist.
	byManager, incomplete, held bool
	// reportOnly is set for an object that is not restored, and known if its current problem has been reported.
	reportOnly, reported bool
}

// state is the input of decide.
type state struct {
	now time.Time
	// active is set if there is a release to protect.
	active bool
	// quietUntil is the end of the quiet time after the release's last change.
	quietUntil time.Time
	objects    []observed
}

// plan is the result of decide.
type plan struct {
	// create and replace are objects to restore.
	create, replace []identity
	// report are objects that differ or are missing, and are not restored.
	report []identity
	// again is the delay until the next reconciliation.
	again time.Duration
}

// decide returns what to restore and what to report now.
func decide(s state) plan {
	p := plan{again: tick}
	if !s.active {
		// The watch of the ConfigMap reports when that changes.
		p.again = 0
		return p
	}
	for _, object := range s.objects {
		if object.present && object.same || object.reported {
			continue
		}
		if (!object.present || object.incomplete) && object.held {
			p.again = min(p.again, requirementTick)
			continue
		}
		due := later(s.quietUntil, object.restored.Add(spacing))
		switch {
		case !object.present && object.byManager, object.incomplete:
			// Neither does an upgrade add it, nor an uninstallation remove it.
			due = object.restored.Add(spacing)
		case !object.present:
			due = later(due, object.missingSince.Add(missingGracePeriod))
		}
		switch wait := due.Sub(s.now); {
		case wait > 0:
			p.again = min(p.again, wait)
		case object.reportOnly && (object.present || !object.byManager):
			p.report = append(p.report, object.identity)
		case object.present:
			p.replace = append(p.replace, object.identity)
		default:
			p.create = append(p.create, object.identity)
		}
	}
	return p
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// quietAfter returns the end of the quiet time that follows a change of the ConfigMap. written is the time of the API server's clock, seen
// is when this process observed the change. A difference of the clocks does not extend the quiet time.
func quietAfter(written, seen time.Time) time.Time {
	if written.After(seen) {
		written = seen
	}
	return written.Add(quiet)
}
