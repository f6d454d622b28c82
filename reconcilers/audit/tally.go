package audit

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/approval"
)

// count is the result of an audit for one approval or one policy.
type count struct {
	conforming, violating int32
	// unknown is the number of VMs of which the policy cannot decide afterwards whether they violate it.
	unknown int32
	// excepted is the number of VMs that violate the policy and that an exception allows to.
	excepted int32
	// violations are the first, in the order of namespace and name.
	violations []v1alpha1.Violation
	// warned is the number of conforming VMs that will violate in a later release; warnings are the first of them.
	warned   int32
	warnings []v1alpha1.Violation
}

func compareViolations(a, b v1alpha1.Violation) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// violate counts a violation. It need not be called in order.
func (c *count) violate(violation v1alpha1.Violation) {
	c.violating++
	c.violations = inserted(c.violations, violation)
}

// warn counts a warning. It need not be called in order.
func (c *count) warn(warning v1alpha1.Violation) {
	c.warned++
	c.warnings = inserted(c.warnings, warning)
}

// inserted inserts one violation in order, and drops those beyond v1alpha1.MaxViolations.
func inserted(list []v1alpha1.Violation, one v1alpha1.Violation) []v1alpha1.Violation {
	at, _ := slices.BinarySearchFunc(list, one, compareViolations)
	if at == v1alpha1.MaxViolations {
		return list
	}
	list = slices.Insert(list, at, one)
	return list[:min(len(list), v1alpha1.MaxViolations)]
}

// add adds another count.
func (c *count) add(other *count) {
	c.conforming += other.conforming
	c.violating += other.violating
	c.unknown += other.unknown
	c.excepted += other.excepted
	c.violations = joined(c.violations, other.violations)
	c.warned += other.warned
	c.warnings = joined(c.warnings, other.warnings)
}

// joined returns the first violations of two lists.
func joined(one, other []v1alpha1.Violation) []v1alpha1.Violation {
	all := slices.Concat(one, other)
	slices.SortFunc(all, compareViolations)
	return all[:min(len(all), v1alpha1.MaxViolations)]
}

// counts are by the names of approvals, or of policies.
type counts map[string]*count

func (c counts) of(name string) *count {
	one := c[name]
	if one == nil {
		one = &count{}
		c[name] = one
	}
	return one
}

// maximumResults is the maximum number of results in a Report. A thousand would come close to the size limit of an object in the API
// server.
const maximumResults = 200

// finding is one VM that satisfies no approval, or will satisfy none in a later release, or a stray.
type finding struct {
	// kind is the kind of the object: VirtualMachine, or the kind of a stray.
	kind  string
	name  string
	uid   types.UID
	cause cause
	// enforcement is the strictest of the approvals that select its namespace.
	enforcement v1alpha1.Enforcement
	// approvals are the names of these approvals.
	approvals []string
}

// namespaceTally is the result of an audit for one namespace.
type namespaceTally struct {
	namespace             string
	conforming, violating int
	// findings are the first of the violating.
	findings []finding
	// warned is the number of conforming VMs with a warning; warnings are the first of them.
	warned   int
	warnings []finding
	// passed and failed are how many times a VM conformed to or violated a policy, unknown how many times that depends on when it was created, or by which user.
	passed, failed, unknown int
	// objections are the first of the failed.
	objections []objection
	// excepted is how many times an exception allowed a VM to violate a policy; exceptions are the first of these violations.
	excepted   int
	exceptions []objection
}

// objection is the violation of one policy by one VM.
type objection struct {
	name   string
	uid    types.UID
	ruling ruling
}

// full reports whether a Report contains the maximum number of results.
func (n *namespaceTally) full() bool {
	return len(n.findings)+len(n.warnings)+len(n.objections) >= maximumResults
}

// subject is the VM that was evaluated.
type subject struct {
	namespace, name string
	uid             types.UID
}

// tally counts VMs in the order in which the API server lists them: those of one namespace are consecutive.
type tally struct {
	// found holds the results of the namespaces that are finished.
	found   byNamespace
	current namespaceTally
	// results and machines are of the current namespace; the latter are names by UIDs.
	results results
	vms     map[types.UID]string
	// strays returns the strays of a namespace, and the approvals that select it. It may be nil.
	strays func(namespace string, vms map[types.UID]string) ([]stray, []*approval.Approval)
	// finished is called with each namespace after its last VM has been counted.
	finished func(namespaceTally)
}

func newTally(finished func(namespaceTally)) *tally {
	return &tally{found: byNamespace{}, finished: finished}
}

// begin finishes the namespace before and starts the next.
func (t *tally) begin(namespace string) {
	t.finish()
	t.current.namespace = namespace
	t.results = results{approvals: counts{}, policies: counts{}, exceptions: exceptionUses{}}
	t.vms = map[types.UID]string{}
}

// record counts one VM.
func (t *tally) record(vm subject, approvals []*approval.Approval, evaluated evaluation, rulings []ruling) {
	if t.current.namespace != vm.namespace {
		t.begin(vm.namespace)
	}
	t.results.vms++
	t.vms[vm.uid] = vm.name
	if len(approvals) > 0 {
		t.approved(vm, approvals, evaluated)
	}
	t.ruled(vm, rulings)
}

// approved counts the decision of approvals on a VM.
func (t *tally) approved(vm subject, approvals []*approval.Approval, evaluated evaluation) {
	if len(evaluated.satisfied) > 0 {
		t.current.conforming++
		for _, a := range evaluated.satisfied {
			one := t.results.approvals.of(a.Name())
			one.conforming++
			if closed := evaluated.closed[a.Name()]; closed != nil {
				one.warn(v1alpha1.Violation{Namespace: vm.namespace, Name: vm.name, Cause: closed.rule + ": " + closed.message})
			}
		}
		if warning := evaluated.warning(); warning != nil {
			t.current.warned++
			if !t.current.full() {
				t.current.warnings = append(t.current.warnings, findingOf(vm, approvals, *warning))
			}
		}
		return
	}
	t.violate(findingOf(vm, approvals, *evaluated.cause), approvals)
}

// violate counts a violation.
func (t *tally) violate(one finding, approvals []*approval.Approval) {
	t.current.violating++
	violation := v1alpha1.Violation{Namespace: t.current.namespace, Name: one.name, Cause: one.cause.message}
	if one.kind != kindVirtualMachine {
		violation.Kind = one.kind
	}
	for _, a := range approvals {
		t.results.approvals.of(a.Name()).violate(violation)
	}
	if !t.current.full() {
		t.current.findings = append(t.current.findings, one)
	}
}

func findingOf(vm subject, approvals []*approval.Approval, why cause) finding {
	one := finding{kind: kindVirtualMachine, name: vm.name, uid: vm.uid, cause: why, enforcement: strictest(approvals)}
	for _, a := range approvals {
		one.approvals = append(one.approvals, a.Name())
	}
	return one
}

// ruled counts the decisions of policies on a VM.
func (t *tally) ruled(vm subject, rulings []ruling) {
	using := map[string]bool{}
	for _, one := range rulings {
		if one.exception != nil {
			t.excepted(vm, one, using)
			continue
		}
		if one.objection == "" {
			t.current.passed++
			t.results.policies.of(one.policy).conforming++
			continue
		}
		if one.unknown {
			t.current.unknown++
			t.results.policies.of(one.policy).unknown++
			continue
		}
		t.current.failed++
		t.results.policies.of(one.policy).violate(v1alpha1.Violation{Namespace: vm.namespace, Name: vm.name, Cause: one.objection})
		if !t.current.full() {
			t.current.objections = append(t.current.objections, objection{vm.name, vm.uid, one})
		}
	}
}

// excepted counts a violation that an exception allows. using are the exceptions that the VM uses for other policies.
func (t *tally) excepted(vm subject, one ruling, using map[string]bool) {
	t.current.excepted++
	t.results.policies.of(one.policy).excepted++
	virtualMachines := int32(1)
	if using[one.exception.Name] {
		virtualMachines = 0
	}
	using[one.exception.Name] = true
	t.results.exceptions.of(one.exception.Name).add(virtualMachines, v1alpha1.PolicyExceptionUse{Namespace: vm.namespace, Name: vm.name, Policy: one.policy})
	if len(t.current.exceptions) < maximumResults {
		t.current.exceptions = append(t.current.exceptions, objection{vm.name, vm.uid, one})
	}
}

// finish finishes the current namespace. A namespace without VMs and without strays counts as not audited.
func (t *tally) finish() {
	namespace := t.current.namespace
	if namespace == "" {
		return
	}
	if t.strays != nil {
		list, approvals := t.strays(namespace, t.vms)
		for _, one := range list {
			f := findingOf(subject{namespace, one.name, one.uid}, approvals, *newCause(ruleNoVM, approvals[0].Name(), "%s", one.message))
			f.kind = one.kind
			t.violate(f, approvals)
		}
	}
	if t.results.vms > 0 || t.current.violating > 0 {
		t.found[namespace] = t.results
		t.finished(t.current)
	}
	t.current = namespaceTally{}
}

// strictest returns the strictest enforcement of the approvals.
func strictest(approvals []*approval.Approval) v1alpha1.Enforcement {
	order := []v1alpha1.Enforcement{v1alpha1.EnforcementAudit, v1alpha1.EnforcementWarn, v1alpha1.EnforcementDeny}
	highest := 0
	for _, a := range approvals {
		highest = max(highest, slices.Index(order, a.Enforcement()))
	}
	return order[highest]
}
