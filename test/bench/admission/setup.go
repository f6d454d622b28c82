package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
)

// setup is one of the things that are compared.
type setup struct {
	name string
	// installed says whether the API server knows of Stencil's webhooks and policies.
	installed bool
	// unjudged says that it does not know of those that judge.
	unjudged bool
	// idle says that it knows of webhooks that do nothing instead.
	idle bool
	// ready says that it knows of a webhook beside them that has its answer ready.
	ready bool
	// body is what is sent.
	body func(machines) []byte
}

var (
	without = setup{name: "no webhook", body: func(m machines) []byte { return m.complete }}
	// idle is what a mutating and a validating webhook cost that do nothing: what no webhook can go below.
	idle  = setup{name: "two webhooks that do nothing", idle: true, body: func(m machines) []byte { return m.complete }}
	noRef = setup{name: "webhook, no template-ref", installed: true, body: func(m machines) []byte { return m.complete }}
	// control is without once more: how far the two are apart is what the method takes for a difference where there is none.
	control = setup{name: "no webhook, again", body: func(m machines) []byte { return m.complete }}
	withRef = setup{name: "webhook, rendered from golden/fedora", installed: true, body: func(m machines) []byte { return m.reference }}
	// unjudged and judged are for a namespace that an approval covers.
	unjudged = setup{name: "rendered and not judged", installed: true, unjudged: true, body: func(m machines) []byte { return m.reference }}
	judged   = setup{name: "rendered and judged", installed: true, body: func(m machines) []byte { return m.reference }}
)

// everySetup is all that the main tables compare.
var everySetup = []setup{without, idle, noRef, withRef}

// bench is a running cluster, prepared for measurements.
type bench struct {
	stencil      *platform.Platform
	registration *registration
	judgement    *registration
	idler        *idler
	// ready answers what the defaults webhook does; nil where that is not measured.
	ready    *idler
	objects  dynamic.Interface
	senders  []*sender
	machines []machines
}

// prepare applies the examples and makes that many clients, which are one person who owns machines and may use the template.
func prepare(ctx context.Context, stencil *platform.Platform, clients int) (*bench, error) {
	for _, example := range []string{"golden/00-namespace.yaml", "golden", "access"} {
		result, err := stencil.Plane.Kubectl(ctx, nil, "", "apply", "-f", stencil.Example(example))
		if err != nil {
			return nil, err
		}
		if result.Code != 0 {
			return nil, fmt.Errorf("applying the examples in %s: %s", example, result.Stderr)
		}
	}
	owner, err := stencil.Plane.User("bench", "team-a")
	if err != nil {
		return nil, err
	}
	b := &bench{stencil: stencil}
	for client := range clients {
		sender, err := newSender(owner.Config())
		if err != nil {
			return nil, err
		}
		machines, err := machinesFor(ctx, sender, client)
		if err != nil {
			return nil, err
		}
		b.senders = append(b.senders, sender)
		b.machines = append(b.machines, machines)
	}
	objects, err := dynamic.NewForConfig(stencil.Plane.AdminConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	if b.registration, err = recordRegistration(ctx, objects, install.Release, admissionResources, b.applied); err != nil {
		return nil, err
	}
	if b.judgement, err = recordRegistration(ctx, objects, install.Release, judgement, b.judges); err != nil {
		return nil, err
	}
	b.objects = objects
	b.idler, err = newIdler(objects, nil, func(ctx context.Context) error { return b.send(without)(ctx, 0) })
	return b, err
}

// judges says whether the API server calls the webhooks that judge: an approval that does not compile is refused by one of them.
func (b *bench) judges(ctx context.Context) (bool, error) {
	const odd = `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "odd"},
		"spec": {"namespaces": ["odd"], "templates": [{"namespace": "golden", "name": "fedora"}], "parameters": [{"name": "A", "expression": "value ="}]}}`
	result, err := b.stencil.Plane.Kubectl(ctx, nil, odd, "create", "--dry-run=server", "-f", "-")
	return result.Code != 0, err
}

// govern has an approval cover the namespace of the machines, or none, and returns when the manager judges by it.
func (b *bench) govern(ctx context.Context, governed bool) error {
	const rule = `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "bench"}, "spec": {
		"namespaces": ["` + namespace + `"], "templates": [{"namespace": "golden", "name": "fedora"}],
		"parameters": [{"name": "INSTANCETYPE", "allowed": ["u1.medium", "u1.large"]}], "overrides": ["spec.runStrategy", "metadata.labels.*"]}}`
	arguments := []string{"delete", "templateapproval", "bench"}
	if governed {
		arguments = []string{"apply", "-f", "-"}
	}
	result, err := b.stencil.Plane.Kubectl(ctx, nil, rule, arguments...)
	if err != nil {
		return err
	}
	if result.Code != 0 {
		return fmt.Errorf("changing the approval: %s", result.Stderr)
	}
	// A machine without a template is what an approval refuses.
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, settleLimit, true, func(ctx context.Context) (bool, error) {
		_, err := b.senders[0].create(ctx, b.machines[0].complete)
		if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
			return false, err
		}
		return (err != nil) == governed, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the namespace is governed: %t: %w", governed, err)
	}
	return nil
}

// newSender makes a client with a TLS connection that it shares with nobody, as different people's clients do.
func newSender(config *rest.Config) (*sender, error) {
	// The dialer is what connections are shared by.
	config.Dial = (&net.Dialer{}).DialContext
	config.GroupVersion = &schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return &sender{client: client}, nil
}

// applied says whether the API server calls the render webhook.
func (b *bench) applied(ctx context.Context) (bool, error) {
	answer, err := b.senders[0].create(ctx, b.machines[0].reference)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return false, nil // A VM without a spec is refused unless it was rendered.
	}
	return err == nil && rendered(answer), err
}

// send makes a client's next request in a set-up.
func (b *bench) send(s setup) load.Send {
	return func(ctx context.Context, client int) error {
		answer, err := b.senders[client].create(ctx, s.body(b.machines[client]))
		if err != nil {
			return fmt.Errorf("creating a VM (%s): %w", s.name, err)
		}
		if !rendered(answer) {
			return fmt.Errorf("creating a VM (%s): not the VM that was expected: %s", s.name, answer)
		}
		return nil
	}
}
