package catalogue_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

var update = flag.Bool("update", false, "write the table of differences into docs/catalogue.md")

// hardware is what a guest sees, by the names of its parts.
type hardware map[string]string

// Names of parts.
const (
	disks         = "disks"
	network       = "network"
	random        = "random numbers"
	firmware      = "firmware"
	tpm           = "TPM"
	input         = "input"
	enlightenment = "enlightenments"
	ioThread      = "I/O thread of the disk"
	grace         = "seconds to shut down"
	size          = "size of the disk"
)

var (
	linux = hardware{
		disks: "rootdisk virtio, cloudinitdisk virtio", network: "virtio", random: "yes", firmware: "BIOS", tpm: "no", input: "no",
		enlightenment: "no", ioThread: "no", grace: "180", size: "30Gi",
	}
	secureLinux = linux.but(hardware{firmware: "EFI, secure boot"})
	// KubeVirt gives EFI to each VM for arm64.
	armLinux = linux.but(hardware{firmware: "EFI"})
	windows  = hardware{
		disks: "rootdisk sata", network: "e1000e", random: "no", firmware: "EFI, secure boot, persistent", tpm: "persistent", input: "usb tablet",
		enlightenment: "frequencies ipi reenlightenment relaxed reset runtime spinlocks synic synictimer tlbflush vapic vpindex",
		ioThread:      "no", grace: "3600", size: "64Gi",
	}
)

// but returns a copy in which some parts differ.
func (h hardware) but(parts hardware) hardware {
	changed := maps.Clone(h)
	maps.Copy(changed, parts)
	return changed
}

// Reasons for differences from common-templates.
const (
	installs = "Windows is installed from an ISO image: with CD-ROMs for setup and for drivers"
	threads  = "the preference gives the disk an I/O thread, which common-templates has for the workload highperformance only"
	bootsEFI = "the preference has EFI with secure boot, which setup needs from the start; images for common-templates were installed with BIOS"
)

// systems is what each template has beside the template for the same system in kubevirt/common-templates, workload server or desktop (Windows 11), of
// 2025. common is nil where common-templates has none. Each difference has a reason, by the name of the part.
var systems = map[string]struct {
	preference string
	common     hardware
	differs    map[string]difference
}{
	"fedora":                {"fedora", secureLinux, nil},
	"fedora-arm64":          {"fedora.arm64", nil, nil},
	"centos-stream9":        {"centos.stream9", linux, map[string]difference{ioThread: {"yes", threads}}},
	"centos-stream9-arm64":  {"centos.stream9", nil, nil},
	"centos-stream10":       {"centos.stream10", linux, map[string]difference{ioThread: {"yes", threads}}},
	"centos-stream10-arm64": {"centos.stream10", armLinux, map[string]difference{ioThread: {"yes", threads}}},
	"rhel8":                 {"rhel.8", linux, nil},
	"rhel9":                 {"rhel.9", secureLinux, map[string]difference{ioThread: {"yes", threads}}},
	"rhel9-arm64":           {"rhel.9.arm64", nil, nil},
	"rhel10":                {"rhel.10", secureLinux, map[string]difference{ioThread: {"yes", threads}}},
	"rhel10-arm64":          {"rhel.10.arm64", armLinux, map[string]difference{ioThread: {"yes", threads}}},
	"debian12":              {"debian", nil, nil},
	"debian12-arm64":        {"debian", nil, nil},
	"debian13":              {"debian", nil, nil},
	"debian13-arm64":        {"debian", nil, nil},
	"ubuntu2204":            {"ubuntu", linux, nil},
	"ubuntu2204-arm64":      {"ubuntu", nil, nil},
	"ubuntu2404":            {"ubuntu", linux, nil},
	"ubuntu2404-arm64":      {"ubuntu", nil, nil},
	"opensuse-leap":         {"opensuse.leap", linux, nil},
	"opensuse-leap-arm64":   {"opensuse.leap", nil, nil},
	"windows11":             {"windows.11", windows, map[string]difference{disks: {setup, installs}}},
	"windows2k19": {"windows.2k19", windows.but(hardware{firmware: "BIOS", tpm: "no", size: "60Gi"}), map[string]difference{
		disks: {setup, installs}, firmware: {"EFI, secure boot", bootsEFI},
	}},
	"windows2k22": {"windows.2k22", windows.but(hardware{size: "60Gi"}), map[string]difference{disks: {setup, installs}}},
	"windows2k25": {"windows.2k25", windows, map[string]difference{disks: {setup, installs}}},
}

// setup are the disks of a system that is installed.
const setup = "rootdisk sata, installation sata CD-ROM, virtio-drivers sata CD-ROM"

// difference is what a template has in place of what common-templates has.
type difference struct{ has, reason string }

// TestEveryTemplateIsAcceptedByKubeVirt creates a VM from each template with nothing but a reference, and compares what KubeVirt makes of it with what
// it makes of common-templates.
func TestEveryTemplateIsAcceptedByKubeVirt(t *testing.T) {
	listed := strings.Fields(must(t, ada, "", "get", "virtualmachinetemplates", "-n", golden, "-o", "jsonpath={.items[*].metadata.name}").Stdout)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(systems)), slices.Sorted(slices.Values(listed))); diff != "" {
		t.Fatalf("templates (-want +got):\n%s", diff)
	}
	for _, system := range listed {
		t.Run(system, func(t *testing.T) {
			name := "of-" + system
			must(t, ada, gen.Manifest(gen.VM(name, gen.FromTemplate(golden+"/"+system))), "create", "-n", free, "-f", "-")
			vm := expand(t, name)
			running := instance(t, vm)
			want := systems[system]
			if got := jsonpath(t, free, "virtualmachine/"+name, ".spec.preference.name"); got != want.preference {
				t.Errorf("preference %s, want %s", got, want.preference)
			}
			architecture := "amd64"
			if strings.HasSuffix(system, "-arm64") {
				architecture = "arm64"
			}
			if got := running.Spec.Architecture; got != architecture {
				t.Errorf("architecture %s, want %s", got, architecture)
			}
			if want.common == nil {
				return
			}
			has := hardwareOf(running)
			has[size] = vm.Spec.DataVolumeTemplates[0].Spec.Storage.Resources.Requests.Storage().String()
			expected := maps.Clone(want.common)
			for part, difference := range want.differs {
				if difference.has == want.common[part] {
					t.Errorf("%s has a reason for a difference in %s, and is the same", system, part)
				}
				expected[part] = difference.has
			}
			if diff := cmp.Diff(expected, has); diff != "" {
				t.Errorf("differs from common-templates without a reason (-want +got):\n%s", diff)
			}
		})
	}
}

// The table of differences in docs/catalogue.md is generated from the one of this test: make e2e PACKAGES=./e2e/catalogue RUN=TestTheDocument UPDATE=1
func TestTheDocumentListsEveryDifference(t *testing.T) {
	text := "| template | what | common-templates | catalogue | reason |\n|---|---|---|---|---|\n"
	for _, system := range slices.Sorted(maps.Keys(systems)) {
		for _, part := range slices.Sorted(maps.Keys(systems[system].differs)) {
			difference := systems[system].differs[part]
			text += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", system, part, systems[system].common[part], difference.has, difference.reason)
		}
	}
	chart, err := install.CatalogueFolder()
	if err != nil {
		t.Fatal(err)
	}
	testfile.Generated{
		Path: filepath.Join(chart, "..", "..", "docs", "catalogue.md"), Begin: "<!-- differences:begin -->\n", End: "<!-- differences:end -->",
		Update: *update, Command: "make e2e PACKAGES=./e2e/catalogue RUN=TestTheDocument UPDATE=1",
	}.Compare(t, text)
}

// expand returns a VM to which KubeVirt has applied instance type and preference.
func expand(t *testing.T, name string) *kubevirtv1.VirtualMachine {
	t.Helper()
	path := "/apis/subresources.kubevirt.io/v1/namespaces/" + free + "/virtualmachines/" + name + "/expand-spec"
	var vm kubevirtv1.VirtualMachine
	harness.Eventually(t, "VM "+name+" has its Secret and may start", func() error {
		vm = kubevirtv1.VirtualMachine{}
		if err := json.Unmarshal([]byte(must(t, ada, "", "get", "--raw", path).Stdout), &vm); err != nil {
			return err
		}
		if _, held := vm.Spec.Template.ObjectMeta.Annotations[template.AnnotationHold]; held {
			return errors.New("it is held")
		}
		return nil
	})
	return &vm
}

// instance returns the VirtualMachineInstance that a start of the VM would create, after KubeVirt's own webhooks. It is not stored.
func instance(t *testing.T, vm *kubevirtv1.VirtualMachine) *kubevirtv1.VirtualMachineInstance {
	t.Helper()
	vmi := kubevirtv1.VirtualMachineInstance{ObjectMeta: vm.Spec.Template.ObjectMeta, Spec: vm.Spec.Template.Spec}
	vmi.APIVersion, vmi.Kind, vmi.Name = kubevirtv1.GroupVersion.String(), "VirtualMachineInstance", vm.Name
	raw, err := json.Marshal(&vmi)
	if err != nil {
		t.Fatal(err)
	}
	var created kubevirtv1.VirtualMachineInstance
	if err := json.Unmarshal([]byte(must(t, nil, string(raw), "create", "--dry-run=server", "-n", free, "-f", "-", "-o", "json").Stdout), &created); err != nil {
		t.Fatal(err)
	}
	return &created
}

// hardwareOf reads the hardware of an instance.
func hardwareOf(vmi *kubevirtv1.VirtualMachineInstance) hardware {
	domain := vmi.Spec.Domain
	has := hardware{
		random: "no", firmware: "BIOS", tpm: "no", input: "no", enlightenment: "no", ioThread: "no",
		network: domain.Devices.Interfaces[0].Model,
	}
	var all []string
	for _, disk := range domain.Devices.Disks {
		switch {
		case disk.Disk != nil:
			all = append(all, fmt.Sprintf("%s %s", disk.Name, disk.Disk.Bus))
		case disk.CDRom != nil:
			all = append(all, fmt.Sprintf("%s %s CD-ROM", disk.Name, disk.CDRom.Bus))
		}
	}
	has[disks] = strings.Join(all, ", ")
	if thread := domain.Devices.Disks[0].DedicatedIOThread; thread != nil && *thread {
		has[ioThread] = "yes"
	}
	if domain.Devices.Rng != nil {
		has[random] = "yes"
	}
	if seconds := vmi.Spec.TerminationGracePeriodSeconds; seconds != nil {
		has[grace] = fmt.Sprint(*seconds)
	}
	if boot := domain.Firmware; boot != nil && boot.Bootloader != nil && boot.Bootloader.EFI != nil {
		efi := boot.Bootloader.EFI
		has[firmware] = "EFI"
		if efi.SecureBoot == nil || *efi.SecureBoot {
			has[firmware] += ", secure boot"
		}
		if efi.Persistent != nil && *efi.Persistent {
			has[firmware] += ", persistent"
		}
	}
	if chip := domain.Devices.TPM; chip != nil {
		has[tpm] = "yes"
		if chip.Persistent != nil && *chip.Persistent {
			has[tpm] = "persistent"
		}
	}
	for _, device := range domain.Devices.Inputs {
		has[input] = fmt.Sprintf("%s %s", device.Bus, device.Type)
	}
	// virt-controller adds KubeVirt's default device when it starts a VM.
	if attach := domain.Devices.AutoattachInputDevice; attach != nil && *attach && has[input] == "no" {
		has[input] = "usb tablet"
	}
	if features := domain.Features; features != nil && features.Hyperv != nil {
		raw, _ := json.Marshal(features.Hyperv)
		var set map[string]any
		_ = json.Unmarshal(raw, &set)
		has[enlightenment] = strings.Join(slices.Sorted(maps.Keys(set)), " ")
	}
	return has
}
