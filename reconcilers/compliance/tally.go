package compliance

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// maximumFirst is the maximum number of templates in the status of a policy.
const maximumFirst = 20

// tally counts templates by the names of the policies that apply to them.
type tally map[string]*v1alpha1.PolicyTemplates

// newTally returns a tally with zero counts for the policies.
func newTally(policies []string) tally {
	t := tally{}
	for _, name := range policies {
		t[name] = &v1alpha1.PolicyTemplates{Checked: ptr.To[int32](0), Noncompliant: ptr.To[int32](0)}
	}
	return t
}

// record counts one template. A template that could not be evaluated is not counted.
func (t tally) record(of *templatecache.Template, j *evaluation) {
	if j.sampleError != nil {
		return
	}
	objections := j.objections()
	for _, policy := range j.applying {
		count := t[policy]
		if count == nil {
			continue
		}
		*count.Checked++
		if cause, objects := objections[policy]; objects {
			*count.Noncompliant++
			count.First = append(count.First, v1alpha1.NoncompliantTemplate{Namespace: of.Namespace, Name: of.Name, Cause: cause})
		}
	}
}

// finish sorts the named templates by namespace and name, and limits their number.
func (t tally) finish() {
	for _, count := range t {
		slices.SortFunc(count.First, func(a, b v1alpha1.NoncompliantTemplate) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		count.First = count.First[:min(len(count.First), maximumFirst)]
	}
}
