package selfprotection

import "time"

// Times of the decision.
const (
	// patience is how long an object has to be missing before it is restored. An uninstallation takes the manager's rights
	// or the ConfigMap away in that time.
	patience = 2 * time.Second
	// quiet is how long nothing is restored after the ConfigMap was written, because an upgrade is on its way.
	quiet = 10 * time.Second
	// spacing is the least time between two restorations of the same object. Whoever insists on changing it is
	// answered, and the API server is not flooded.
	spacing = time.Second
	// requirementTick is when a ConfigMap that an object requires is looked for again. It is missing at a first installation only.
	requirementTick = 500 * time.Millisecond
	// tick is when everything is looked at again although no watch has told of a change.
	tick = 5 * time.Minute
)

// observed is one protected object as it was found.
type observed struct {
	identity
	// present tells whether it exists, same whether it is as it should be.
	present, same bool
	// missingSince is when it was first found missing.
	missingSince time.Time
	// restored is when it was last restored by this process.
	restored time.Time
	// byManager tells that Helm does not create it, and held that the ConfigMap which it requires does not exist.
	byManager, held bool
	// reportOnly is set for an object that is not restored, and known when what is wrong with it was reported already.
	reportOnly, known bool
}

// state is what is gathered.
type state struct {
	now time.Time
	// active tells whether there is a release to protect.
	active bool
	// quietUntil is the end of the quiet after the release's last change.
	quietUntil time.Time
	objects    []observed
}

// plan is what to do.
type plan struct {
	// create and replace are objects to restore.
	create, replace []identity
	// report are objects that are not as they should be, and not restored.
	report []identity
	// again is how long to wait until the next look.
	again time.Duration
}

// decide returns what to restore and what to report now.
func decide(s state) plan {
	p := plan{again: tick}
	if !s.active {
		// The watch of the ConfigMap tells when that changes.
		p.again = 0
		return p
	}
	for _, object := range s.objects {
		if object.present && object.same || object.known {
			continue
		}
		if !object.present && object.held {
			p.again = min(p.again, requirementTick)
			continue
		}
		due := later(s.quietUntil, object.restored.Add(spacing))
		switch {
		case !object.present && object.byManager:
			// No upgrade creates it, and no uninstallation deletes it by itself.
			due = object.restored.Add(spacing)
		case !object.present:
			due = later(due, object.missingSince.Add(patience))
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

// quietAfter returns the end of the quiet that follows a change of the ConfigMap. written is what the API server's clock
// said, seen is when this process found the change. The clocks may differ; nobody waits longer for that.
func quietAfter(written, seen time.Time) time.Time {
	if written.After(seen) {
		written = seen
	}
	return written.Add(quiet)
}
