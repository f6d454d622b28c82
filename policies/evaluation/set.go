package evaluation

import (
	"cmp"
	"slices"

	"github.com/vmstencil/stencil/rego"
)

// Set is a snapshot of all active policies. It is immutable and safe for concurrent
// use; the zero value is empty.
type Set struct {
	entries []Entry
	index   map[indexKey]*indexEntry
}

// indexKey is the key of the index: the kind and the operation of a request.
type indexKey struct{ kind, operation string }

// indexEntry holds the policies of one key of the index, sorted by name. Both slices have
// the same order.
type indexEntry struct {
	entries  []Entry
	criteria []criteria
	fields   *rego.Fields
}

// NewSet returns a set of policies. If several have the same name, the last one is
// used.
func NewSet(entries []Entry) *Set {
	s := &Set{entries: byName(entries), index: map[indexKey]*indexEntry{}}
	for _, entry := range s.entries {
		criteria := newCriteria(&entry.Match)
		for _, kind := range unique(entry.Match.kinds()) {
			for _, operation := range unique(entry.Match.operations()) {
				at := indexKey{kind, operation}
				if s.index[at] == nil {
					s.index[at] = &indexEntry{}
				}
				s.index[at].entries = append(s.index[at].entries, entry)
				s.index[at].criteria = append(s.index[at].criteria, criteria)
			}
		}
	}
	for _, found := range s.index {
		found.fields = fieldsOf(found.entries)
	}
	return s
}

// fieldsOf returns what the policies read of their input.
func fieldsOf(entries []Entry) *rego.Fields {
	policies := make([]*rego.Policy, len(entries))
	for i := range entries {
		policy, ok := entries[i].Policy.(*rego.Policy)
		if !ok {
			return rego.AllFields()
		}
		policies[i] = policy
	}
	return rego.NewFields(policies...)
}

func byName(entries []Entry) []Entry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Policy.Name(), b.Policy.Name()) })
	unique := sorted[:0]
	for i := range sorted {
		if i+1 < len(sorted) && sorted[i+1].Policy.Name() == sorted[i].Policy.Name() {
			continue
		}
		unique = append(unique, sorted[i])
	}
	return slices.Clip(unique)
}

func unique(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// Entries returns all policies, sorted by name. The caller must not modify the slice.
func (s *Set) Entries() []Entry { return s.entries }

// Len returns the number of policies.
func (s *Set) Len() int { return len(s.entries) }

// Empty reports whether no policy applies to an operation on a kind, regardless of all
// other fields of the request. It costs one map look-up.
func (s *Set) Empty(kind, operation string) bool {
	return s.index[indexKey{kind, operation}] == nil
}

// Input converts the document of a request for the policies that Matching returns for it.
func (s *Set) Input(d rego.Document) (*rego.Input, error) {
	found := s.index[indexKey{d.Request.Kind, d.Request.Operation}]
	if found == nil {
		return rego.NewInput(d)
	}
	return rego.NewInputOf(d, found.fields)
}

// Matching returns the policies that apply to a request, sorted by name. The caller
// must not modify the slice.
func (s *Set) Matching(q Query) []Entry {
	found := s.index[indexKey{q.Kind, q.Operation}]
	if found == nil {
		return nil
	}
	// Most policies apply to all requests of their kind: the slice is copied only if
	// one of them does not match.
	first := 0
	for first < len(found.entries) && found.criteria[first].meets(&q) {
		first++
	}
	if first == len(found.entries) {
		return found.entries
	}
	matching := append(make([]Entry, 0, len(found.entries)-1), found.entries[:first]...)
	for i := first + 1; i < len(found.entries); i++ {
		if found.criteria[i].meets(&q) {
			matching = append(matching, found.entries[i])
		}
	}
	return matching
}
