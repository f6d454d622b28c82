package approval

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Keys of the index.
const (
	// indexAll: an approval that denies may select any namespace.
	indexAll = "all"
	// indexChanges: any change of a label can change what approvals select.
	indexChanges = "changes"

	// maxIndexKey is the longest key of a ConfigMap. Longer ones are cut off, so
	// that they stand for more.
	maxIndexKey = 253
	// maxIndexBytes leaves room in the 1.5 MiB of a request to etcd: an object has
	// each key twice, as data and as a field that its manager owns, with a few bytes
	// beside it.
	maxIndexBytes    = 512 << 10
	indexKeyOverhead = 16
)

// NamespaceIndex returns what approvals select namespaces by, as the data of a ConfigMap that
// the admission policies undecided-namespaces and namespace-coverage look up:
//
//	all             an approval may select any namespace
//	n.NAMESPACE     an approval may select the namespace of this name
//	l.KEY           an approval may select namespaces with this label
//	l.KEY.VALUE     an approval may select namespaces with this value of the label
//	changes         any change of a label can change what is selected
//	c.KEY           adding or removing this label can change what is selected
//	c.KEY.VALUE     so can adding or removing this value of it
//
// The first four are of approvals that deny. Of a selector the index has one
// positive requirement, so it stands for more namespaces than are selected, and
// never for fewer. A slash is written as _. When the index would exceed the limit of
// an object it has all and changes alone.
func NamespaceIndex(approvals []*Approval) map[string]string {
	index := indexData{}
	for _, a := range approvals {
		if a.enforcement == v1alpha1.EnforcementDeny {
			for namespace := range a.coverage.named {
				index.add("n", namespace)
			}
			if a.coverage.selector != nil {
				index.addSelected(a.coverage.selector)
			}
		}
		if a.coverage.selector != nil {
			index.addChanges(a.coverage.selector)
		}
	}
	size := 0
	for key := range index {
		size += len(key) + indexKeyOverhead
	}
	if size > maxIndexBytes {
		return map[string]string{indexAll: "", indexChanges: ""}
	}
	return index
}

type indexData map[string]string

// add leaves out what a ConfigMap cannot have as a key: no namespace has such a name
// or label, and one approval that should never have been stored must not hold up the
// index.
func (x indexData) add(parts ...string) {
	if key := indexKey(parts...); len(validation.IsConfigMapKey(key)) == 0 {
		x[key] = ""
	}
}

func indexKey(parts ...string) string {
	key := strings.ReplaceAll(strings.Join(parts, "."), "/", "_")
	return key[:min(len(key), maxIndexKey)]
}

// addSelected adds one requirement that selected namespaces meet. A value says more than a key.
func (x indexData) addSelected(s *v1alpha1.LabelSelector) {
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		x.add("l", key, s.MatchLabels[key])
		return
	}
	for i := range s.MatchExpressions {
		if r := &s.MatchExpressions[i]; r.Operator == metav1.LabelSelectorOpIn {
			for _, value := range r.Values {
				x.add("l", r.Key, value)
			}
			return
		}
	}
	for i := range s.MatchExpressions {
		if r := &s.MatchExpressions[i]; r.Operator == metav1.LabelSelectorOpExists {
			x.add("l", r.Key)
			return
		}
	}
	x.add(indexAll)
}

func (x indexData) addChanges(s *v1alpha1.LabelSelector) {
	for key, value := range s.MatchLabels {
		x.add("c", key, value)
	}
	for i := range s.MatchExpressions {
		r := &s.MatchExpressions[i]
		switch r.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			for _, value := range r.Values {
				x.add("c", r.Key, value)
			}
		default:
			x.add("c", r.Key)
		}
	}
}

// ChangesSelection tells whether a change of the labels of a namespace can change
// which approvals select it, by the index. It is what the admission policy
// namespace-coverage computes.
func ChangesSelection(index map[string]string, before, after map[string]string) bool {
	mentioned := func(parts ...string) bool {
		_, found := index[indexKey(parts...)]
		_, any := index[indexChanges]
		return found || any
	}
	changed := func(from, to map[string]string) bool {
		for key, value := range from {
			other, found := to[key]
			if key == v1alpha1.LabelGoverned || found && other == value {
				continue
			}
			if !found && mentioned("c", key) || mentioned("c", key, value) {
				return true
			}
		}
		return false
	}
	return changed(before, after) || changed(after, before)
}
