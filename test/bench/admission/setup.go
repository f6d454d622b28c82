package admission

import (
	"context"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/test/install"
	"github.com/vmstencil/stencil/test/platform"
)

// setup is one of the things that are compared.
type setup struct {
	name string
	// installed says whether the API server knows of Stencil's webhooks and policies.
	installed bool
	// body is what is sent.
	body func(machines) []byte
}

var (
	without = setup{name: "no webhook", body: func(m machines) []byte { return m.complete }}
	noRef   = setup{name: "webhook, no template-ref", installed: true, body: func(m machines) []byte { return m.complete }}
	// control is without once more: how far the two are apart is what the method takes for a difference where there is none.
	control = setup{name: "no webhook, again", body: func(m machines) []byte { return m.complete }}
	withRef = setup{name: "webhook, rendered from golden/fedora", installed: true, body: func(m machines) []byte { return m.reference }}
)

// bench is a running cluster, prepared for measurements.
type bench struct {
	stencil      *platform.Platform
	registration *registration
	senders      []*sender
	machines     []machines
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
	b.registration, err = recordRegistration(ctx, objects, install.Release, b.applied)
	return b, err
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
func (b *bench) send(s setup) send {
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
