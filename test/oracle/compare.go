package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	virtv1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"kubevirt.io/kubevirt/pkg/util"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/identity"
	"github.com/vmstencil/stencil/defaulting/launcher"
)

// Release is a release of KubeVirt, whose module the tests are compiled with.
type Release struct {
	// Version is the version of the module.
	Version string
	// SupportsPCIeHotplug is KubeVirt's function of that name, whose arguments are not the same in all releases.
	SupportsPCIeHotplug func(*virtv1.VirtualMachineInstanceSpec) bool
	// Prefer may be nil. It adds preferences that only this release has.
	Prefer func(*rand.Rand, *instancetypev1beta1.VirtualMachinePreferenceSpec)
}

// Environment variables that change what CompareRandom compares.
const (
	seedVariable     = "STENCIL_SEED"
	seedsVariable    = "STENCIL_SEEDS"
	machinesVariable = "STENCIL_MACHINES"
)

// Their values if they are not set.
const (
	seed     = 20260
	seeds    = 1
	machines = 1000
)

// CompareShapes compares the particular VMs of package shapes.
func (r Release) CompareShapes(t *testing.T) {
	o := r.newOracle(t)
	for _, name := range slices.Sorted(maps.Keys(shapes.All)) {
		t.Run(name, func(t *testing.T) { o.compare(t, shapes.New(shapes.All[name]...), sizes{}) })
	}
	o.report(t)
}

// CompareRandom compares random VMs. Every second one has a preference, which comes before KubeVirt's own defaults and after the fields of the
// VirtualMachine, and often an instance type.
func (r Release) CompareRandom(t *testing.T) {
	first, count := number(t, seedVariable, seed), number(t, machinesVariable, machines)
	o := r.newOracle(t)
	for chosen := first; chosen < first+number(t, seedsVariable, seeds); chosen++ {
		random := rand.New(rand.NewPCG(chosen, 0))
		for index := range count {
			machine, size := shapes.New(shapes.Random(random)...), sizes{}
			if index%2 == 1 {
				size = r.randomSizes(random, machine)
			}
			t.Run(fmt.Sprintf("%d/%d", chosen, index), func(t *testing.T) {
				o.compare(t, machine, size)
				if t.Failed() {
					t.Logf("the VM: %s\nits instance type: %s\nits preference: %s", encode(t, machine), encode(t, size.instancetype), encode(t, size.preference))
				}
			})
		}
	}
	fmt.Printf("%s=%d %s=%d %s=%d repeats this run\n", seedVariable, first, seedsVariable, number(t, seedsVariable, seeds), machinesVariable, count)
	o.report(t)
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return value
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// oracle compares, and counts what it compared.
type oracle struct {
	release  Release
	kubeVirt kubeVirt
	definer  launcher.Definer
	engine   *engine.Engine
	began    time.Time
	counts   struct{ machines, devices, denied, rejected, written, left int }
}

func (r Release) newOracle(t *testing.T) *oracle {
	t.Helper()
	for resource, kind := range shapes.Cluster.HostDevices {
		if kind == defaulting.HostDeviceUSB {
			// KubeVirt reads this variable to detect that the VM needs a USB controller.
			t.Setenv(util.ResourceNameToEnvVar(virtv1.USBResourcePrefix, resource), "1:1")
		}
	}
	libvirt := startLibvirt(t)
	return &oracle{
		release: r, kubeVirt: newKubeVirt(r), definer: libvirt, began: time.Now(),
		engine: engine.New(engine.Options{Libvirt: libvirt, Identities: identity.Random{}, Version: "test"}),
	}
}

func (o *oracle) report(t *testing.T) {
	t.Helper()
	fmt.Printf("%s with KubeVirt %s: %d VMs with %d PCI devices compared in %s, %d rejected by libvirt in both forms, %d denied by KubeVirt's converter and left alone; %d addresses written, %d VMs without any\n",
		t.Name(), o.release.Version, o.counts.machines, o.counts.devices, time.Since(o.began).Round(time.Second), o.counts.rejected, o.counts.denied, o.counts.written, o.counts.left)
}

func (o *oracle) compare(t *testing.T, machine *virtv1.VirtualMachine, sizes sizes) {
	t.Helper()
	ctx := context.Background()
	o.counts.machines++
	want, err := o.kubeVirt.theirs(ctx, o.definer, machine, sizes)
	got, ourErr := o.release.mine(ctx, o.definer, machine, sizes, shapes.Cluster)
	var rejected, ourRejected *launcher.RejectedError
	switch {
	case errors.As(err, &rejected):
		o.counts.rejected++
		if !errors.As(ourErr, &ourRejected) || rejected.Message != ourRejected.Message {
			t.Errorf("libvirt rejects KubeVirt's domain: %s; the defaulter: %v", rejected.Message, ourErr)
		}
		o.checkLeftAlone(ctx, t, machine, sizes, err)
		return
	case err != nil:
		// KubeVirt does not get as far as libvirt.
		o.counts.denied++
		o.checkLeftAlone(ctx, t, machine, sizes, err)
		return
	case ourErr != nil:
		t.Fatalf("KubeVirt starts the VM; the defaulter: %v", ourErr)
	}
	o.counts.devices += len(want)
	for _, difference := range want.differences(got) {
		t.Error(difference)
	}
	o.checkWritten(ctx, t, machine, sizes, want)
}

// answer returns the response of the defaulter.
func (o *oracle) answer(ctx context.Context, t *testing.T, machine *virtv1.VirtualMachine, sizes sizes) (*defaulting.Response, error) {
	t.Helper()
	cluster := shapes.Cluster
	cluster.KubeVirt = o.release.Version
	return o.engine.Answer(ctx, &defaulting.Request{
		VM: encode(t, machine), Cluster: cluster, Instancetype: sizes.instancetype, Preference: sizes.preference,
	})
}

// checkLeftAlone checks that the defaulter denies a VM that KubeVirt cannot start, or writes no address into it.
func (o *oracle) checkLeftAlone(ctx context.Context, t *testing.T, machine *virtv1.VirtualMachine, sizes sizes, why error) {
	t.Helper()
	answer, err := o.answer(ctx, t, machine, sizes)
	var problem *defaulting.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity {
		return
	}
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	for _, set := range answer.Set {
		if strings.HasSuffix(set.Path, ".pciAddress") {
			t.Errorf("%s is written for %s of a VM that KubeVirt cannot start: %v", set.Value, set.Path, why)
		}
	}
}

// checkWritten writes the defaults, and has KubeVirt start the VM again.
func (o *oracle) checkWritten(ctx context.Context, t *testing.T, machine *virtv1.VirtualMachine, sizes sizes, before devices) {
	t.Helper()
	answer, err := o.answer(ctx, t, machine, sizes)
	if err != nil {
		t.Fatalf("no defaults: %v", err)
	}
	where := before.fields()
	written := 0
	for _, set := range answer.Set {
		field, isAddress := strings.CutSuffix(set.Path, ".pciAddress")
		if !isAddress {
			continue
		}
		written++
		field = strings.TrimSuffix(strings.TrimPrefix(field, "spec.template.spec.domain.devices."), ".disk")
		if where[field] != set.Value {
			t.Errorf("%s is written for %s, which KubeVirt puts at %s", set.Value, field, where[field])
		}
	}
	o.counts.written += written
	if written == 0 {
		o.counts.left++
		return
	}
	stored := &virtv1.VirtualMachine{}
	if err := json.Unmarshal(answer.VM, stored); err != nil {
		t.Fatal(err)
	}
	after, err := o.kubeVirt.theirs(ctx, o.definer, stored, sizes)
	if err != nil {
		t.Fatalf("KubeVirt does not start the machine with its defaults: %v", err)
	}
	for field, address := range after.fields() {
		if where[field] != address {
			t.Errorf("with the defaults written, KubeVirt moves %s from %s to %s", field, where[field], address)
		}
	}
}
