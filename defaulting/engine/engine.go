package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
	"github.com/vmstencil/stencil/defaulting/launcher"
)

// KubeVirt is the version whose behaviour is reproduced.
const KubeVirt = "v1.8.2"

// How much is remembered: at most about 8 MiB of answers and 10 MiB of layouts.
const (
	rememberedAnswers = 512
	rememberedAnswer  = 16 << 10
	rememberedLayouts = 2048
)

// patience is how long a layout is waited for that perhaps nobody waits for any more:
// longer than a worker takes to be started again, and than two watchdogs.
const patience = 30 * time.Second

// Libvirt is what the engine asks.
type Libvirt interface {
	launcher.Definer
	// Versions are those of libvirt and QEMU, and whether libvirt can be asked.
	Versions() (libvirt, qemu string, ready bool)
}

// Identities makes what has to be random.
type Identities interface {
	// UUID is a random one (version 4).
	UUID() string
	// MAC is a random, locally administered unicast address.
	MAC() string
}

// Options are what an Engine depends on.
type Options struct {
	Libvirt    Libvirt
	Identities Identities
	// Version is that of the defaulter.
	Version string
}

// Engine answers requests. It is safe for concurrent use.
type Engine struct {
	libvirt    Libvirt
	identities Identities
	version    string
	answers    *lru.Cache
	layouts    *lru.Cache
	flights    singleflight.Group
	counters   Counters
}

// Counters count what the caches did.
type Counters struct {
	AnswerHits, LayoutHits, Misses, Refusals, Drifts atomic.Int64
}

// New makes an Engine.
func New(options Options) *Engine {
	return &Engine{
		libvirt: options.Libvirt, identities: options.Identities, version: options.Version,
		answers: lru.New(rememberedAnswers), layouts: lru.New(rememberedLayouts),
	}
}

// Counters are the engine's own, to be read only.
func (e *Engine) Counters() *Counters { return &e.counters }

// Environment is what answers are made with now.
func (e *Engine) Environment() (defaulting.Environment, bool) {
	libvirt, qemu, ready := e.libvirt.Versions()
	return defaulting.Environment{Defaulter: e.version, Libvirt: libvirt, QEMU: qemu, KubeVirt: KubeVirt}, ready
}

// answerKey is a request together with what it is answered with.
type answerKey struct {
	body          [sha256.Size]byte
	libvirt, qemu string
}

// Serve answers a request as JSON with a Response as JSON. Errors are a
// *defaulting.Problem where they have a status.
func (e *Engine) Serve(ctx context.Context, body []byte) ([]byte, error) {
	libvirt, qemu, _ := e.libvirt.Versions()
	key := answerKey{sha256.Sum256(body), libvirt, qemu}
	if found, ok := e.answers.Get(key); ok {
		e.counters.AnswerHits.Add(1)
		return found.(*remembered).again(e.identities), nil
	}
	var request defaulting.Request
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, defaulting.Malformed("reading the request: %v", err)
	}
	response, err := e.Answer(ctx, &request)
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(response)
	if err != nil {
		return nil, fmt.Errorf("writing the answer: %w", err)
	}
	e.remember(key, response, len(answer))
	return answer, nil
}

// Answer answers a request.
func (e *Engine) Answer(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	vm, document, err := decode(request.VM)
	if err != nil {
		return nil, err
	}
	environment, _ := e.Environment()
	a := &answering{request: request, document: document, response: &defaulting.Response{
		Patch: []defaulting.PatchOperation{}, Set: []defaulting.Set{}, Skipped: []defaulting.Skipped{}, Devices: []defaulting.Device{},
		Environment: environment, Cache: defaulting.Unused,
	}}
	if vm.Spec.Template == nil {
		a.skip("spec.template", "the VirtualMachine has no template")
		return a.finish()
	}
	in := domain.Inputs{Instancetype: request.Instancetype, Preference: request.Preference, Cluster: request.Cluster}
	machine := domain.Prepare(vm, in)
	if causes := domain.Check(machine); len(causes) > 0 {
		return nil, defaulting.Invalid(causes)
	}
	if request.Operation == defaulting.Update && request.Running {
		err = e.extend(ctx, a, vm, machine, in)
	} else {
		err = e.fill(ctx, a, vm, machine)
	}
	if err != nil {
		return nil, err
	}
	a.response.Environment, _ = e.Environment()
	return a.finish()
}

// fill writes the defaults of a machine that does not run.
func (e *Engine) fill(ctx context.Context, a *answering, vm *kubevirtv1.VirtualMachine, machine *domain.Machine) error {
	known := limitsOf(vm, machine, a.request)
	if known.defaults == "" {
		for _, set := range machine.Sets {
			a.set(set)
		}
		a.identify(machine, e.identities)
	} else {
		a.skip("spec.template.spec", known.defaults)
	}
	shape := domain.NewShape(machine, a.request.Cluster)
	found, err := e.layout(ctx, shape, &a.response.Cache)
	if err != nil {
		return err
	}
	if found.refused != "" {
		if causes := blame(found.refused, machine); len(causes) > 0 {
			return defaulting.Invalid(causes)
		}
		a.skip("spec.template.spec.domain.machine.type", "libvirt refuses the machine: "+found.refused)
		a.skip("spec.template.spec.domain.devices", "libvirt refuses the machine: "+found.refused)
		return nil
	}
	a.response.Devices = devices(found.layout)
	if known.machineType != "" {
		a.skip("spec.template.spec.domain.machine.type", known.machineType)
	} else {
		a.pin(vm, machine, found.layout)
	}
	switch {
	case known.addresses != "":
		a.skipAddresses(known.addresses)
	case found.drifts:
		a.skipAddresses("a device is behind a bridge to conventional PCI, and the addresses would be others on the next start")
	default:
		a.place(machine, shape, found.layout)
	}
	return nil
}

// known is what is remembered of a shape: a layout, or libvirt's refusal.
type known struct {
	layout  *domain.Layout
	refused string
	// drifts says that the machine would be laid out differently once its addresses
	// are written.
	drifts bool
}

// layout finds the layout of a shape, and says where.
func (e *Engine) layout(ctx context.Context, shape domain.Shape, from *defaulting.Cache) (*known, error) {
	libvirt, qemu, _ := e.libvirt.Versions()
	text, err := json.Marshal(shape)
	if err != nil {
		return nil, fmt.Errorf("writing the shape: %w", err)
	}
	key := answerKey{sha256.Sum256(text), libvirt, qemu}
	if found, ok := e.layouts.Get(key); ok {
		e.counters.LayoutHits.Add(1)
		if *from != defaulting.Miss {
			*from = defaulting.Hit
		}
		return found.(*known), nil
	}
	*from = defaulting.Miss
	e.counters.Misses.Add(1)
	// Who asks for the same shape meanwhile waits for the same answer, and it is
	// remembered even if nobody waits any more.
	flight := e.flights.DoChan(string(text), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		found, err := e.ask(ctx, shape)
		if err == nil {
			now, nowQEMU, _ := e.libvirt.Versions()
			e.layouts.Add(answerKey{key.body, now, nowQEMU}, found)
		}
		return found, err
	})
	select {
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(*known), nil
	case <-ctx.Done():
		return nil, defaulting.Late("libvirt did not answer in time")
	}
}

// ask has libvirt lay out a shape, and once more where that may differ.
func (e *Engine) ask(ctx context.Context, shape domain.Shape) (*known, error) {
	layout, err := launcher.Layout(ctx, e.libvirt, shape)
	var refused *launcher.RefusedError
	if errors.As(err, &refused) {
		e.counters.Refusals.Add(1)
		return &known{refused: refused.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	found := &known{layout: layout}
	if layout.Bridged() {
		again, err := launcher.Layout(ctx, e.libvirt, shape.Place(layout))
		switch {
		case errors.As(err, &refused):
			found.drifts = true
		case err != nil:
			return nil, err
		default:
			found.drifts = !sameAddresses(layout, again)
		}
		if found.drifts {
			e.counters.Drifts.Add(1)
		}
	}
	return found, nil
}
