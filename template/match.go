package template

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Match is what a comparison of a VirtualMachine with a template found. It does
// not change, and is safe for concurrent use.
type Match struct {
	compiled    *Compiled
	values      map[string]string
	differences []Difference
	steps       int
}

// Difference is a place where a VirtualMachine is not what the template makes.
type Difference struct {
	// Path is the place in the VirtualMachine, written as an approval writes an
	// override: spec.template.spec.volumes[name=root].dataVolume.name.
	Path string

	// Want is what the template wants there: JSON, with the parameters that are
	// not known as ${NAME}; or, for a value that its parameter does not take,
	// ${NAME} and what is asked of it; or "nothing", "an object", "a list".
	Want string

	// Got is what the VirtualMachine has there, in the same form.
	Got string
}

// redacted stands for what a sensitive parameter has a part in.
const redacted = "(sensitive)"

// maxDifferences is how many differences are looked for.
const maxDifferences = 256

const noLimit = math.MaxInt

// MatchOption changes what Match compares.
type MatchOption func(*matcher)

// Ignoring leaves out the places that ignored accepts. A path has one text for
// each step: the key of an object; [name=NAME] for an item of a list whose items
// all have a name of their own; [INDEX] for an item of any other list. It asks
// about leaves, and about objects and items that the VirtualMachine lacks, or has
// too many of. A place that is ignored binds no parameter either. The function
// must not keep path.
func Ignoring(ignored func(path ...string) bool) MatchOption {
	return func(m *matcher) { m.ignored = append(m.ignored, ignored) }
}

// Preferring has parameters take these values, unless an annotation of the
// VirtualMachine gives others, or the VirtualMachine has fewer differences without
// them. So a value that KubeVirt has written in another form is found as it was given.
func Preferring(values map[string]string) MatchOption {
	return func(m *matcher) { m.preferred = values }
}

// Matches reports whether the VirtualMachine conforms to the template.
func (m *Match) Matches() bool { return len(m.differences) == 0 }

// Values are the values of the parameters that the VirtualMachine shows, by name.
// A value is empty when what only that parameter could bring is not there. Those
// of sensitive parameters are among them.
func (m *Match) Values() map[string]string { return maps.Clone(m.values) }

// Differences are the places where the VirtualMachine differs from the template,
// in the order of their paths; after 256 of them it stops looking for more. None
// holds the value of a sensitive parameter.
func (m *Match) Differences() []Difference { return slices.Clone(m.differences) }

// Match compares a VirtualMachine with the template: it looks for the values of
// the parameters that make every leaf of the template's VirtualMachine equal to
// that of vm, and that satisfy the declarations of the parameters. What vm has
// beyond the template is no difference.
//
// vm is decoded JSON: map[string]any, []any, string, bool, nil, and numbers as
// int64, float64 or json.Number. It is not modified. The only error is that there
// is anything else in it.
//
// The parameter annotations of vm count as said: a parameter must show the value
// that its annotation gives. Neither those nor the other keys that Stencil writes
// are compared. Whoever creates a VirtualMachine names it, so metadata.name binds
// parameters where it fits the template's, and is no difference where it does not.
//
// An alias of a machine type and a version of what it stands for are the same: the
// version is what defaulting writes in its stead.
//
// It takes time in proportion to the sizes of the template and of vm. Where a
// parameter shows only beside others in the same text, the values that fit are
// searched for within that bound; what it cannot settle is a difference. Where a
// value can be written in several ways, as x or as "x", and the first does not fit
// everywhere, up to four others are tried.
func (c *Compiled) Match(vm map[string]any, options ...MatchOption) (*Match, error) {
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
	found := &Match{compiled: c, differences: m.differences, steps: steps, values: make(map[string]string, len(m.values))}
	for i := range m.values {
		if m.origin[i] >= 0 && m.bound[i] {
			found.values[c.parameters[i].Name] = m.values[i]
		}
	}
	slices.SortStableFunc(found.differences, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// match compares a VirtualMachine, and tries other ways to write what it shows. It
// returns the steps of all attempts.
func (c *Compiled) match(vm map[string]any, options []MatchOption) (*matcher, int) {
	m := newMatcher(c, options)
	m.compare(vm)
	steps := m.steps
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

// maxPassed is how many of the values that were passed over are tried when there
// are differences.
const maxPassed = 4

// passed is a way to write a value that was passed over for another one: "x" with
// its quotes where x will do, or nothing where there are only zero values.
type passed struct {
	parameter int
	value     string
}

// compare looks for the differences of vm.
func (m *matcher) compare(vm map[string]any) {
	m.readContract(vm)
	m.machine(vm)
	m.resolve()
	m.lateLeaves()
	m.judgeValues()
}

// matcher is one comparison.
//
// It walks the template and the VirtualMachine side by side. What does not depend
// on parameters is decided on the way; every other place becomes a constraint.
// Constraints in which one parameter is unknown at most are decided first, which
// makes more parameters known and more constraints ready. What is left over after
// that is ambiguous, and searched.
type matcher struct {
	compiled  *Compiled
	ignored   []func(path ...string) bool
	preferred map[string]string

	// What is known of the parameters, by their index.
	values []string
	bound  []bool
	origin []int32 // the place that shows the value first; -1 when there is none
	given  []bool  // by somebody, not by the generator
	links  []link
	linked []int32 // the latest link of each parameter; -1 when there is none
	trees  map[int]*insertion

	encodings map[segment]string // of values that are known
	seen      []uint32           // for distinct
	look      uint32

	places      []place
	constraints []constraint
	claimed     []int32 // for keys and items, 1 + the part of the template that has them, or 0
	ready       [levels][]int32
	late        []lateLeaf

	// In an attempt, the first difference fails the attempt, and is not kept.
	attempt bool
	failed  bool
	trail   []change
	floor   int   // the constraints from here on came up in the attempt
	limit   int   // of steps, after which an attempt fails
	alone   bool  // no constraints are decided but these and
	only    int32 // this one

	passed      []passed
	annotations map[string]any // of the VirtualMachine
	differences []Difference
	inserted    int // bytes of JSON that were compared with what they stand for
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

// over reports whether there is nothing more to find.
func (m *matcher) over() bool {
	if m.attempt && m.steps > m.limit {
		m.failed = true
	}
	return m.err != nil || m.failed || len(m.differences) >= maxDifferences
}
