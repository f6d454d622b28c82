package policylibrary

import (
	"slices"
	"strings"
	"time"
)

// tick is the interval of reconciliations without a reported change.
const tick = 5 * time.Minute

// enabled is an enabled policy.
type enabled struct {
	name, digest string
}

// found is a stored policy.
type found struct {
	name string
	// ours is set if it carries the label of this release.
	ours bool
	// generation is that of its spec, digest that of the manifest that it was last applied from.
	generation int64
	digest     string
	// applied is the generation after this process applied it; 0 if it has not applied it.
	applied int64
}

// plan holds the names of the policies to change.
type plan struct {
	apply, remove []string
	// foreign are policies that are enabled but exist without the label.
	foreign []string
}

// decide returns the plan. stored are the policies that are enabled or carry the label.
func decide(switchedOn []enabled, stored []found) plan {
	var p plan
	byName := map[string]found{}
	for _, each := range stored {
		byName[each.name] = each
	}
	for _, want := range switchedOn {
		is, exists := byName[want.name]
		switch {
		case exists && !is.ours:
			p.foreign = append(p.foreign, want.name)
		case exists && is.digest == want.digest && is.generation == is.applied:
		default:
			p.apply = append(p.apply, want.name)
		}
	}
	for _, is := range stored {
		stays := slices.ContainsFunc(switchedOn, func(want enabled) bool { return want.name == is.name })
		if is.ours && !stays {
			p.remove = append(p.remove, is.name)
		}
	}
	slices.SortFunc(p.remove, strings.Compare)
	return p
}
