package template

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Match is the result of comparing a VirtualMachine with a template. It does not change, and is safe for concurrent use.
type Match struct {
	compiled    *Compiled
	name        string // of the VirtualMachine
	values      map[string]string
	given       map[string]string // by annotations, and not shown
	differences []Difference
	steps       int
}

// Difference is a place where a VirtualMachine differs from the template.
type Difference struct {
	// Path is the place in the VirtualMachine, in the form in which an approval lists an override:
	// spec.template.spec.volumes[name=root].dataVolume.name.
	Path string

	// Want is the value that the template requires: JSON, with unbound parameters as ${NAME}; or, for a value that its
	// parameter rejects, ${NAME} and the requirement; or "nothing", "an object", "a list".
	Want string

	// Got is the value in the VirtualMachine, in the same form.
	Got string
}

// redacted replaces every value that contains a sensitive parameter.
const redacted = "(sensitive)"

// maxDifferences is the number of differences after which a comparison stops.
const maxDifferences = 256

const noLimit = math.MaxInt

// MatchOption changes what Match compares.
type MatchOption func(*matcher)

// Ignoring excludes the places that ignored accepts. A path has one text for each step: the key of an object; [name=NAME]
// for an item of a list with unique names for all items; [INDEX] for an item of any other list. ignored is called
// for leaves, and for objects and items that the VirtualMachine lacks or has in excess. An ignored place does not bind a
// parameter either. The function must not retain path.
func Ignoring(ignored func(path ...string) bool) MatchOption {
	return func(m *matcher) { m.ignored = append(m.ignored, ignored) }
}

// Preferring gives these values to parameters, unless an annotation of the VirtualMachine gives others, or the
// VirtualMachine has fewer differences without them. So a value that KubeVirt has written in another form is found as it was
// given.
func Preferring(values map[string]string) MatchOption {
	return func(m *matcher) { m.preferred = values }
}

// AsGiven treats every value as given by the user: a parameter with a generator may have any value that its declaration permits.
// Without the option, only a value that an annotation of the VirtualMachine gives may differ from what the generator makes.
func AsGiven() MatchOption {
	return func(m *matcher) { m.asGiven = true }
}

// Matches reports whether the VirtualMachine conforms to the template.
func (m *Match) Matches() bool { return len(m.differences) == 0 }

// Values returns the values of the parameters that the VirtualMachine shows, by name. A value is empty if what only that
// parameter could add is missing. The values of sensitive parameters are included.
func (m *Match) Values() map[string]string { return maps.Clone(m.values) }

// Differences returns the places where the VirtualMachine differs from the template, in the order of their paths, 256 at
// most. None contains the value of a sensitive parameter.
func (m *Match) Differences() []Difference { return slices.Clone(m.differences) }

// With returns the Match with other values for parameters, for Reconstruct.
func (m *Match) With(values map[string]string) *Match {
	with := *m
	with.values = maps.Clone(m.values)
	maps.Copy(with.values, values)
	return &with
}

// Match compares a VirtualMachine with the template: it searches values of the parameters that make every leaf of the
// template's VirtualMachine equal to that of vm, and that satisfy the declarations of the parameters. Additional fields of
// vm are not differences.
//
// vm is decoded JSON: map[string]any, []any, string, bool, nil, and numbers as int64, float64 or json.Number. It is not
// modified. Any other type in it is the only error.
//
// The parameter annotations of vm are given values: a parameter must show the value of its annotation. Neither those nor the
// other keys that Stencil writes are compared. Users choose the name of a VirtualMachine, so metadata.name binds parameters
// where it fits the template's, and is no difference where it does not. A volume whose data secretize has moved must refer to
// the Secret of that VirtualMachine; parameters that only these data contain are not bound.
//
// The other objects of the template are not compared, except with AndObjects.
//
// An alias of a machine type equals any version of that type: defaulting replaces the alias by the version.
//
// The time is proportional to the sizes of the template and of vm. If a parameter occurs only in texts
// with other unbound parameters, Match searches for fitting values within that bound; if it finds none, it reports a
// difference. If a value can be written in
// several ways, as x or as "x", and the first does not fit everywhere, up to four others are tried.
func (c *Compiled) Match(vm map[string]any, options ...MatchOption) (*Match, error) {
	vm = released(vm)
	m, steps := c.match(vm, options)
	if unpinned := unpinned(vm); unpinned != nil && m.err == nil {
		again, more := c.match(unpinned, options)
		if steps += more; again.err == nil && again.closer(m) {
			m = again
		}
	}
	if m.err != nil {
		return nil, fmt.Errorf("comparing a VirtualMachine with a template: %w", m.err)
	}
	found := &Match{compiled: c, name: m.vmName, differences: m.differences, steps: steps, values: make(map[string]string, len(m.values))}
	for i := range c.declared() {
		switch {
		case !m.bound[i]:
		case m.origin[i] >= 0:
			found.values[c.parameters[i].Name] = m.values[i]
		case c.objects != nil && m.given[i]:
			if found.given == nil {
				found.given = map[string]string{}
			}
			found.given[c.parameters[i].Name] = m.values[i]
		}
	}
	slices.SortStableFunc(found.differences, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// match compares a VirtualMachine, and tries other spellings of the values that it shows. It returns the steps of all
// attempts.
func (c *Compiled) match(vm map[string]any, options []MatchOption) (*matcher, int) {
	m := newMatcher(c, options)
	m.emptyInName = true
	m.compare(vm)
	steps := m.steps
	if m.namedByEmpty && len(m.differences) > 0 && m.err == nil {
		m = newMatcher(c, options)
		m.compare(vm)
		steps += m.steps
	}
	if len(m.preferred) > 0 && len(m.differences) > 0 && m.err == nil {
		plain, more := c.match(vm, append(slices.Clip(options), Preferring(nil)))
		if steps += more; len(plain.differences) < len(m.differences) {
			return plain, steps
		}
	}
	for _, other := range m.passed {
		if len(m.differences) == 0 || m.err != nil {
			break
		}
		again := newMatcher(c, options)
		again.bind(other.parameter, other.value)
		again.compare(vm)
		if steps += again.steps; len(again.differences) == 0 {
			m = again
		}
	}
	return m, steps
}

// maxPassed is the maximum number of alternative values that are tried if there are differences.
const maxPassed = 4

// passed is an alternative spelling of a bound value: "x" with its quotes where x suffices, or nothing where there are only
// zero values.
type passed struct {
	parameter int
	value     string
}

// compare collects the differences of vm.
func (m *matcher) compare(vm map[string]any) {
	m.readContract(vm)
	m.compareObject(vm)
	m.compareObjects()
	m.resolve()
	m.lateLeaves()
	m.validateValues()
}

// matcher is one comparison.
//
// It walks the template and the VirtualMachine side by side. Values without parameters are compared on the way; every other
// place becomes a constraint. Constraints with at most one unbound parameter are decided first, which binds more parameters
// and makes more constraints ready. The remaining constraints are ambiguous, and are searched.
type matcher struct {
	compiled  *Compiled
	ignored   []func(path ...string) bool
	preferred map[string]string
	asGiven   bool // all values

	emptyInName  bool // values of parameters in the name may be empty, so that the values render the name
	namedByEmpty bool // they are

	objects []map[string]any // besides the VirtualMachine
	secrets []int32          // places whose values are not shown

	// The state of each parameter, by its index.
	values []string
	bound  []bool
	origin []int32 // the place that shows the value first; -1 when there is none
	given  []bool  // by the user, not by the generator
	links  []link
	linked []int32 // the latest link of each parameter; -1 when there is none
	trees  map[int]*insertion

	encodings map[segment]string // of bound values
	seen      []uint32           // for distinct
	visit     uint32

	places      []place
	constraints []constraint
	claimed     []int32 // for keys and items, 1 + the part of the template that claimed them, or 0
	ready       [levels][]int32
	late        []lateLeaf

	// In an attempt, the first difference fails the attempt, and is not stored.
	attempt bool
	failed  bool
	trail   []change
	floor   int   // the constraints from here on were added by the attempt
	limit   int   // of steps, after which an attempt fails
	alone   bool  // only constraints from floor on are decided, and
	only    int32 // this one

	passed      []passed
	annotations map[string]any // of the VirtualMachine
	vmName      string         // metadata.name of the VirtualMachine
	differences []Difference
	inserted    int // bytes of inserted JSON that were compared
	steps       int
	err         error
	spelt       []string // for ignores
}

func newMatcher(c *Compiled, options []MatchOption) *matcher {
	n := len(c.parameters)
	indices := make([]int32, 2*n)
	flags := make([]bool, 2*n)
	m := &matcher{
		compiled:    c,
		values:      make([]string, n),
		bound:       flags[:n:n],
		given:       flags[n:],
		origin:      indices[:n:n],
		linked:      indices[n:],
		seen:        make([]uint32, n),
		places:      make([]place, 1, 64),
		constraints: make([]constraint, 0, 16),
		limit:       noLimit,
	}
	for i := range n {
		m.origin[i], m.linked[i] = -1, -1
	}
	for _, option := range options {
		option(m)
	}
	return m
}

// over reports whether the comparison can stop.
func (m *matcher) over() bool {
	if m.attempt && m.steps > m.limit {
		m.failed = true
	}
	return m.err != nil || m.failed || len(m.differences) >= maxDifferences
}
