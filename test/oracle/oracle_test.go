package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/util"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/engine"
	"github.com/vmstencil/stencil/defaulting/identity"
	"github.com/vmstencil/stencil/defaulting/launcher"
)

const (
	// randomMachines is how many are compared beside the shapes.
	randomMachines = 500
	// seedVariable replaces the seed of the random VMs.
	seedVariable = "STENCIL_SEED"
	seed         = 20260
)

func TestShapesAreLaidOutAsKubeVirtDoes(t *testing.T) {
	o := newOracle(t)
	for _, name := range slices.Sorted(maps.Keys(shapes.All)) {
		t.Run(name, func(t *testing.T) { o.compare(t, shapes.New(shapes.All[name]...), sizes{}) })
	}
	o.report(t)
}

func TestRandomMachinesAreLaidOutAsKubeVirtDoes(t *testing.T) {
	compareRandom(t, func(*rand.Rand, *virtv1.VirtualMachine) sizes { return sizes{} })
}

// A preference comes before KubeVirt's own defaults, and after the fields of the VirtualMachine.
func TestRandomMachinesWithInstanceTypesAndPreferences(t *testing.T) {
	compareRandom(t, randomSizes)
}

func compareRandom(t *testing.T, size func(*rand.Rand, *virtv1.VirtualMachine) sizes) {
	t.Helper()
	chosen := uint64(seed)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if chosen, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%s=%d repeats this run\n", seedVariable, chosen)
	o := newOracle(t)
	random := rand.New(rand.NewPCG(chosen, 0))
	for number := range randomMachines {
		machine := shapes.New(shapes.Random(random)...)
		sizes := size(random, machine)
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			o.compare(t, machine, sizes)
			if t.Failed() {
				t.Logf("the machine: %s\nits instance type: %s\nits preference: %s", encode(t, machine), encode(t, sizes.instancetype), encode(t, sizes.preference))
			}
		})
	}
	o.report(t)
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
	kubeVirt kubeVirt
	definer  launcher.Definer
	engine   *engine.Engine
	counts   struct{ machines, devices, refused, unstartable, written, left int }
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	for resource, kind := range shapes.Cluster.HostDevices {
		if kind == defaulting.HostDeviceUSB {
			// KubeVirt reads this variable to detect that the VM needs a USB controller.
			t.Setenv(util.ResourceNameToEnvVar(virtv1.USBResourcePrefix, resource), "1:1")
		}
	}
	libvirt := startLibvirt(t)
	return &oracle{
		kubeVirt: newKubeVirt(), definer: libvirt,
		engine: engine.New(engine.Options{Libvirt: libvirt, Identities: identity.Random{}, Version: "test"}),
	}
}

func (o *oracle) report(t *testing.T) {
	t.Helper()
	fmt.Printf("%s: %d machines with %d PCI devices compared, %d refused by libvirt in both forms, %d that KubeVirt never starts; %d addresses written, %d machines without any\n",
		t.Name(), o.counts.machines, o.counts.devices, o.counts.refused, o.counts.unstartable, o.counts.written, o.counts.left)
}

func (o *oracle) compare(t *testing.T, machine *virtv1.VirtualMachine, sizes sizes) {
	t.Helper()
	ctx := context.Background()
	o.counts.machines++
	want, err := o.kubeVirt.theirs(ctx, o.definer, machine, sizes)
	got, ourErr := mine(ctx, o.definer, machine, sizes, shapes.Cluster)
	var refused, ourRefused *launcher.RejectedError
	switch {
	case errors.As(err, &refused) && errors.As(ourErr, &ourRefused):
		o.counts.refused++
		if refused.Message != ourRefused.Message {
			t.Errorf("libvirt refuses KubeVirt's domain: %s; and the defaulter's: %s", refused.Message, ourRefused.Message)
		}
		return
	case err != nil && neverStarts(err):
		o.counts.unstartable++
		return
	case err != nil || ourErr != nil:
		t.Fatalf("KubeVirt: %v; the defaulter: %v", err, ourErr)
	}
	o.counts.devices += len(want)
	for _, difference := range want.differences(got) {
		t.Error(difference)
	}
	o.checkWritten(ctx, t, machine, sizes, want)
}

// neverStarts reports whether KubeVirt cannot start a VM for a reason that the defaulter ignores, because it does not affect addresses: firmware, or
// what a device is inside. Such a VM has no layout to compare with.
func neverStarts(err error) bool {
	return slices.ContainsFunc([]string{
		"watchdog is not supported on architecture ARM64",
		"Secure boot is supported with q35 machine types only",
		"the QEMU binary does not support the ISA panic device",
		"ACPI requires UEFI on this architecture",
	}, func(reason string) bool { return strings.Contains(err.Error(), reason) })
}

// checkWritten writes the defaults, and has KubeVirt start the VM again.
func (o *oracle) checkWritten(ctx context.Context, t *testing.T, machine *virtv1.VirtualMachine, sizes sizes, before devices) {
	t.Helper()
	answer, err := o.engine.Answer(ctx, &defaulting.Request{
		VM: encode(t, machine), Cluster: shapes.Cluster, Instancetype: sizes.instancetype, Preference: sizes.preference,
	})
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
