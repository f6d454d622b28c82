package evaluation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/rego"
)

// Policy is a policy to evaluate, such as *rego.Policy. It must be safe for
// concurrent use. Evaluate should end soon after ctx; see Evaluator for what happens
// if it does not.
type Policy interface {
	Name() string
	Digest() string
	Metadata() rego.Metadata
	Evaluate(ctx context.Context, in *rego.Input) (rego.Result, error)
}

// attempter is implemented by policies whose evaluation begins with an attempt that ends
// soon, see rego.Policy.
type attempter interface {
	Attempt(ctx context.Context, in *rego.Input) (result rego.Result, decided bool, err error)
	Complete(ctx context.Context, in *rego.Input) (rego.Result, error)
}

// readsRequest is implemented by policies that may read the time or the user of a request.
type readsRequest interface {
	ReadsTime() bool
	ReadsUser() bool
}

// ReadsRequest reports whether a policy may read the time or the user of a request. A stored object has neither, so that its violation of such a policy
// is unknown.
func ReadsRequest(p Policy) bool {
	reader, is := p.(readsRequest)
	return is && (reader.ReadsTime() || reader.ReadsUser())
}

// withData is implemented by policies that read values of the cluster.
type withData interface{ Data() []rego.Binding }

func dataOf(p Policy) []rego.Binding {
	if reader, ok := p.(withData); ok {
		return reader.Data()
	}
	return nil
}

// perObject returns a policy with the values of the cluster that depend on the object of an input.
func perObject(p Policy, in *rego.Input) Policy {
	if reader, ok := p.(*rego.Policy); ok {
		return reader.For(in)
	}
	return p
}

// MissingData returns a *rego.DataError for each value of the cluster that a policy reads and that does not exist. Values that depend on the object
// that is evaluated are left out.
func MissingData(p Policy) []error {
	var missing []error
	for _, bound := range dataOf(p) {
		if bound.Value == nil && bound.Source == nil {
			missing = append(missing, &rego.DataError{Binding: bound})
		}
	}
	return missing
}

// Enforcement specifies the effect of a policy's findings.
type Enforcement string

const (
	// EnforcementDeny denies the request for findings of rule deny, and warns for those
	// of rule warn.
	EnforcementDeny Enforcement = "Deny"
	// EnforcementWarn warns for findings of both rules.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementAudit only records the findings.
	EnforcementAudit Enforcement = "Audit"
)

// FailureMode specifies what happens to a request when a policy could not be evaluated.
type FailureMode string

const (
	// FailureModeDeny treats the failure as a finding of rule deny.
	FailureModeDeny FailureMode = "Deny"
	// FailureModeAllow allows the request.
	FailureModeAllow FailureMode = "Allow"
)

// Entry is a policy and the conditions under which it is evaluated.
type Entry struct {
	Policy Policy
	Match  Match
	// Enforcement is EnforcementDeny when empty.
	Enforcement Enforcement
	// FailureMode is FailureModeDeny when empty.
	FailureMode FailureMode
	// Timeout ends one evaluation; DefaultTimeout when 0.
	Timeout time.Duration
}

// DefaultTimeout is the Timeout of an Entry that sets none.
const DefaultTimeout = 100 * time.Millisecond

func (e *Entry) timeout() time.Duration {
	if e.Timeout <= 0 {
		return DefaultTimeout
	}
	return e.Timeout
}

func (e *Entry) enforcement() Enforcement {
	if e.Enforcement == "" {
		return EnforcementDeny
	}
	return e.Enforcement
}

// Match specifies the requests that a policy applies to: those that match every field.
// An empty field matches every request, unless its description states otherwise.
type Match struct {
	// Operations are CREATE, UPDATE, DELETE; the first two when empty.
	Operations []string
	// Kinds are kinds of objects; VirtualMachine when empty.
	Kinds []string
	// Namespaces selects by the labels of the object's namespace.
	Namespaces labels.Selector
	// Objects selects by the labels of the object. On UPDATE it is enough that the
	// old or the new labels match, as with admission webhooks, so that removing a
	// label does not evade a policy.
	Objects labels.Selector
	// Templates are the templates of which at least one must be that of the
	// VirtualMachine. Objects of other kinds always match.
	Templates []TemplateMatch
	// Include are the subjects to which the policy applies, Exclude those to which it
	// does not. Exclude takes precedence.
	Include, Exclude []Subject
}

// Subject is a user, a group or a service account.
type Subject = v1alpha1.Subject

// TemplateMatch matches templates that match all its fields; an empty field matches
// every template.
type TemplateMatch struct {
	Namespace, Name string
	// Selector selects by the labels of the template.
	Selector labels.Selector
}

var (
	defaultOperations = []string{"CREATE", "UPDATE"}
	defaultKinds      = []string{rego.KindVirtualMachine}
)

func (m *Match) operations() []string {
	if len(m.Operations) == 0 {
		return defaultOperations
	}
	return m.Operations
}

func (m *Match) kinds() []string {
	if len(m.Kinds) == 0 {
		return defaultKinds
	}
	return m.Kinds
}
