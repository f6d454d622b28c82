package approval

import (
	"strconv"
	"strings"
)

// OverridableField is Overridable for a path of texts: each is a key of a map, or [name=NAME] for an item of a list of uniquely named items, or
// [POSITION] for an item of any other list, as template.Ignoring returns them. The path may be that of a map or a list as a whole, which is also
// overridable when all its content is.
func (a *Approval) OverridableField(path ...string) bool {
	steps := make(Path, len(path), len(path)+1)
	for i, text := range path {
		steps[i] = stepOf(text)
	}
	return a.Overridable(steps) || a.Overridable(append(steps, anyField)) || a.Overridable(append(steps, anyItem))
}

func stepOf(text string) Step {
	inner, bracketed := strings.CutPrefix(text, "[")
	if !bracketed || !strings.HasSuffix(inner, "]") {
		return Field(text)
	}
	inner = strings.TrimSuffix(inner, "]")
	if name, found := strings.CutPrefix(inner, "name="); found {
		return Item(name)
	}
	if position, err := strconv.Atoi(inner); err == nil && position >= 0 {
		return Index(position)
	}
	return Field(text)
}
