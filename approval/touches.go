package approval

import (
	"encoding/json"
	"slices"
)

const (
	// MaxTouched is how many places Changes and UserSpecified distinguish. Above it, whole sections are evaluated.
	MaxTouched = 2048

	// maxDepth is how deep they descend. Below it, two values are compared as a whole. The longest paths of a VirtualMachine have about fifteen
	// steps.
	maxDepth = 48
)

// touches collects places while two trees are walked.
type touches struct {
	at    Path // the current place
	skip  func(key string) bool
	found []Path
	// sections are the sections begun so far in which something was found.
	sections []Path
	begun    Path
}

func (t *touches) begin(path Path, skip func(string) bool) {
	t.begun = path
	t.at = append(t.at[:0], path...)
	t.skip = skip
}

func (t *touches) end() { t.at = t.at[:0] }

// evaluates reports whether a key of the current map is evaluated.
func (t *touches) evaluates(key string) bool {
	return t.skip == nil || len(t.at) > len(t.begun) || !t.skip(key)
}

func (t *touches) into(step Step, visit func()) {
	t.at = append(t.at, step)
	visit()
	t.at = t.at[:len(t.at)-1]
}

func (t *touches) add() {
	if len(t.sections) == 0 || !slices.Equal(t.sections[len(t.sections)-1], t.begun) {
		t.sections = append(t.sections, t.begun)
	}
	if len(t.found) <= MaxTouched {
		t.found = append(t.found, slices.Clone(t.at))
	}
}

func (t *touches) addInside(step Step) { t.into(step, t.add) }

func (t *touches) tooDeep() bool { return len(t.at) >= maxDepth }

// inPlainMap reports whether the current place is one of plainMaps.
func (t *touches) inPlainMap() bool {
	const longest = 7
	if len(t.at) > longest {
		return false
	}
	generic := slices.Clone(t.at)
	for i, step := range generic {
		if anyItem.allows(step) {
			generic[i] = anyItem
		}
	}
	return slices.Contains(plainMaps, generic.String())
}

func (t *touches) result() []Path {
	if len(t.found) > MaxTouched {
		t.found = t.sections
	}
	sortPaths(t.found)
	return t.found
}

// same reports whether two values have the same JSON. Maps are encoded in the order of their keys.
func same(a, b any) bool {
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && string(left) == string(right)
}
