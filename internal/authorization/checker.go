package authorization

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	// AllowTTL is the longest time for which a positive answer is reused.
	AllowTTL = 10 * time.Second
	// DenyTTL is the longest time for which a negative answer is reused. It is short so that a user with a new permission need not wait.
	DenyTTL = 2 * time.Second
)

// Verb is the verb of an action.
type Verb string

const (
	// Use is rendering a VirtualMachine from the template.
	Use Verb = "use"
	// Get is reading an object, which shows that it exists.
	Get Verb = "get"
	// List is reading the objects of a namespace, or of all of them.
	List Verb = "list"
	// Create is making one.
	Create Verb = "create"
	// Export is copying the disks of a template into a package.
	Export Verb = "export"
)

// Options are what a Checker needs.
type Options struct {
	// Client makes the SubjectAccessReviews.
	Client authorizationv1client.AuthorizationV1Interface
	// Fresh makes every check a request: an answer is not reused. It is for actions after a request, once for each user.
	Fresh bool
	// Registerer registers the metrics; nil means that they are not registered.
	Registerer prometheus.Registerer
}

// Checker checks permissions. It is safe for concurrent use.
type Checker struct {
	authorizer authorizer.Authorizer
	latency    *prometheus.HistogramVec
}

// New returns a Checker. It fails when the options do not make an authorizer or the metrics are registered already.
func New(o Options) (*Checker, error) {
	allow, deny := AllowTTL, DenyTTL
	if o.Fresh {
		allow, deny = 0, 0
	}
	delegating, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: o.Client,
		AllowCacheTTL:             allow,
		DenyCacheTTL:              deny,
		// Two quick attempts: an admission request has little time, and its sender can retry better.
		WebhookRetryBackoff: &wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 2},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("making the delegating authorizer: %w", err)
	}
	c := &Checker{authorizer: delegating, latency: newLatency()}
	if o.Registerer != nil {
		if err := o.Registerer.Register(c.latency); err != nil {
			return nil, fmt.Errorf("registering permission metrics: %w", err)
		}
	}
	return c, nil
}

// Allowed reports whether the user may do verb with the template of that namespace and name. An error means that there is no answer, which callers
// must treat as a denial.
func (c *Checker) Allowed(ctx context.Context, requester authenticationv1.UserInfo, verb Verb, namespace, name string) (bool, error) {
	return c.May(ctx, requester, Action{
		Verb: verb, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "virtualmachinetemplates",
		Namespace: namespace, Name: name,
	})
}

// CreateTemplates returns the action of creating templates in a namespace.
func CreateTemplates(namespace string) Action {
	return Action{Verb: Create, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "virtualmachinetemplates", Namespace: namespace}
}

// CreateDataVolumes returns the action of creating DataVolumes in a namespace.
func CreateDataVolumes(namespace string) Action {
	return Action{Verb: Create, Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes", Namespace: namespace}
}

// Capture returns the action of using the VirtualMachine of a request as the source of a template: reading it in its own namespace, and otherwise a permission that
// its owners grant.
func Capture(object *v1beta1.VirtualMachineTemplateRequest) Action {
	source := object.Spec.VirtualMachineRef
	if source.Namespace == object.Namespace {
		return Action{Verb: Get, Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines", Namespace: source.Namespace, Name: source.Name}
	}
	return Action{
		Verb: Create, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
		Resource: "virtualmachinetemplaterequests", Subresource: "source", Namespace: source.Namespace, Name: source.Name,
	}
}

// Action is something that a user does with objects of one namespace.
type Action struct {
	Verb                                  Verb
	Group, Version, Resource, Subresource string
	Namespace                             string
	// Name is the name of the object; empty when it has none yet, or all are meant.
	Name string
}

// CopyDisks returns the action of copying claims and VolumeSnapshots of a namespace, as CDI checks it.
func CopyDisks(namespace string) Action {
	return Action{Verb: Create, Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes", Subresource: "source", Namespace: namespace}
}

// String returns the action for messages: create virtualmachinetemplates in golden, get virtualmachines shop/web.
func (a Action) String() string {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Name == "" {
		return fmt.Sprintf("%s %s in %s", a.Verb, resource, a.Namespace)
	}
	if a.Resource == "virtualmachinetemplates" && a.Subresource == "" {
		resource = "template"
	}
	return fmt.Sprintf("%s %s %s/%s", a.Verb, resource, a.Namespace, a.Name)
}

// May reports whether the user may do something. An error means that there is no answer, which callers must treat as a denial.
func (c *Checker) May(ctx context.Context, requester authenticationv1.UserInfo, action Action) (bool, error) {
	start := time.Now()
	decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            info(requester),
		Verb:            string(action.Verb),
		Namespace:       action.Namespace,
		APIGroup:        action.Group,
		APIVersion:      action.Version,
		Resource:        action.Resource,
		Subresource:     action.Subresource,
		Name:            action.Name,
		ResourceRequest: true,
	})
	allowed := err == nil && decision == authorizer.DecisionAllow
	c.latency.WithLabelValues(string(action.Verb), resultLabel(allowed, err)).Observe(time.Since(start).Seconds())
	if err != nil {
		return false, fmt.Errorf("asking whether %q may %s: %w", requester.Username, action, err)
	}
	return allowed, nil
}

func info(requester authenticationv1.UserInfo) user.Info {
	extra := make(map[string][]string, len(requester.Extra))
	for k, v := range requester.Extra {
		extra[k] = v
	}
	return &user.DefaultInfo{Name: requester.Username, UID: requester.UID, Groups: requester.Groups, Extra: extra}
}

func resultLabel(allowed bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case allowed:
		return "allowed"
	default:
		return "denied"
	}
}

// newLatency counts cached answers too: for the user, only the duration of the permission check matters, not the source of the answer.
func newLatency() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "stencil",
		Name:      "permission_check_duration_seconds",
		Help:      "Time that a permission check took, in seconds, by verb and answer; cached answers are counted too.",
		Buckets:   []float64{0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5},
	}, []string{"verb", "answer"})
}
