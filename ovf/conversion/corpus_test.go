package conversion_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/ovf/conversion"
)

// corpus is the folder of descriptors in the styles of many exporters. Beside each NAME.ovf is NAME.yaml, which states by hand what the import
// must yield. No program writes these expectations.
const corpus = "../testdata/corpus"

// Least numbers of the corpus.
const (
	leastDescriptors = 40
	leastExporters   = 12
)

// expectation is the content of NAME.yaml.
type expectation struct {
	// Exporter is the product that writes descriptors of this style.
	Exporter string `json:"exporter"`
	// Why states what the descriptor has that others of the exporter have not.
	Why string `json:"why"`
	// Configuration, Instancetype and Delivery are options of the import.
	Configuration string              `json:"configuration,omitempty"`
	Instancetype  string              `json:"instancetype,omitempty"`
	Delivery      conversion.Delivery `json:"delivery,omitempty"`
	Error         string              `json:"error,omitempty"`
	Notes         []string            `json:"notes,omitempty"`
	Systems       []expectedSystem    `json:"systems,omitempty"`
}

// expectedSystem is what one virtual system becomes.
type expectedSystem struct {
	Template string `json:"template"`
	// Configuration is the deployment option that applies.
	Configuration string `json:"configuration,omitempty"`
	// CPU is SOCKETSxCORES, and Memory is in bytes; both are empty with an instance type.
	CPU    string `json:"cpu,omitempty"`
	Memory int64  `json:"memory,omitempty"`
	// Firmware is bios, efi or efi+secureboot.
	Firmware     string         `json:"firmware"`
	TPM          bool           `json:"tpm,omitempty"`
	Preference   string         `json:"preference,omitempty"`
	Architecture string         `json:"architecture,omitempty"`
	Disks        []expectedDisk `json:"disks,omitempty"`
	CDs          []expectedDisk `json:"cds,omitempty"`
	NICs         []expectedNIC  `json:"nics,omitempty"`
	// MACs is the number of MAC addresses that are dropped with a note.
	MACs int `json:"macs,omitempty"`
	// Properties is how the guest receives its properties: Environment or CloudInit.
	Properties conversion.Delivery `json:"properties,omitempty"`
	// Parameters are all but NAME and those of networks.
	Parameters []expectedParameter `json:"parameters,omitempty"`
	// Notes are parts of notes that must be there. Each warning must be stated.
	Notes []string `json:"notes,omitempty"`
}

// expectedDisk is a disk or a CD.
type expectedDisk struct {
	// File is the file of the package; empty for a blank disk.
	File string `json:"file,omitempty"`
	// Size is in bytes; 0 if it is not known.
	Size int64  `json:"size,omitempty"`
	Bus  string `json:"bus,omitempty"`
}

// expectedNIC is a network adapter.
type expectedNIC struct {
	Model string `json:"model"`
	// Network is pod, or the name of the parameter of the network.
	Network string `json:"network"`
}

// expectedParameter is a parameter of the template.
type expectedParameter struct {
	Name      string   `json:"name"`
	Default   string   `json:"default,omitempty"`
	Required  bool     `json:"required,omitempty"`
	Sensitive bool     `json:"sensitive,omitempty"`
	Generated bool     `json:"generated,omitempty"`
	Type      string   `json:"type,omitempty"`
	Enum      []string `json:"enum,omitempty"`
	Minimum   *int64   `json:"minimum,omitempty"`
	Maximum   *int64   `json:"maximum,omitempty"`
}

// TestTheCorpusIsImportedAsStated imports each descriptor of the corpus in its own and in other serializations, and compares the VirtualMachines
// with the expectations.
func TestTheCorpusIsImportedAsStated(t *testing.T) {
	names := corpusNames(t)
	exporters := map[string]bool{}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want := readExpectation(t, name)
			exporters[want.Exporter] = true
			raw, err := os.ReadFile(filepath.Join(corpus, name+".ovf"))
			if err != nil {
				t.Fatal(err)
			}
			options := conversion.Options{Namespace: "golden", Configuration: want.Configuration, Instancetype: want.Instancetype, Delivery: want.Delivery}
			plan, err := importRaw(raw, options)
			for title, variant := range variants(t, raw) {
				other, otherErr := importRaw(variant, options)
				if diff := cmp.Diff(comparison(t, plan, err), comparison(t, other, otherErr)); diff != "" {
					t.Errorf("%s is imported in another way (-plain +variant):\n%s", title, diff)
				}
			}
			if want.Error != "" {
				if err == nil || !strings.Contains(err.Error(), want.Error) {
					t.Errorf("error: want %q, got %v", want.Error, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareExpectation(t, want, plan)
			compareCounts(t, raw, plan)
		})
	}
	if len(exporters) < leastExporters {
		t.Errorf("the corpus has %d exporters; want at least %d", len(exporters), leastExporters)
	}
}

// corpusNames returns the names of the descriptors, and fails if a descriptor or an expectation is alone.
func corpusNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(corpus)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		found[extension] = append(found[extension], strings.TrimSuffix(entry.Name(), extension))
	}
	if diff := cmp.Diff(found[".ovf"], found[".yaml"]); diff != "" || len(found) != 2 {
		t.Fatalf("%s must have one expectation for each descriptor, and no other files (-descriptors +expectations):\n%s", corpus, diff)
	}
	if n := len(found[".ovf"]); n < leastDescriptors {
		t.Errorf("the corpus has %d descriptors; want at least %d", n, leastDescriptors)
	}
	return found[".ovf"]
}

func readExpectation(t *testing.T, name string) *expectation {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want expectation
	if err := yaml.UnmarshalStrict(raw, &want); err != nil {
		t.Fatalf("%s.yaml: %v", name, err)
	}
	if want.Exporter == "" || want.Why == "" {
		t.Fatalf("%s.yaml has no exporter or no reason", name)
	}
	return &want
}

func importRaw(raw []byte, options conversion.Options) (*conversion.Plan, error) {
	envelope, err := ovf.Decode(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	return conversion.Import(envelope, options)
}

var lineNumber = regexp.MustCompile(`,? \(?line [0-9]+\)?`)

// comparison returns the result of an import without line numbers, which other serializations change.
func comparison(t *testing.T, plan *conversion.Plan, err error) []string {
	t.Helper()
	raw, marshalErr := json.MarshalIndent(plan, "", " ")
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return strings.Split(lineNumber.ReplaceAllString(fmt.Sprintf("%s\nerror: %v", raw, err), ""), "\n")
}

// compareExpectation compares what the templates render with the expectation.
func compareExpectation(t *testing.T, want *expectation, plan *conversion.Plan) {
	t.Helper()
	compareNotes(t, "notes", want.Notes, plan.Notes)
	var got []expectedSystem
	for i := range plan.Systems {
		system := describeSystem(t, &plan.Systems[i])
		if i < len(want.Systems) {
			path := fmt.Sprintf("systems[%d]", i)
			compareNotes(t, path+".notes", want.Systems[i].Notes, plan.Systems[i].Notes)
			system.Notes = want.Systems[i].Notes
		}
		got = append(got, *system)
	}
	cmp.Equal(want.Systems, got, cmpopts.EquateEmpty(), cmp.Reporter(&reporter{t: t}))
}

// reporter reports each difference with its path.
type reporter struct {
	t    *testing.T
	path cmp.Path
}

func (r *reporter) PushStep(step cmp.PathStep) { r.path = append(r.path, step) }
func (r *reporter) PopStep()                   { r.path = r.path[:len(r.path)-1] }

func (r *reporter) Report(result cmp.Result) {
	if !result.Equal() {
		want, got := r.path.Last().Values()
		r.t.Errorf("systems%s: want %+v, got %+v", strings.TrimPrefix(r.path.GoString(), "{[]conversion_test.expectedSystem}"), want, got)
	}
}

// compareNotes fails for each text that is in no note, and for each warning that has none of the texts.
func compareNotes(t *testing.T, path string, want []string, got []conversion.Note) {
	t.Helper()
	for i, text := range want {
		if !slices.ContainsFunc(got, func(n conversion.Note) bool { return strings.Contains(n.String(), text) }) {
			t.Errorf("%s[%d]: no note has %q", path, i, text)
		}
	}
	for _, note := range got {
		if note.Action == conversion.ActionWarning && !slices.ContainsFunc(want, func(text string) bool { return strings.Contains(note.String(), text) }) {
			t.Errorf("%s: the warning is not expected: %s", path, note)
		}
	}
}

// describeSystem renders the template of a system, and reads the VirtualMachine and the plan.
func describeSystem(t *testing.T, plan *conversion.SystemPlan) *expectedSystem {
	t.Helper()
	var vm virtv1.VirtualMachine
	if err := json.Unmarshal(render(t, plan.Template, sampleValues(t, plan.Template)).JSON(), &vm); err != nil {
		t.Fatal(err)
	}
	spec := &vm.Spec.Template.Spec
	got := &expectedSystem{Template: plan.Template.Name, Configuration: plan.Configuration, TPM: spec.Domain.Devices.TPM != nil, Architecture: spec.Architecture}
	if cpu := spec.Domain.CPU; cpu != nil {
		got.CPU = fmt.Sprintf("%dx%d", cpu.Sockets, cpu.Cores)
	}
	if memory := spec.Domain.Memory; memory != nil {
		got.Memory = memory.Guest.Value()
	}
	if vm.Spec.Preference != nil {
		got.Preference = vm.Spec.Preference.Name
	}
	got.Firmware = firmwareOf(spec)
	describeDisks(t, got, plan, &vm)
	describeAdapters(t, got, plan, spec)
	for i := range plan.Template.Spec.Parameters {
		p := &plan.Template.Spec.Parameters[i]
		if p.Name == conversion.ParameterName || strings.HasPrefix(p.Description, "NetworkAttachmentDefinition") {
			continue
		}
		got.Parameters = append(got.Parameters, expectedParameter{
			Name: p.Name, Default: p.Value, Required: p.Required, Sensitive: p.Sensitive, Generated: p.Generate != "",
			Type: string(p.Type), Enum: p.Enum, Minimum: p.Minimum, Maximum: p.Maximum,
		})
	}
	return got
}

// firmwareOf returns the firmware of a VirtualMachine in the words of expectations.
func firmwareOf(spec *virtv1.VirtualMachineInstanceSpec) string {
	loader := spec.Domain.Firmware.Bootloader
	switch {
	case loader.EFI == nil:
		return "bios"
	case loader.EFI.SecureBoot != nil && !*loader.EFI.SecureBoot:
		return "efi"
	case spec.Domain.Features == nil || spec.Domain.Features.SMM == nil || !*spec.Domain.Features.SMM.Enabled:
		return "efi+secureboot without SMM"
	}
	return "efi+secureboot"
}

// describeDisks reads disks, CDs, and the way of the properties.
func describeDisks(t *testing.T, got *expectedSystem, plan *conversion.SystemPlan, vm *virtv1.VirtualMachine) {
	t.Helper()
	spec := &vm.Spec.Template.Spec
	for i := range spec.Domain.Devices.Disks {
		device := &spec.Domain.Devices.Disks[i]
		volume := slices.IndexFunc(spec.Volumes, func(v virtv1.Volume) bool { return v.Name == device.Name })
		if volume < 0 {
			t.Errorf("the disk %s has no volume", device.Name)
			continue
		}
		if secret := spec.Volumes[volume].Secret; secret != nil {
			got.Properties = conversion.DeliveryEnvironment
			continue
		}
		if spec.Volumes[volume].CloudInitNoCloud != nil {
			got.Properties = conversion.DeliveryCloudInit
			continue
		}
		disk := describeDisk(t, plan, vm, spec.Volumes[volume].DataVolume.Name)
		if device.CDRom != nil {
			disk.Bus = string(device.CDRom.Bus)
			got.CDs = append(got.CDs, disk)
			continue
		}
		if first := device.BootOrder != nil && *device.BootOrder == 1; first != (len(got.Disks) == 0) {
			t.Errorf("the boot order of the disk %s is wrong", device.Name)
		}
		disk.Bus = string(device.Disk.Bus)
		got.Disks = append(got.Disks, disk)
	}
}

// describeDisk reads the DataVolume of a disk.
func describeDisk(t *testing.T, plan *conversion.SystemPlan, vm *virtv1.VirtualMachine, name string) (disk expectedDisk) {
	t.Helper()
	for i := range vm.Spec.DataVolumeTemplates {
		dataVolume := &vm.Spec.DataVolumeTemplates[i]
		if dataVolume.Name != name {
			continue
		}
		size := dataVolume.Spec.Storage.Resources.Requests["storage"]
		disk.Size = size.Value()
		if source := dataVolume.Spec.Source.PVC; source != nil {
			at := slices.IndexFunc(plan.Disks, func(d conversion.Disk) bool { return d.Claim == source.Name })
			if at < 0 {
				t.Fatalf("no disk of the plan fills the claim %s", source.Name)
			}
			disk.File = plan.Disks[at].File
		}
		return disk
	}
	t.Fatalf("there is no DataVolume %s", name)
	return disk
}

// describeAdapters reads network adapters, and what became of their MAC addresses.
func describeAdapters(t *testing.T, got *expectedSystem, plan *conversion.SystemPlan, spec *virtv1.VirtualMachineInstanceSpec) {
	t.Helper()
	raw := string(plan.Template.Spec.VirtualMachine.Raw)
	for i := range spec.Domain.Devices.Interfaces {
		adapter := &spec.Domain.Devices.Interfaces[i]
		if adapter.MacAddress != "" {
			t.Errorf("the adapter %s has the MAC address %s", adapter.Name, adapter.MacAddress)
		}
		nic := expectedNIC{Model: adapter.Model}
		network := slices.IndexFunc(spec.Networks, func(n virtv1.Network) bool { return n.Name == adapter.Name })
		switch {
		case network < 0:
			t.Errorf("the adapter %s has no network", adapter.Name)
		case spec.Networks[network].Pod != nil && adapter.Masquerade != nil:
			nic.Network = "pod"
		case spec.Networks[network].Multus != nil && adapter.Bridge != nil:
			reference := regexp.MustCompile(`\{"multus":\{"networkName":"\$\{([A-Z0-9_]+)\}"\},"name":"` + adapter.Name + `"\}`).FindStringSubmatch(raw)
			if reference == nil {
				t.Errorf("the network of the adapter %s is no parameter", adapter.Name)
				break
			}
			nic.Network = reference[1]
			if !slices.ContainsFunc(plan.Template.Spec.Parameters, func(p v1beta1.Parameter) bool { return p.Name == nic.Network && p.Required }) {
				t.Errorf("there is no required parameter %s", nic.Network)
			}
		default:
			t.Errorf("the adapter %s has neither masquerade nor bridge", adapter.Name)
		}
		got.NICs = append(got.NICs, nic)
	}
	for _, note := range plan.Notes {
		if strings.Contains(note.Result, "its MAC address") {
			got.MACs++
		}
	}
}

// sampleValues returns a value for each parameter that needs one: the shortest that its pattern accepts.
func sampleValues(t *testing.T, object *v1beta1.VirtualMachineTemplate) map[string]string {
	t.Helper()
	given := values(object)
	for _, p := range object.Spec.Parameters {
		if given[p.Name] != "xx" {
			continue
		}
		if p.Type == v1beta1.ParameterTypeInt {
			given[p.Name] = "1"
			if p.Minimum != nil {
				given[p.Name] = strconv.FormatInt(*p.Minimum, 10)
			}
			continue
		}
		pattern := regexp.MustCompile(`^(?:` + p.Pattern + `)$`)
		for n := 2; n < 64 && !pattern.MatchString(given[p.Name]); n++ {
			given[p.Name] = strings.Repeat("x", n)
		}
	}
	return given
}
