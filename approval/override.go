package approval

// Override is a path that users may set, with everything below it. It may contain wildcards.
type Override struct{ steps Path }

// Covers reports whether the override allows a place.
func (o Override) Covers(path Path) bool {
	if len(path) < len(o.steps) {
		return false
	}
	for i, step := range o.steps {
		if !step.allows(path[i]) {
			return false
		}
	}
	return true
}

// Path returns the path of the override.
func (o Override) Path() Path { return o.steps }

// String returns the override in its shortest form.
func (o Override) String() string { return o.steps.String() }

// closeness is how many steps an override and a path have in common, from the
// beginning.
func (o Override) closeness(path Path) int {
	n := 0
	for n < len(o.steps) && n < len(path) && o.steps[n].allows(path[n]) {
		n++
	}
	return n
}
