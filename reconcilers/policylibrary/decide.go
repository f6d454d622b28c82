package policylibrary

import (
	"slices"
	"strings"
	"time"
)

// tick is when everything is looked at again although no watch has told of a change.
const tick = 5 * time.Minute

// wanted is a policy that is switched on.
type wanted struct {
	name, digest string
}

// found is a policy as it is stored.
type found struct {
	name string
	// ours tells whether it carries the label of this release.
	ours bool
	// generation is that of its spec, digest that of the manifest that it was last made of.
	generation int64
	digest     string
	// applied is the generation that this process found after it had applied it, 0
	// when it has not.
	applied int64
}

// plan is what to do, each by name.
type plan struct {
	apply, remove []string
	// foreign are policies that somebody else has made under a name that is wanted.
	foreign []string
}

// decide says what to do. Found holds the policies that are wanted or carry the label.
func decide(switchedOn []wanted, stored []found) plan {
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
		stays := slices.ContainsFunc(switchedOn, func(want wanted) bool { return want.name == is.name })
		if is.ours && !stays {
			p.remove = append(p.remove, is.name)
		}
	}
	slices.SortFunc(p.remove, strings.Compare)
	return p
}
