package compliance

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// maximumFirst is how many templates the status of a policy names.
const maximumFirst = 20

// tally counts templates by the names of the policies that apply to them.
type tally map[string]*v1alpha1.PolicyTemplates

// newTally counts nothing yet.
func newTally(policies []string) tally {
	t := tally{}
	for _, name := range policies {
		t[name] = &v1alpha1.PolicyTemplates{Checked: ptr.To[int32](0), Noncompliant: ptr.To[int32](0)}
	}
	return t
}

// record counts one template. One that could not be judged does not count.
func (t tally) record(of *templatecache.Template, j judgement) {
	if j.unjudged != nil {
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

// finish puts the named templates in order.
func (t tally) finish() {
	for _, count := range t {
		slices.SortFunc(count.First, func(a, b v1alpha1.NoncompliantTemplate) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		count.First = count.First[:min(len(count.First), maximumFirst)]
	}
}
