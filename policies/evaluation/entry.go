package evaluation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/rego"
)

// Policy is what is evaluated; *rego.Policy is one. It must be safe for concurrent
// use. Evaluate should end soon after ctx does; see Evaluator for what happens to one
// that does not.
type Policy interface {
	Name() string
	Digest() string
	Metadata() rego.Metadata
	Evaluate(ctx context.Context, in *rego.Input) (rego.Result, error)
}

// Enforcement says what becomes of a policy's findings.
type Enforcement string

const (
	// EnforcementDeny refuses the request for findings of rule deny, and warns for
	// those of rule warn.
	EnforcementDeny Enforcement = "Deny"
	// EnforcementWarn warns for findings of both rules.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementAudit only records the findings.
	EnforcementAudit Enforcement = "Audit"
)

// FailureMode says what becomes of a request when a policy could not be evaluated.
type FailureMode string

const (
	// FailureModeDeny treats it as a finding of rule deny.
	FailureModeDeny FailureMode = "Deny"
	// FailureModeAllow lets the request pass.
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

// DefaultTimeout is the Timeout of an Entry that gives none.
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

// Match says which requests a policy is about: those that meet every field. An empty
// field is met by every request, except where it says otherwise.
type Match struct {
	// Operations are CREATE, UPDATE, DELETE; the first two when empty.
	Operations []string
	// Kinds are kinds of objects; VirtualMachine when empty.
	Kinds []string
	// Namespaces selects by the labels of the object's namespace.
	Namespaces labels.Selector
	// Objects selects by the labels of the object. On UPDATE it is enough that the
	// old or the new ones are selected, as with admission webhooks: nobody escapes a
	// policy by removing a label.
	Objects labels.Selector
	// Templates are the templates of which at least one must be that of the
	// VirtualMachine. Objects of other kinds have none and meet them.
	Templates []TemplateMatch
	// Include are those whose requests the policy is about, Exclude those whose
	// requests it is not about, which wins.
	Include, Exclude []Subject
}

// Subject is a user, a group or a service account.
type Subject = v1alpha1.Subject

// TemplateMatch matches templates that meet all its fields; empty ones are met by
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
