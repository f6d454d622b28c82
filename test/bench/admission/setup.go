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

	"github.com/vmstencil/stencil/test/bench/load"
	"github.com/vmstencil/stencil/test/metrics"
	"github.com/vmstencil/stencil/test/platform"
)

// part is a registration that is installed in some set-ups and not in others.
type part int

const (
	// policies are Stencil's ValidatingAdmissionPolicies, webhooks its webhook configurations.
	policies part = iota
	webhooks
	// oneFloor is the mutating webhook of the floor, twoFloors that and the validating one.
	oneFloor
	twoFloors
	// ready is the mutating webhook of the floor beside Stencil's.
	ready
	parts
)

// setup is one of the set-ups that are compared.
type setup struct {
	name string
	// parts are the installed registrations.
	parts []part
	// body is what is sent.
	body func(vmRequests) []byte
}

func complete(m vmRequests) []byte  { return m.complete }
func reference(m vmRequests) []byte { return m.reference }

var (
	without = setup{name: "no webhook", body: complete}
	// control is the set-up without again: the difference between the two is the error of the method.
	control = setup{name: "no webhook, again", body: complete}
	noRef   = setup{name: "Stencil, no template-ref", parts: []part{policies, webhooks}, body: complete}

	// Without an approval.
	bareFloor = setup{name: "floor, one call, without policies", parts: []part{oneFloor}, body: reference}
	floorOne  = setup{name: "floor, one call", parts: []part{policies, oneFloor}, body: reference}
	rendered  = setup{name: "Stencil, rendered", parts: []part{policies, webhooks}, body: reference}

	// With an approval and a policy.
	floorTwo  = setup{name: "floor, two calls", parts: []part{policies, twoFloors}, body: reference}
	evaluated = setup{name: "Stencil, rendered and judged", parts: []part{policies, webhooks}, body: reference}
)

// bench is a running cluster, prepared for measurements.
type bench struct {
	stencil       *platform.Platform
	registrations [parts]*registration
	// floor is nil until it is started.
	floor   *floor
	objects dynamic.Interface
	senders []*sender
	vms     []vmRequests
}

// prepare applies the examples and makes that many clients of one user, who owns VMs and may use the template.
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
	owner, err := stencil.Plane.User(username, group)
	if err != nil {
		return nil, err
	}
	b := &bench{stencil: stencil}
	for client := range clients {
		sender, err := newSender(owner.Config())
		if err != nil {
			return nil, err
		}
		vms, err := vmRequestsFor(ctx, sender, client)
		if err != nil {
			return nil, err
		}
		b.senders = append(b.senders, sender)
		b.vms = append(b.vms, vms)
	}
	if b.objects, err = dynamic.NewForConfig(stencil.Plane.AdminConfig()); err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	return b, b.record(ctx)
}

// startFloor starts the floor, which answers these patches.
func (b *bench) startFloor(ctx context.Context, patches map[string][]byte) (err error) {
	if b.floor, err = startFloor(ctx, patches); err != nil {
		return err
	}
	return b.record(ctx)
}

// close ends what was started for the measurements.
func (b *bench) close() error {
	if b.floor == nil {
		return nil
	}
	return b.floor.close()
}

// record stores the objects that Stencil has registered, which must be in effect, and makes registrations of the floor modelled on them.
func (b *bench) record(ctx context.Context) error {
	objects, err := recorded(ctx, b.objects, policiesOfAPIServer, bindingsOfPolicies)
	if err != nil {
		return err
	}
	b.registrations[policies] = &registration{client: b.objects, objects: objects, installed: true, effect: b.denials, whole: 1}
	if objects, err = recorded(ctx, b.objects, validatingConfigurations, mutatingConfigurations); err != nil {
		return err
	}
	stencil := &registration{client: b.objects, objects: objects, installed: true, effect: b.callsOf(b.managerCalls, reference)}
	if stencil.whole, err = stencil.effect(ctx); err != nil {
		return err
	}
	if stencil.whole == 0 {
		return errors.New("the API server calls no webhook of Stencil's for a VM from a template")
	}
	b.registrations[webhooks] = stencil
	if b.floor == nil {
		return nil
	}
	render, err := webhook(objects, "render.template.kubevirt.io")
	if err != nil {
		return err
	}
	validate, err := webhook(objects, "virtualmachine.validate.template.kubevirt.io")
	if err != nil {
		return err
	}
	one := []registered{b.floor.mutating(floorConfiguration, render)}
	effect := b.callsOf(b.floor.calls, reference)
	b.registrations[oneFloor] = &registration{client: b.objects, objects: one, effect: effect, whole: 1}
	two := append([]registered{b.floor.validating(validate)}, one...)
	b.registrations[twoFloors] = &registration{client: b.objects, objects: two, effect: effect, whole: 2}
	return nil
}

// know installs the registrations of these parts and no other. It deletes before it creates.
func (b *bench) know(ctx context.Context, wanted []part) error {
	known := [parts]bool{}
	for _, each := range wanted {
		known[each] = true
	}
	for _, installed := range []bool{false, true} {
		for each, r := range b.registrations {
			if r == nil || known[each] != installed {
				continue
			}
			if err := r.set(ctx, installed); err != nil {
				return err
			}
		}
	}
	return nil
}

// denials is 1 when the API server enforces Stencil's policies: one of them denies a VM with the annotation of its creator.
func (b *bench) denials(ctx context.Context) (int, error) {
	_, err := b.senders[0].create(ctx, b.vms[0].forged)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return 1, nil
	}
	return 0, err
}

// callsOf returns how often webhooks are called for the creation of one VM, denied or not.
func (b *bench) callsOf(count func(context.Context) (int, error), body func(vmRequests) []byte) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		before, err := count(ctx)
		if err != nil {
			return 0, err
		}
		_, err = b.senders[0].create(ctx, body(b.vms[0]))
		if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
			return 0, err
		}
		after, err := count(ctx)
		return after - before, err
	}
}

// calls returns how often the webhooks of Stencil and of the floor were called so far.
func (b *bench) calls(ctx context.Context) (int, error) {
	calls, err := b.managerCalls(ctx)
	if err != nil || b.floor == nil {
		return calls, err
	}
	others, err := b.floor.calls(ctx)
	return calls + others, err
}

// managerCalls returns how often the manager's webhooks were called for creations.
func (b *bench) managerCalls(ctx context.Context) (int, error) {
	text, err := b.stencil.Manager.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	total, err := metrics.Sum(text, "stencil_webhook_duration_seconds_count", `operation="CREATE"`)
	return int(total), err
}

// newSender makes a client with a TLS connection of its own, as clients of different users have.
func newSender(config *rest.Config) (*sender, error) {
	// Connections are shared by clients with the same dialer.
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

// send makes a client's next request in a set-up.
func (b *bench) send(s setup) load.Send {
	return func(ctx context.Context, client int) error {
		answer, err := b.senders[client].create(ctx, s.body(b.vms[client]))
		if err != nil {
			return fmt.Errorf("creating a VM (%s): %w: %s", s.name, err, answer)
		}
		if !isRendered(answer) {
			return fmt.Errorf("creating a VM (%s): not the VM that was expected: %s", s.name, answer)
		}
		return nil
	}
}
