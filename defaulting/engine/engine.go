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

// Sizes of the caches: at most about 8 MiB of responses and 10 MiB of layouts.
const (
	maxCachedResponses     = 512
	maxCachedResponseBytes = 16 << 10
	maxCachedLayouts       = 2048
)

// layoutTimeout bounds the computation of a layout, which continues when its callers have left. It
// is longer than a restart of a worker and than two watchdog timeouts.
const layoutTimeout = 30 * time.Second

// Libvirt is the part of libvirt that the engine uses.
type Libvirt interface {
	launcher.Definer
	// Versions returns the versions of libvirt and QEMU, and whether libvirt is available.
	Versions() (libvirt, qemu string, ready bool)
}

// Identities generates random values.
type Identities interface {
	// UUID returns a random UUID (version 4).
	UUID() string
	// MAC returns a random, locally administered unicast address.
	MAC() string
}

// Options are the dependencies of an Engine.
type Options struct {
	Libvirt    Libvirt
	Identities Identities
	// Version is the version of the defaulter.
	Version string
	// KubeVirt is the version of KubeVirt whose virt-launcher has the same libvirt and QEMU. If it is empty, they are taken for
	// those of the cluster.
	KubeVirt string
	// NoPins rejects requests whose policy pins machine types: the nodes may not have those of this QEMU.
	NoPins bool
}

// Engine answers requests. It is safe for concurrent use.
type Engine struct {
	libvirt    Libvirt
	identities Identities
	version    string
	kubevirt   string
	noPins     bool
	answers    *lru.Cache
	layouts    *lru.Cache
	flights    singleflight.Group
	counters   Counters
}

// Counters count cache hits and misses, rejections by libvirt, and layouts that drift.
type Counters struct {
	AnswerHits, LayoutHits, Misses, Rejections, Drifts atomic.Int64
}

// New returns an Engine.
func New(options Options) *Engine {
	return &Engine{
		libvirt: options.Libvirt, identities: options.Identities, version: options.Version, kubevirt: options.KubeVirt, noPins: options.NoPins,
		answers: lru.New(maxCachedResponses), layouts: lru.New(maxCachedLayouts),
	}
}

// Counters returns the engine's counters. Callers must only read them.
func (e *Engine) Counters() *Counters { return &e.counters }

// Environment returns the current versions, and whether libvirt is available.
func (e *Engine) Environment() (defaulting.Environment, bool) {
	libvirt, qemu, ready := e.libvirt.Versions()
	environment := defaulting.Environment{Defaulter: e.version, Libvirt: libvirt, QEMU: qemu, KubeVirt: e.byDefault().Version, Image: e.kubevirt}
	for _, release := range domain.Releases {
		environment.Reproduces = append(environment.Reproduces, release.Version)
	}
	return environment, ready
}

// environmentOf returns the versions with which a response is computed.
func (e *Engine) environmentOf(chosen chosenReleases) defaulting.Environment {
	libvirt, qemu, _ := e.libvirt.Versions()
	return defaulting.Environment{Defaulter: e.version, Libvirt: libvirt, QEMU: qemu, KubeVirt: chosen.versions(), Image: e.kubevirt}
}

// answerKey is the hash of a request or of a shape, with the versions that it is answered with.
type answerKey struct {
	body          [sha256.Size]byte
	libvirt, qemu string
}

// Serve answers a request as JSON with a Response as JSON. An error that has a status is a
// *defaulting.Problem.
func (e *Engine) Serve(ctx context.Context, body []byte) ([]byte, error) {
	libvirt, qemu, _ := e.libvirt.Versions()
	key := answerKey{sha256.Sum256(body), libvirt, qemu}
	if found, ok := e.answers.Get(key); ok {
		e.counters.AnswerHits.Add(1)
		return found.(*cachedResponse).again(e.identities), nil
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
	e.cache(key, response, len(answer))
	return answer, nil
}

// Answer answers a request.
func (e *Engine) Answer(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	if e.noPins && request.Policy.MachineType != defaulting.MachineTypeKeep {
		return nil, defaulting.Malformed("the defaulter has a QEMU whose machine types the nodes may not have, and does not pin them: set defaulting.machineType of the chart to keep, which is machineType of the policy here")
	}
	vm, document, err := decode(request.VM)
	if err != nil {
		return nil, err
	}
	chosen := e.choose(request.Cluster)
	a := &answering{request: request, chosen: chosen, document: document, response: &defaulting.Response{
		Patch: []defaulting.PatchOperation{}, Set: []defaulting.Set{}, Skipped: []defaulting.Skipped{}, Devices: []defaulting.Device{},
		Environment: e.environmentOf(chosen), Cache: defaulting.Unused,
	}}
	if vm.Spec.Template == nil {
		a.skip("spec.template", "the VirtualMachine has no template")
		return a.finish()
	}
	prepared := a.prepare(vm)
	if causes := domain.Check(prepared[0]); len(causes) > 0 {
		return nil, defaulting.Invalid(causes)
	}
	if request.Operation == defaulting.Update && request.Running {
		err = e.extend(ctx, a, vm, prepared[0])
	} else {
		err = e.fill(ctx, a, vm, prepared)
	}
	if err != nil {
		return nil, err
	}
	a.response.Environment = e.environmentOf(chosen)
	return a.finish()
}

// fill writes the defaults of a VirtualMachine that is not running.
func (e *Engine) fill(ctx context.Context, a *answering, vm *kubevirtv1.VirtualMachine, all []*domain.PreparedVM) error {
	prepared := all[0]
	bounds := limitsOf(vm, prepared, a)
	if bounds.defaults == "" {
		for _, set := range common(all) {
			a.set(set)
		}
		a.identify(prepared, e.identities)
	} else {
		a.skip("spec.template.spec", bounds.defaults)
	}
	shape := domain.NewShape(prepared, a.request.Cluster)
	found, err := e.agreed(ctx, a, all)
	if err != nil {
		return err
	}
	if found.rejection != "" {
		if causes := blame(found.rejection, prepared); len(causes) > 0 {
			return defaulting.Invalid(causes)
		}
		a.skip("spec.template.spec.domain.machine.type", defaulting.RejectedByLibvirt+found.rejection)
		a.skip("spec.template.spec.domain.devices", defaulting.RejectedByLibvirt+found.rejection)
		return nil
	}
	a.response.Devices = devices(found.layout)
	if bounds.machineType != "" {
		a.skip("spec.template.spec.domain.machine.type", bounds.machineType)
	} else {
		a.pin(vm, prepared, found.layout)
	}
	switch {
	case bounds.addresses != "":
		a.skipAddresses(bounds.addresses)
	case found.differs:
		a.skipAddresses("while KubeVirt is updated from " + a.request.Cluster.KubeVirt + " to " + a.request.Cluster.Target + ", the VM can be started by either, and they assign different addresses")
	case found.drifts:
		a.skipAddresses("a device is behind a bridge to conventional PCI, and the addresses would be others on the next start")
	default:
		a.place(prepared, shape, found.layout)
	}
	return nil
}

// cachedLayout is the cached result for a shape: a layout, or libvirt's rejection.
type cachedLayout struct {
	layout    *domain.Layout
	rejection string
	// drifts reports whether the layout changes once its addresses are written.
	drifts bool
	// differs reports whether the releases of an update have different layouts.
	differs bool
}

// layout returns the layout of a shape, and sets from to its origin.
func (e *Engine) layout(ctx context.Context, shape domain.Shape, from *defaulting.Cache) (*cachedLayout, error) {
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
		return found.(*cachedLayout), nil
	}
	*from = defaulting.Miss
	e.counters.Misses.Add(1)
	// Concurrent requests for the same shape share one call, and its result is cached even if
	// every caller has left.
	flight := e.flights.DoChan(string(text), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), layoutTimeout)
		defer cancel()
		found, err := e.request(ctx, shape)
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
		return result.Val.(*cachedLayout), nil
	case <-ctx.Done():
		return nil, defaulting.Late("libvirt did not answer in time")
	}
}

// request has libvirt lay out a shape, and lays it out again if the result may differ on the next
// start.
func (e *Engine) request(ctx context.Context, shape domain.Shape) (*cachedLayout, error) {
	layout, err := launcher.Layout(ctx, e.libvirt, shape)
	var rejected *launcher.RejectedError
	if errors.As(err, &rejected) {
		e.counters.Rejections.Add(1)
		return &cachedLayout{rejection: rejected.Message}, nil
	}
	if err != nil {
		return nil, err
	}
	found := &cachedLayout{layout: layout}
	if layout.Bridged() {
		again, err := launcher.Layout(ctx, e.libvirt, shape.Place(layout))
		switch {
		case errors.As(err, &rejected):
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
