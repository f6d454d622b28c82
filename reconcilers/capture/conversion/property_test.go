package conversion_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	virtv1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/randfill"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/fixture"
	capturing "github.com/vmstencil/stencil/reconcilers/capture/conversion"
)

// pieces are the parts of texts of random VMs: all that has a meaning in the template's language.
var pieces = []string{"${A}", "${NAME}", "$${NAME}", "${{NAME}}", "$$${", "$", "{", "}", "a", "\n", "\"", "é", "${HOME:-/root}", "\\"}

// randomVM returns a VirtualMachine with values in all fields of KubeVirt's types.
func randomVM(seed int64) *virtv1.VirtualMachine {
	vm := &virtv1.VirtualMachine{}
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	text := func() string {
		s := ""
		for range 1 + random.IntN(4) {
			s += pieces[random.IntN(len(pieces))]
		}
		return s
	}
	filler := randfill.NewWithSeed(seed).NilChance(0.2).NumElements(1, 2).MaxDepth(14).Funcs(
		func(s *string, _ randfill.Continue) { *s = text() },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", c.Intn(5000)))
		},
		func(m *metav1.Time, _ randfill.Continue) { *m = metav1.Unix(int64(random.IntN(1e9)), 0) },
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:a":{}}`) },
	)
	filler.Fill(&vm.Spec)
	if vm.Spec.Template == nil {
		vm.Spec.Template = &virtv1.VirtualMachineInstanceTemplateSpec{}
	}
	vm.Name, vm.Namespace = fmt.Sprintf("vm-%d", seed), "shop"
	vm.Labels, vm.Annotations = map[string]string{"a": "b"}, map[string]string{"script": text(), text(): "x"}
	return vm
}

// changed repeats the changes of a capture with KubeVirt's types.
func changed(vm *virtv1.VirtualMachine, name string, copied map[string]capturing.Disk) {
	vm.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: vm.Labels, Annotations: vm.Annotations}
	vm.Status = virtv1.VirtualMachineStatus{}
	spec := &vm.Spec
	if spec.Instancetype != nil {
		spec.Instancetype.RevisionName = ""
	}
	if spec.Preference != nil {
		spec.Preference.RevisionName = ""
	}
	spec.DataVolumeTemplates = nil
	spec.Template.ObjectMeta = metav1.ObjectMeta{Labels: spec.Template.ObjectMeta.Labels, Annotations: spec.Template.ObjectMeta.Annotations}
	inside := &spec.Template.Spec
	inside.Hostname = ""
	if f := inside.Domain.Firmware; f != nil {
		f.UUID, f.Serial = "", ""
	}
	if c := inside.Domain.Chassis; c != nil {
		c.Serial, c.Asset = "", ""
	}
	for i := range inside.Domain.Devices.Disks {
		inside.Domain.Devices.Disks[i].Serial = ""
	}
	for i := range inside.Domain.Devices.Interfaces {
		inside.Domain.Devices.Interfaces[i].MacAddress = ""
	}
	for i := range inside.Volumes {
		volume := &inside.Volumes[i]
		if _, found := copied[volume.Name]; found {
			hotpluggable := volume.DataVolume != nil && volume.DataVolume.Hotpluggable ||
				volume.DataVolume == nil && volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.Hotpluggable
			volume.PersistentVolumeClaim = nil
			volume.DataVolume = &virtv1.DataVolumeSource{Name: volume.Name + "-" + name, Hotpluggable: hotpluggable}
		}
	}
}

// TestEveryMachineRendersBack checks that VMs with values in all fields, and with texts that look like the template's language, render to
// themselves except for the changes of a capture.
func TestEveryMachineRendersBack(t *testing.T) {
	renewed := 0
	for seed := range int64(60) {
		vm := randomVM(seed)
		var disks []capturing.Disk
		copied := map[string]capturing.Disk{}
		kept := vm.Spec.Template.Spec.Volumes[:0]
		names := map[string]bool{}
		for i, volume := range vm.Spec.Template.Spec.Volumes {
			// A memory dump is removed: see TestAMemoryDumpIsLeftOut.
			volume.MemoryDump = nil
			volume.Name = fmt.Sprintf("v%d", i)
			names[volume.Name] = true
			if i%2 == 0 && (volume.DataVolume != nil || volume.PersistentVolumeClaim != nil) {
				copied[volume.Name] = capturing.Disk{Volume: volume.Name, DataVolume: "copy-" + volume.Name}
				disks = append(disks, copied[volume.Name])
				renewed++
			}
			kept = append(kept, volume)
		}
		vm.Spec.Template.Spec.Volumes = kept
		encoded, err := json.Marshal(vm)
		if err != nil {
			t.Fatal(err)
		}
		object := fixture.VM(t, encoded)
		// Only NAME is a parameter.
		result, err := capturing.Convert(object, capturing.Options{
			Namespace: "golden", Disks: disks, Spec: v1beta1.VirtualMachineTemplateRequestSpec{Parameterize: []v1beta1.CaptureParameter{v1beta1.CaptureName}},
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		back, err := json.Marshal(render(t, result, map[string]string{"NAME": "web-9"}))
		if err != nil {
			t.Fatal(err)
		}
		var want, got virtv1.VirtualMachine
		for text, into := range map[string]*virtv1.VirtualMachine{string(encoded): &want, string(back): &got} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		changed(&want, "web-9", copied)
		want.TypeMeta, got.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		if len(got.Spec.DataVolumeTemplates) != len(disks) {
			t.Errorf("seed %d: %d dataVolumeTemplates for %d disks", seed, len(got.Spec.DataVolumeTemplates), len(disks))
		}
		got.Spec.DataVolumeTemplates = nil
		if f := want.Spec.Template.Spec.Domain.Firmware; f != nil && equality.Semantic.DeepEqual(*f, virtv1.Firmware{}) {
			want.Spec.Template.Spec.Domain.Firmware = nil
		}
		if c := want.Spec.Template.Spec.Domain.Chassis; c != nil && equality.Semantic.DeepEqual(*c, virtv1.Chassis{}) {
			want.Spec.Template.Spec.Domain.Chassis = nil
		}
		if !equality.Semantic.DeepEqual(want, got) {
			t.Errorf("seed %d (-want +got):\n%s", seed, cmp.Diff(want, got))
		}
	}
	if renewed < 10 {
		t.Errorf("only %d disks were copied: the machines are too poor to show anything", renewed)
	}
}
