package policyeval

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/objects"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
	sizing "github.com/vmstencil/stencil/template/instancetype"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// templateWaitTimeout is the timeout of a request that waits for a template to appear in the cache.
const templateWaitTimeout = 300 * time.Millisecond

// Policies returns the active policies; a policycache.Cache implements it.
type Policies interface {
	// Synced reports whether all policies that existed at the start are compiled.
	Synced() bool
	Set() *policyset.Set
	Evaluator() *policyset.Evaluator
}

// Exceptions returns the exceptions from policies; an exceptioncache.Cache implements it.
type Exceptions interface {
	Set() *policyset.Exceptions
	// Used counts the use of exceptions by a request.
	Used([]policyset.Excepted)
}

// Namespaces returns the labels and annotations of namespaces; an approvalcache.Cache implements it.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool)
}

// Templates returns compiled templates; a templatecache.Cache implements it.
type Templates interface {
	Wait(ctx context.Context, namespace, name string, timeout time.Duration) *templatecache.Template
}

// Options are the dependencies of an Evaluator.
type Options struct {
	Policies Policies
	// Exceptions may be nil; there are no exceptions then.
	Exceptions    Exceptions
	Namespaces    Namespaces
	Templates     Templates
	Instancetypes sizing.Resolver
	// Objects reads the objects that are created with a new VirtualMachine.
	Objects *objects.Reader
	// Log receives the decision log. If nil, decisions are not logged.
	Log *Log
	// Metrics counts decisions. If nil, decisions are not counted.
	Metrics *Metrics
	// Clock returns the time of a request. If nil, the real clock is used.
	Clock clock.PassiveClock
}

// Evaluator evaluates the policies for requests. It is safe for concurrent use.
type Evaluator struct{ options Options }

// New returns an Evaluator.
func New(o Options) *Evaluator {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Evaluator{o}
}

// Evaluate returns the decision of the policies about a request. object is the decoded object of the request; if nil, it
// is decoded here. The message of an error is for users and gives the reason why the request cannot be evaluated.
func (e *Evaluator) Evaluate(ctx context.Context, request admission.Request, object map[string]any) (policyset.Decision, error) {
	policies := e.options.Policies
	if !policies.Synced() {
		e.count(request, resultUnavailable)
		return policyset.Decision{}, errors.New("the policies have not been compiled yet")
	}
	set := policies.Set()
	if set.Empty(seenAs(request), string(request.Operation)) {
		return policyset.Decision{}, nil
	}
	decision, evaluated, err := e.evaluate(ctx, set, request, object)
	switch {
	case err != nil:
		e.count(request, resultUnavailable)
	case evaluated:
		e.count(request, policyinput.ResultOf(decision))
	}
	return decision, err
}

// Foresee returns the denials that the policies would have about a request which is denied for another reason: it is not counted and not logged, and
// uses no exception. Policies that cannot be evaluated now deny nothing.
func (e *Evaluator) Foresee(ctx context.Context, request admission.Request, object map[string]any) policyset.Decision {
	traceless := e.options
	traceless.Log, traceless.Metrics = nil, nil
	if traceless.Exceptions != nil {
		traceless.Exceptions = unused{traceless.Exceptions}
	}
	decision, err := New(traceless).Evaluate(ctx, request, object)
	if err != nil {
		return policyset.Decision{}
	}
	return policyset.Decision{Denials: slices.DeleteFunc(decision.Denials, func(v policyset.Violation) bool { return v.Failure })}
}

// unused are exceptions whose use is not counted.
type unused struct{ Exceptions }

func (unused) Used([]policyset.Excepted) {}

func (e *Evaluator) evaluate(ctx context.Context, set *policyset.Set, request admission.Request, object map[string]any) (policyset.Decision, bool, error) {
	var none policyset.Decision
	c, err := newCase(request, object)
	if err != nil {
		return none, false, err
	}
	c.Request.Time = e.options.Clock.Now()
	if leaving(c) {
		return none, false, nil
	}
	labels, annotations, found := e.options.Namespaces.Namespace(ctx, request.Namespace)
	if !found {
		return none, false, fmt.Errorf("namespace %s is not in the cache yet", request.Namespace)
	}
	c.Namespace = rego.Namespace{Name: request.Namespace, Labels: labels, Annotations: annotations}
	c.Template = e.template(ctx, c)
	entries := set.Matching(c.Query())
	if len(entries) == 0 {
		return none, false, nil
	}
	if c.Request.Kind == rego.KindVirtualMachine && c.Request.Operation == string(admissionv1.Create) && !c.Viewed() {
		rendered, err := e.options.Objects.Read(c.Object, request.Namespace)
		if err != nil {
			return none, false, err
		}
		c.Objects, c.Secrets = rendered.Objects, rendered.Sensitive
	}
	unresolved := c.Resolve(ctx, e.options.Instancetypes)
	document := c.Document()
	input, err := set.Input(document)
	if err != nil {
		return none, false, fmt.Errorf("the object cannot be shown to policies: %w", err)
	}
	decision := e.options.Policies.Evaluator().Evaluate(ctx, entries, input)
	c.RedactFor(&decision)
	policyinput.AddUnresolved(&decision, entries, unresolved)
	e.except(c, &decision)
	e.options.Log.write(c, string(request.UID), decision, document, input)
	return decision, true, nil
}

// except applies the exceptions to a decision. Only a request that the policies allow uses them.
func (e *Evaluator) except(c *policyinput.Case, decision *policyset.Decision) {
	if e.options.Exceptions == nil {
		return
	}
	c.Except(decision, e.options.Exceptions.Set(), c.Request.Time)
	if len(decision.Excepted) > 0 && len(decision.Denials) == 0 && !c.Request.DryRun {
		e.options.Exceptions.Used(decision.Excepted)
	}
}

func newCase(request admission.Request, object map[string]any) (*policyinput.Case, error) {
	c := &policyinput.Case{
		Request: rego.Request{
			Operation: string(request.Operation),
			Kind:      request.Kind.Kind,
			Namespace: request.Namespace,
			Name:      request.Name,
			UserInfo: rego.UserInfo{
				Username: request.UserInfo.Username,
				UID:      request.UserInfo.UID,
				Groups:   request.UserInfo.Groups,
			},
			DryRun: ptr.Deref(request.DryRun, false),
		},
		Object: object,
	}
	if len(request.UserInfo.Extra) > 0 {
		c.Request.UserInfo.Extra = make(map[string][]string, len(request.UserInfo.Extra))
		for key, values := range request.UserInfo.Extra {
			c.Request.UserInfo.Extra[key] = values
		}
	}
	var err error
	if object == nil && request.Operation != admissionv1.Delete {
		if c.Object, err = machine.Decode(request.Object.Raw); err != nil {
			return nil, err
		}
	}
	if request.Operation != admissionv1.Create {
		if c.OldObject, err = machine.Decode(request.OldObject.Raw); err != nil {
			return nil, fmt.Errorf("stored object: %w", err)
		}
	}
	if c.Request.Name == "" {
		// With generateName the request has no name, but the render webhook has set the name of the object. The request
		// that deletes a collection has no name either.
		object := c.Object
		if object == nil {
			object = c.OldObject
		}
		metadata, _ := object["metadata"].(map[string]any)
		c.Request.Name = machine.StringAt(metadata, "name")
	}
	c.View()
	return c, nil
}

// seenAs returns the kind as which policies evaluate the object of a request.
func seenAs(request admission.Request) string {
	if _, viewed := machine.View(request.Kind.Kind, nil); viewed && request.Operation != admissionv1.Delete {
		return rego.KindVirtualMachine
	}
	return request.Kind.Kind
}

// leaving reports whether the object is being deleted and the update leaves its spec unchanged, for example to remove
// a finalizer. Policies must not block its deletion.
func leaving(c *policyinput.Case) bool {
	if c.Request.Operation != string(admissionv1.Update) {
		return false
	}
	metadata, _ := c.OldObject["metadata"].(map[string]any)
	return metadata["deletionTimestamp"] != nil && reflect.DeepEqual(c.Object["spec"], c.OldObject["spec"])
}

// template returns the template of a VirtualMachine. A stored VM has an immutable record of its template. For a new
// VM, the webhook that compares the VM with its template has also compared the record with the reference.
func (e *Evaluator) template(ctx context.Context, c *policyinput.Case) *policyinput.Template {
	if c.Request.Kind != rego.KindVirtualMachine || c.Viewed() {
		return nil
	}
	object, wait := c.OldObject, time.Duration(0)
	if c.Request.Operation == string(admissionv1.Create) {
		object, wait = c.Object, templateWaitTimeout
	}
	origin, found := policyinput.OriginOf(object, c.Request.Namespace)
	if !found {
		return nil
	}
	stored := e.options.Templates.Wait(ctx, origin.Namespace, origin.Name, wait)
	if stored == nil {
		return origin.Template(nil, nil)
	}
	// The template of a policy input has no parameters if it does not compile.
	compiled, _ := stored.Compiled()
	return origin.Template(stored.Metadata(), compiled)
}

func (e *Evaluator) count(request admission.Request, result string) {
	if e.options.Metrics != nil {
		e.options.Metrics.decisions.WithLabelValues(request.Kind.Kind, string(request.Operation), result).Inc()
	}
}
