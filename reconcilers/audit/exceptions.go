package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

// Exceptions are the exceptions from policies. The cache of package cache/exceptions implements it.
type Exceptions interface {
	Synced() bool
	Set() *policyset.Exceptions
	// Objects returns the PolicyExceptions with their status, sorted by name. They are not modified.
	Objects() []*v1alpha1.PolicyException
	// Changed returns a channel that is closed when the result of Set changes.
	Changed() <-chan struct{}
}

// maximumUses is the maximum number of uses that the status of an exception lists.
const maximumUses = 20

// uses are the uses of one exception.
type uses struct {
	virtualMachines int32
	// first are the first uses, in the order of namespace, name and policy.
	first []v1alpha1.PolicyExceptionUse
}

func compareUses(a, b v1alpha1.PolicyExceptionUse) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Policy, b.Policy))
}

// add adds further uses.
func (u *uses) add(virtualMachines int32, more ...v1alpha1.PolicyExceptionUse) {
	u.virtualMachines += virtualMachines
	all := slices.Concat(u.first, more)
	slices.SortFunc(all, compareUses)
	u.first = all[:min(len(all), maximumUses)]
}

// exceptionUses are the uses by the names of exceptions.
type exceptionUses map[string]*uses

func (e exceptionUses) of(name string) *uses {
	one := e[name]
	if one == nil {
		one = &uses{}
		e[name] = one
	}
	return one
}

// exceptionStatuses writes only status.audit of exceptions, by server-side apply.
type exceptionStatuses struct{ writer *statuswriter.Writer }

// write writes the result of an audit to each exception, unless the stored result is the same.
func (s exceptionStatuses) write(ctx context.Context, objects []*v1alpha1.PolicyException, found exceptionUses) error {
	var failures []error
	for _, object := range objects {
		next := exceptionAuditOf(object, found)
		if equality.Semantic.DeepEqual(object.Status.Audit, next) {
			continue
		}
		status := map[string]any{}
		if next != nil {
			status["audit"] = next
		}
		if err := s.writer.Apply(ctx, statuswriter.Exception(object), v1alpha1.FieldManagerExceptionAudit, status); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// exceptionAuditOf returns the result for one exception; nil for one with subjects, which the audit does not apply.
func exceptionAuditOf(object *v1alpha1.PolicyException, found exceptionUses) *v1alpha1.PolicyExceptionAudit {
	if len(object.Spec.Subjects) > 0 {
		return nil
	}
	one := found.of(object.Name)
	return &v1alpha1.PolicyExceptionAudit{VirtualMachines: one.virtualMachines, Uses: one.first}
}

// maximumExceptionEvents is the maximum number of events of one audit. The next audits report the others.
const maximumExceptionEvents = 100

// reportedUses are the uses of exceptions for which there was an event. They are not stored: a new leader reports them again.
type reportedUses struct {
	recorder events.EventRecorder

	mutex sync.Mutex
	known map[string]map[reportedUse]bool
}

type reportedUse struct {
	uid               types.UID
	policy, exception string
}

// report records an event about each VM of a namespace that uses an exception and did not at the audit before. left is how many events
// may still be recorded; it is shared by all namespaces.
func (r *reportedUses) report(namespace string, found []objection, left *int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	before, now := r.known[namespace], map[reportedUse]bool{}
	for i := range found {
		one := &found[i]
		use := reportedUse{one.uid, one.ruling.policy, one.ruling.exception.Name}
		if !before[use] {
			if *left == 0 {
				continue
			}
			*left--
			vm := &corev1.ObjectReference{APIVersion: vmVersion.String(), Kind: kindVirtualMachine, Namespace: namespace, Name: one.name, UID: one.uid}
			r.recorder.Eventf(vm, nil, corev1.EventTypeNormal, "PolicyExcepted", "Audit", "%s", exceptedText(&one.ruling))
		}
		now[use] = true
	}
	delete(r.known, namespace)
	if len(now) > 0 {
		if r.known == nil {
			r.known = map[string]map[reportedUse]bool{}
		}
		r.known[namespace] = now
	}
}

// exceptedText states which exception allows the violation, and until when.
func exceptedText(one *ruling) string {
	return fmt.Sprintf("violates policy %s, which %s", one.policy, one.exception.Allows())
}

// exceptionObjects returns the exceptions before an audit; none if policies are not evaluated.
func (r *Reconciler) exceptionObjects() []*v1alpha1.PolicyException {
	if r.options.Exceptions == nil {
		return nil
	}
	return r.options.Exceptions.Objects()
}

// nextAudit returns the time until the next audit of everything: the interval, or less if an exception ends before.
func (r *Reconciler) nextAudit(start time.Time) time.Duration {
	if r.options.Exceptions == nil {
		return r.options.Interval
	}
	// An exception that ended during the audit may have been applied in it.
	next := r.options.Exceptions.Set().Next(start)
	if next.IsZero() {
		return r.options.Interval
	}
	return min(r.options.Interval, max(next.Sub(r.options.Clock.Now()), time.Millisecond))
}
