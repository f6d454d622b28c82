package approval

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Keys and values of the index.
const (
	// indexFormat has the value indexVersion. Policies of another format do not find it, and assume that any namespace may be selected and that any
	// change matters.
	indexFormat  = "format"
	indexVersion = "2"
	// indexAll: an approval that denies may select any namespace.
	indexAll = "all"
	// indexChanges: any change of a label can change what approvals select.
	indexChanges = "changes"
	// anyValue is the entry for the label itself, with any value.
	anyValue = "*"

	// maxIndexKey is the longest key of a ConfigMap. Longer keys are truncated, so that they match more labels.
	maxIndexKey = 253
	// maxIndexBytes leaves room in the 1.5 MiB of a request to etcd, and in the cost limit of a policy: two searches for 65 bytes in a text of this
	// size cost 734 000 of 1 000 000 units.
	maxIndexBytes = 512 << 10
	// indexKeyOverhead is what the API server adds for each key when it records the owner of the field.
	indexKeyOverhead = 16
)

// NamespaceIndex returns what approvals select namespaces by, as the data of a ConfigMap that the admission policies undecided-namespaces and
// namespace-coverage search:
//
//	format  2
//	all     an approval may select any namespace
//	n       an approval may select the namespaces of these names
//	l.KEY   an approval may select namespaces with one of these values of the label; *: with the label
//	changes any change of a label can change what is selected
//	c.KEY   adding or removing one of these values can change what is selected; *: adding or removing the label
//
// Lists have a comma before, between and after their entries, so that a policy finds
// an entry by the text ",ENTRY,". There is one key for each label and not for each
// value, because the API server converts the ConfigMap for every evaluation, key by
// key.
//
// all, n and l.KEY are of approvals that deny. The index has one positive requirement of each selector, so that it matches all selected namespaces
// and possibly others. A slash is replaced by _. When the index would exceed its limit it has only all and changes.
func NamespaceIndex(approvals []*Approval) map[string]string {
	lists := indexLists{}
	all := false
	for _, a := range approvals {
		if a.enforcement == v1alpha1.EnforcementDeny {
			for namespace := range a.coverage.named {
				lists.add("n", namespace)
			}
			if a.coverage.selector != nil && !lists.addSelected(a.coverage.selector) {
				all = true
			}
		}
		if a.coverage.selector != nil {
			lists.addChanges(a.coverage.selector)
		}
	}
	index := map[string]string{indexFormat: indexVersion}
	if all {
		index[indexAll] = ""
	}
	size := 0
	for key, entries := range lists {
		index[key] = "," + strings.Join(slices.Sorted(maps.Keys(entries)), ",") + ","
		size += 2*len(key) + indexKeyOverhead + len(index[key])
	}
	if size > maxIndexBytes {
		return map[string]string{indexFormat: indexVersion, indexAll: "", indexChanges: ""}
	}
	return index
}

// indexLists are the entries of each list, by the key of the list.
type indexLists map[string]map[string]struct{}

// add skips what cannot be a key of a ConfigMap or the value of a label. No namespace has such a name or label, and one invalid stored approval must
// not block the index.
func (x indexLists) add(key, entry string) {
	if len(validation.IsConfigMapKey(key)) > 0 || entry != anyValue && len(validation.IsValidLabelValue(entry)) > 0 {
		return
	}
	if x[key] == nil {
		x[key] = map[string]struct{}{}
	}
	x[key][entry] = struct{}{}
}

// indexKey returns the key of the list of a label.
func indexKey(list, label string) string {
	key := strings.ReplaceAll(list+"."+label, "/", "_")
	return key[:min(len(key), maxIndexKey)]
}

// addSelected adds one requirement that selected namespaces meet, preferably one on a value. It returns false if there is none.
func (x indexLists) addSelected(s *v1alpha1.LabelSelector) bool {
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		x.add(indexKey("l", key), s.MatchLabels[key])
		return true
	}
	for i := range s.MatchExpressions {
		if r := &s.MatchExpressions[i]; r.Operator == metav1.LabelSelectorOpIn {
			for _, value := range r.Values {
				x.add(indexKey("l", r.Key), value)
			}
			return true
		}
	}
	for i := range s.MatchExpressions {
		if r := &s.MatchExpressions[i]; r.Operator == metav1.LabelSelectorOpExists {
			x.add(indexKey("l", r.Key), anyValue)
			return true
		}
	}
	return false
}

func (x indexLists) addChanges(s *v1alpha1.LabelSelector) {
	for key, value := range s.MatchLabels {
		x.add(indexKey("c", key), value)
	}
	for i := range s.MatchExpressions {
		r := &s.MatchExpressions[i]
		switch r.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
			for _, value := range r.Values {
				x.add(indexKey("c", r.Key), value)
			}
		default:
			x.add(indexKey("c", r.Key), anyValue)
		}
	}
}

// ChangesSelection reports whether a change of the labels of a namespace can change
// which approvals select it, by the index. It is what the admission policy
// namespace-coverage computes.
func ChangesSelection(index map[string]string, before, after map[string]string) bool {
	_, any := index[indexChanges]
	changed := func(from, to map[string]string) bool {
		for key, value := range from {
			other, found := to[key]
			if key == v1alpha1.LabelGoverned || found && other == value {
				continue
			}
			list := index[indexKey("c", key)]
			if any || !found && inIndex(list, anyValue) || inIndex(list, value) {
				return true
			}
		}
		return false
	}
	return changed(before, after) || changed(after, before)
}

func inIndex(list, entry string) bool { return strings.Contains(list, ","+entry+",") }
