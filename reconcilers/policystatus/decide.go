package policystatus

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
	"github.com/vmstencil/stencil/internal/excerpt"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/statuswriter"
)

const (
	// maximumErrors and maximumTests are the maximum lengths of the lists in a status, as in the definition of VirtualMachinePolicy.
	maximumErrors = 20
	maximumTests  = 20
	// maximumText is the maximum length of a stored text, including a condition's message, in bytes.
	maximumText = 1024
	// maximumNames is the maximum number of tests or replicas in a condition's message.
	maximumNames = 5
)

// observation is the state of one policy, from which its status is computed.
type observation struct {
	policycache.State
	// routed is set if the requests that the policy applies to are sent for evaluation.
	routed bool
	now    time.Time
}

// statusOf returns the fields of the status that the leader writes.
func statusOf(o observation) v1alpha1.VirtualMachinePolicyStatus {
	stored := &o.Object.Status
	next := v1alpha1.VirtualMachinePolicyStatus{
		ObservedGeneration: o.Object.Generation,
		Errors:             errorsOf(&o),
		FailedTests:        failedTests(&o),
	}
	for _, each := range stored.Conditions {
		next.Conditions = append(next.Conditions, *each.DeepCopy())
	}
	for _, condition := range []metav1.Condition{compiled(&o), tested(&o), active(&o)} {
		condition.ObservedGeneration = o.Object.Generation
		condition.Message = excerpt.Of(condition.Message, maximumText)
		condition, _ = statuswriter.Transition(stored.Conditions, condition, o.now)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	if o.Active == nil {
		return next
	}
	policy := o.Active.Entry.Policy
	next.ActiveGeneration, next.ActiveDigest = o.Active.Generation, policy.Digest()
	metadata := policy.Metadata()
	next.Title, next.Severity = excerpt.Of(metadata.Title, maximumText), string(metadata.Severity)
	next.Evaluations = sum(stored.Replicas, next.ActiveDigest)
	if o.Active.Generation != o.Object.Generation {
		next.LastGood = lastGood(o.Active)
	}
	return next
}

func errorsOf(o *observation) []v1alpha1.PolicyError {
	var list []v1alpha1.PolicyError
	for _, problem := range o.Problems[:min(len(o.Problems), maximumErrors)] {
		list = append(list, v1alpha1.PolicyError{
			Row: int32(problem.Row), Column: int32(problem.Column), Line: excerpt.Of(problem.Line, maximumText),
			Field: problem.Field, Message: excerpt.Of(problem.Message, maximumText),
		})
	}
	return list
}

func failedTests(o *observation) []v1alpha1.FailedPolicyTest {
	var list []v1alpha1.FailedPolicyTest
	for _, test := range o.Failed[:min(len(o.Failed), maximumTests)] {
		list = append(list, v1alpha1.FailedPolicyTest{Name: test.Name, Message: excerpt.Of(test.Failure, maximumText)})
	}
	return list
}

func is(kind string, status metav1.ConditionStatus, reason, format string, arguments ...any) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

func compiled(o *observation) metav1.Condition {
	if len(o.Problems) == 0 {
		return is(v1alpha1.ConditionCompiled, metav1.ConditionTrue, v1alpha1.ReasonCompiled, "it compiles")
	}
	more := ""
	if len(o.Problems) > 1 {
		more = fmt.Sprintf(", and %d more problems", len(o.Problems)-1)
	}
	return is(v1alpha1.ConditionCompiled, metav1.ConditionFalse, v1alpha1.ReasonCompileError, "%s%s", o.Problems[0], more)
}

func tested(o *observation) metav1.Condition {
	switch {
	case len(o.Problems) > 0:
		return is(v1alpha1.ConditionTested, metav1.ConditionFalse, v1alpha1.ReasonNotCompiled, "it does not compile, so no test can run")
	case len(o.Failed) > 0:
		var names []string
		for _, test := range o.Failed {
			names = append(names, fmt.Sprintf("%q", test.Name))
		}
		return is(v1alpha1.ConditionTested, metav1.ConditionFalse, v1alpha1.ReasonTestsFailed,
			"%d of %d tests fail: %s", len(o.Failed), o.Tests, excerpt.List(names, maximumNames, ""))
	case o.Tests == 0:
		return is(v1alpha1.ConditionTested, metav1.ConditionTrue, v1alpha1.ReasonNoTests, "it has no tests")
	default:
		return is(v1alpha1.ConditionTested, metav1.ConditionTrue, v1alpha1.ReasonTestsPassed, "%d of %d tests pass", o.Tests, o.Tests)
	}
}

func active(o *observation) metav1.Condition {
	no := func(reason, format string, arguments ...any) metav1.Condition {
		return is(v1alpha1.ConditionActive, metav1.ConditionFalse, reason, format, arguments...)
	}
	quarantined := quarantinedOn(o)
	var missing []error
	if o.Active != nil {
		missing = policyset.MissingData(o.Active.Entry.Policy)
	}
	switch {
	case o.Active == nil && o.Broken == nil:
		return no(v1alpha1.ReasonNeverActive, "no version of it has been active yet, because its tests fail; it evaluates nothing")
	case o.Active == nil:
		return no(v1alpha1.ReasonBroken, "no version of it can be evaluated; %s", consequence(o.Object.Spec.Enforcement, o.Object.Spec.FailureMode))
	case len(quarantined) > 0:
		spec := o.Active.Spec
		return no(v1alpha1.ReasonQuarantined, "its evaluations repeatedly took too long, so it is not evaluated on %s until it is tried again; until then %s",
			excerpt.List(quarantined, maximumNames, ""), consequence(spec.Enforcement, spec.FailureMode))
	case o.Active.Generation != o.Object.Generation:
		why := "its tests fail"
		if len(o.Problems) > 0 {
			why = "it does not compile"
		}
		return no(v1alpha1.ReasonLastGoodVersion, "generation %d is not active because %s; generation %d stays active", o.Object.Generation, why, o.Active.Generation)
	case len(missing) > 0:
		spec := o.Active.Spec
		return no(v1alpha1.ReasonDataMissing, "%v; until then %s", missing[0], consequence(spec.Enforcement, spec.FailureMode))
	case !o.routed:
		return no(v1alpha1.ReasonNotRouted, "the webhook configuration does not send the requests that it applies to yet")
	default:
		return is(v1alpha1.ConditionActive, metav1.ConditionTrue, v1alpha1.ReasonActive, "it is active")
	}
}

// consequence returns what happens to requests that a policy applies to while it cannot be evaluated.
func consequence(enforcement v1alpha1.Enforcement, failure v1alpha1.FailureMode) string {
	switch {
	case failure == v1alpha1.FailureModeAllow || enforcement == v1alpha1.EnforcementAudit:
		return "what it applies to is admitted without evaluation"
	case enforcement == v1alpha1.EnforcementWarn:
		return "what it applies to is admitted with a warning"
	default:
		return "what it applies to is denied"
	}
}

// quarantinedOn returns the names of the replicas on which the active version is in quarantine.
func quarantinedOn(o *observation) []string {
	if o.Active == nil {
		return nil
	}
	var names []string
	for _, replica := range o.Object.Status.Replicas {
		if alarming(&replica, o.Active.Entry.Policy.Digest(), o.now) {
			names = append(names, replica.Name)
		}
	}
	slices.Sort(names)
	return names
}

// sum combines the entries of the replicas that evaluate the version with this digest: it adds counts and takes the maximum of durations.
// It returns nil if there are none.
func sum(replicas []v1alpha1.PolicyReplica, digest string) *v1alpha1.PolicyEvaluations {
	var total *v1alpha1.PolicyEvaluations
	for _, each := range replicas {
		if each.ActiveDigest != digest {
			continue
		}
		if total == nil {
			total = &v1alpha1.PolicyEvaluations{}
		}
		total.Count += each.Count
		total.Timeouts += each.Timeouts
		total.Errors += each.Errors
		total.P50Microseconds = max(total.P50Microseconds, each.P50Microseconds)
		total.P99Microseconds = max(total.P99Microseconds, each.P99Microseconds)
	}
	return total
}

// lastGood returns the version to store, or nil if it cannot be encoded. Everything that came from the API server can be encoded.
func lastGood(version *policycache.Active) *v1alpha1.PolicyVersion {
	raw, err := json.Marshal(version.Spec)
	if err != nil {
		return nil
	}
	return &v1alpha1.PolicyVersion{Generation: version.Generation, Spec: &runtime.RawExtension{Raw: raw}}
}
