package defaulter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/guestdefaults"
	"github.com/vmstencil/stencil/reconcilers/capture/conversion"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/test/defaulter"
	"github.com/vmstencil/stencil/webhooks/defaults"
)

const (
	// seedVariable replaces the seed of the random VMs.
	seedVariable = "STENCIL_SEED"
	seed         = 20260
	// captured is the number of random VMs.
	captured = 200
)

// cluster runs a version of KubeVirt.
type cluster string

func (cluster) Synced() bool { return true }
func (c cluster) Cluster() defaulting.Cluster {
	known := shapes.Cluster
	known.KubeVirt = string(c)
	return known
}

// ungoverned has no approvals.
type ungoverned struct{}

func (ungoverned) ApprovalsFor(string) []*approval.Approval { return nil }

// TestCapturesOfDefaultedVMsGetAFreshLayout has random VMs get their defaults and then another disk in front of the others, captures them, and processes
// the templates. The layouts must be those of VMs with the same devices from the start. Every second one is captured before an update of
// KubeVirt and processed after it.
func TestCapturesOfDefaultedVMsGetAFreshLayout(t *testing.T) {
	chosen := uint64(seed)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if chosen, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	sidecar := defaulter.Running(t)
	webhook := func(version string) *defaults.Handler {
		return defaults.New(defaults.Options{
			Filler:    guestdefaults.Filler{Defaulter: client.New(sidecar.Socket()), Cluster: cluster(version)},
			Approvals: ungoverned{}, FailClosed: true,
		})
	}
	older, newer := webhook("v1.8.2"), webhook("v1.9.0")
	random := rand.New(rand.NewPCG(chosen, 0))
	compared, denied, different := 0, 0, 0
	for number := range captured {
		vm := shapes.New(shapes.Random(random)...)
		before := newer
		if number%2 == 0 {
			before = older
		}
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			stored, ok := admitted(t, before, admissionv1.Create, encode(t, vm), nil)
			if !ok {
				denied++
				return
			}
			grow(vm)
			stored, ok = admitted(t, before, admissionv1.Update, encode(t, vm), stored)
			if !ok {
				denied++
				return
			}
			// Captures leave out what froze the ports of one VM.
			delete(vm.Spec.Template.ObjectMeta.Annotations, kubevirtv1.PciInterfaceSlotCountAnnotation)
			want, ok := admitted(t, newer, admissionv1.Create, encode(t, vm), nil)
			got, also := admitted(t, newer, admissionv1.Create, process(t, stored), nil)
			if !ok || !also {
				t.Fatalf("admitted: the VM %v, the captured one %v", ok, also)
			}
			compared++
			if !maps.Equal(layout(t, stored), layout(t, want)) {
				different++
			}
			if diff := cmp.Diff(layout(t, want), layout(t, got)); diff != "" {
				t.Errorf("layout of the captured VM (-fresh +captured):\n%s\nthe VM: %s\nas it was stored: %s", diff, encode(t, vm), stored)
			}
		})
	}
	t.Logf("%d compared, %d of them with another layout than a fresh one before the capture, %d denied; %s=%d repeats this run", compared, different, denied, seedVariable, chosen)
	if different < captured/4 {
		t.Errorf("only %d of %d layouts differ from a fresh one before the capture: the VMs are too similar to show anything", different, captured)
	}
}

// grow adds a disk before all others.
func grow(vm *kubevirtv1.VirtualMachine) {
	spec := &vm.Spec.Template.Spec
	disk := kubevirtv1.Disk{Name: "added", DiskDevice: kubevirtv1.DiskDevice{Disk: &kubevirtv1.DiskTarget{Bus: kubevirtv1.DiskBusVirtio}}}
	spec.Domain.Devices.Disks = append([]kubevirtv1.Disk{disk}, spec.Domain.Devices.Disks...)
	spec.Volumes = append([]kubevirtv1.Volume{{Name: "added", VolumeSource: kubevirtv1.VolumeSource{EmptyDisk: &kubevirtv1.EmptyDiskSource{}}}}, spec.Volumes...)
}

// admitted returns the VM that the webhook would have stored, and false if it denies it.
func admitted(t *testing.T, webhook *defaults.Handler, operation admissionv1.Operation, vm, old []byte) ([]byte, bool) {
	t.Helper()
	request := fixture.Review(t, operation, string(vm), string(old))
	request.Resource.Resource = "virtualmachines"
	response := webhook.Handle(t.Context(), request)
	if !response.Allowed {
		if response.Result.Code != 422 {
			t.Fatalf("the webhook answers %v", response.Result)
		}
		return nil, false
	}
	if len(response.Patch) == 0 {
		return vm, true
	}
	return fixture.Patched(t, vm, response.Patch), true
}

// process captures a VM as a template and returns the VM of the template.
func process(t *testing.T, vm []byte) []byte {
	t.Helper()
	result, err := conversion.Convert(fixture.VM(t, vm), conversion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := template.Compile(&v1beta1.VirtualMachineTemplate{Spec: result.Spec})
	if err != nil {
		t.Fatal(err)
	}
	return fixture.Render(t, compiled, map[string]string{"NAME": "web-2"}).JSON()
}

// layout returns the machine type and the addresses of the devices of a VM, by their names.
func layout(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	vm := &kubevirtv1.VirtualMachine{}
	if err := json.Unmarshal(raw, vm); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	domain := &vm.Spec.Template.Spec.Domain
	if domain.Machine != nil {
		found["machine type"] = domain.Machine.Type
	}
	for i := range domain.Devices.Disks {
		if disk := &domain.Devices.Disks[i]; disk.Disk != nil {
			found["disks/"+disk.Name] = disk.Disk.PciAddress
		}
	}
	for i := range domain.Devices.Interfaces {
		found["interfaces/"+domain.Devices.Interfaces[i].Name] = domain.Devices.Interfaces[i].PciAddress
	}
	return found
}

func encode(t *testing.T, vm *kubevirtv1.VirtualMachine) []byte {
	t.Helper()
	text, err := json.Marshal(vm)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
