package mover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/oci"
	"github.com/vmstencil/stencil/ovf/conversion"
	"github.com/vmstencil/stencil/template/extensions"
	"github.com/vmstencil/stencil/transfer"
)

func TestAFileThatExpandsTooMuchIsRejected(t *testing.T) {
	folders := mounts(t, map[string][]byte{filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile): bytes.Repeat([]byte("bomb"), 20<<20), transfer.DisksFolder + "/tools": toolsDisk(), transfer.ResultFolder + "/.keep": nil})
	for _, format := range []v1beta1.ExportFormat{v1beta1.ExportOVA, v1beta1.ExportOCI} {
		succeed(t, folders, exportTask("web."+strings.ToLower(string(format)), format))
		path := "web." + strings.ToLower(string(format))
		inspect := fromHTTP(transfer.Inspect, "")
		inspect.Source = &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: path}}
		pkg := read(t, folders.path(transfer.ResultFolder, path))
		task := toImport(inspect, succeed(t, mounts(t, map[string][]byte{transfer.SourceFolder + "/" + path: pkg}), inspect).Plan)
		task.Limits.Ratio = 20
		f := volumes(t, task)
		write(t, f.path(transfer.SourceFolder, path), pkg)
		fails(t, f, task, transfer.Failure{Reason: transfer.ReasonLimitExceeded, Message: "the file of the disk fedora.44 expands to more than 20 times its size"})
	}
}

func TestWithoutRangesTheStreamIsInspected(t *testing.T) {
	s := newSite(t, packageOf(t, v1beta1.ExportOVA))
	with := succeed(t, mounts(t, nil), fromHTTP(transfer.Inspect, s.URL)).Plan
	s.noRanges = true
	without := succeed(t, mounts(t, nil), fromHTTP(transfer.Inspect, s.URL)).Plan
	if with.Description != without.Description || !bytes.Equal(with.Template, without.Template) || len(without.Disks) != 2 {
		t.Errorf("got %+v\nwant %+v", without, with)
	}
}

func TestAFullDeviceIsNoSpace(t *testing.T) {
	pkg := packageOf(t, v1beta1.ExportOVA)
	s := newSite(t, pkg)
	inspect := fromHTTP(transfer.Inspect, s.URL)
	task := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
	task.Disks[0].Size = 1 << 45
	f := volumes(t, task)
	state := work(t, f, task)
	if state.Failure == nil || state.Failure.Reason != transfer.ReasonVolumeTooSmall || !strings.HasPrefix(state.Failure.Message, "the volume of the disk fedora.44 has ") || !strings.HasSuffix(state.Failure.Message, " bytes, and the disk has 35184372088832") {
		t.Errorf("%+v", state.Failure)
	}
}

const machine = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"db","labels":{"a":"${b}","app":"db"}},"spec":{"template":{"spec":{"hostname":"db","domain":{"chassis":{"asset":"7"},"firmware":{"uuid":"1"},"devices":{"disks":[{"name":"root","serial":"S"}],"interfaces":[{"name":"default","macAddress":"02:00:00:00:00:01"}]}},
"volumes":[{"name":"root","persistentVolumeClaim":{"claimName":"data"}},{"name":"init","cloudInitNoCloud":{"userData":"#cloud-config\nhostname: db\n"}}]}}}}`

func TestAVirtualMachineBecomesATemplate(t *testing.T) {
	resource, err := oci.DecodeResource(oci.VirtualMachine, []byte(machine))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := resource.Claims()
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	made, err := makeTemplate(resource, transfer.Conversion{Namespace: "imported", Name: "shop"}, claims, func(action conversion.Action, source, _ string, _ ...any) {
		notes = append(notes, string(action)+" "+source)
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"labels":{"a":"${DOLLAR}{b}","app":"${NAME}"},"name":"${NAME}"},"spec":{"dataVolumeTemplates":[{"metadata":{"name":"${NAME}-0"},` +
		`"spec":{"source":{"pvc":{"name":"data","namespace":"imported"}},"storage":{}}}],"template":{"spec":{"domain":{"devices":{"disks":[{"name":"root"}],"interfaces":[{"name":"default"}]}},"volumes":[{"dataVolume":{"name":"${NAME}-0"},"name":"root"},{"cloudInitNoCloud":{"userData":"#cloud-config\nhostname: db\n"},"name":"init"}]}}}}`
	wantNotes := []string{
		"changed VirtualMachine db", "dropped spec.template.spec.hostname", "dropped spec.template.spec.domain.firmware.uuid",
		"dropped spec.template.spec.domain.chassis.asset", "dropped spec.template.spec.domain.devices.disks[0].serial",
		"dropped spec.template.spec.domain.devices.interfaces[0].macAddress", "changed metadata.labels[app]",
		"warning spec.template.spec.volumes[1].cloudInitNoCloud.userData (hostname)",
	}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := string(made.template.Spec.VirtualMachine.Raw); got != want || made.volumes["data"] != "root" || made.template.Name != "shop" || len(made.template.Spec.Parameters) != 2 {
		t.Errorf("volumes %v, template %s", made.volumes, got)
	}
}

// TestFieldsThatAnExporterDropsAreRestored imports what KubeVirt's exporter makes of a template: its annotations, and the published fields only.
func TestFieldsThatAnExporterDropsAreRestored(t *testing.T) {
	annotation, err := extensions.Encode(extensions.Extensions{Parameters: map[string]map[string]any{"NAME": {"pattern": "[a-z]+"}, "GONE": {"type": "int"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ annotation, wantPattern, wantNote string }{
		"by its annotation":    {annotation, "[a-z]+", "kept template: spec.parameters[NAME].pattern, which the exporter does not have, from annotation template.kubevirt.io/extensions"},
		"but not by a damaged": {"hunter2", "", "warning template: fields that the published API lacks cannot be restored from annotation template.kubevirt.io/extensions, because it is no JSON of the expected form: write the fields, or remove the annotation"},
		"without one":          {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{
				"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": map[string]any{"name": "web"},
				"spec": map[string]any{"virtualMachine": map[string]any{"spec": map[string]any{}}, "parameters": []any{map[string]any{"name": "NAME", "value": "x"}}},
			}
			if tc.annotation != "" {
				object["metadata"] = map[string]any{"name": "web", "annotations": map[string]any{contract.AnnotationExtensions: tc.annotation}}
			}
			var notes []string
			made, err := makeTemplate(&oci.Resource{Kind: oci.VirtualMachineTemplate, Object: object}, transfer.Conversion{}, nil, func(action conversion.Action, source, format string, arguments ...any) {
				notes = append(notes, fmt.Sprintf("%s %s: %s", action, source, fmt.Sprintf(format, arguments...)))
			})
			if err != nil {
				t.Fatal(err)
			}
			if p := made.template.Spec.Parameters; len(p) != 1 || p[0].Pattern != tc.wantPattern || p[0].Value != "x" {
				t.Errorf("parameters %+v", p)
			}
			if got := strings.Join(notes, "\n"); got != tc.wantNote {
				t.Errorf("notes %s, want %s", got, tc.wantNote)
			}
		})
	}
}

func TestTasksThatCannotBeWorkedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		task    transfer.Task
		message string
	}{
		"no stage":                         {transfer.Task{}, `the task has the stage ""`},
		"no source":                        {transfer.Task{Stage: transfer.Inspect}, "the task has no source"},
		"no file of a disk":                {transfer.Task{Stage: transfer.Import, Disks: []transfer.Disk{{Name: "a", Size: 1}}}, "the task names no file for the disk a"},
		"no package":                       {transfer.Task{Stage: transfer.Export}, "the task has no package with the name of a file and a token"},
		"a package that leads elsewhere":   {transfer.Task{Stage: transfer.Export, Package: &transfer.Package{File: "../a", DownloadToken: "a"}}, "the task has no package with the name of a file and a token"},
		"a network that is none":           {transfer.Task{Stage: transfer.Inspect, AllowedNetworks: []string{"a"}, Source: &v1beta1.ImportSource{HTTP: &v1beta1.ImportSourceHTTP{URL: "http://a"}}}, `the allowed network "a": netip.ParsePrefix("a"): no '/'`},
		"a volume that is not mounted":     {transfer.Task{Stage: transfer.Inspect, Source: &v1beta1.ImportSource{PVC: &v1beta1.ImportSourcePVC{Path: "a"}}}, "the volume with the package is not mounted"},
		"an unknown compression":           {transfer.Task{Stage: transfer.Export, Package: &transfer.Package{File: "a", DownloadToken: "a", Compression: "Strong", Template: []byte("{}"), VM: []byte(vmJSON)}}, `there is no compression "Strong": want one of Fast, Best, None`},
		"an image that is not a reference": {transfer.Task{Stage: transfer.Inspect, Source: &v1beta1.ImportSource{Registry: &v1beta1.ImportSourceRegistry{Image: "web"}}}, "the image of the source: could not parse reference: web; want HOST/REPOSITORY:TAG or HOST/REPOSITORY@sha256:DIGITS"},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, mounts(t, map[string][]byte{transfer.ResultFolder + "/.keep": nil}), &tc.task, transfer.Failure{Reason: transfer.ReasonInvalidTask, Message: tc.message})
		})
	}
}

func TestTheLimitOfTime(t *testing.T) {
	s := newSite(t, packageOf(t, v1beta1.ExportOVA))
	s.cut, s.stall = 1<<20, true
	task := fromHTTP(transfer.Import, s.URL)
	task.Disks = []transfer.Disk{{Name: "root", File: "web-root.vmdk", Size: 24 << 20}}
	task.Limits.Seconds = 1
	if err := os.MkdirAll(volumes(t, task).Root, 0o755); err != nil {
		t.Fatal(err)
	}
	fails(t, volumes(t, task), task, transfer.Failure{Reason: transfer.ReasonTimedOut, Message: "the transfer takes longer than 1s"})
}

func TestTheStateIsJSON(t *testing.T) {
	m := New(Folders{}, exportTask("a", v1beta1.ExportOVA))
	text, err := m.report.encode()
	if want := `{"phase":"Running","disks":[{"name":"root","done":0,"total":0},{"name":"tools","done":0,"total":0}]}`; err != nil || string(text) != want || !json.Valid(text) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestChoicesThatAPackageDoesNotPermit has packages with a template or a VirtualMachine, which have sizes and devices of their own.
func TestChoicesThatAPackageDoesNotPermit(t *testing.T) {
	const decides = ", which decides this itself: create an import without the field, and change the template afterwards"
	none := ""
	size, preference := transfer.Conversion{Instancetype: "u1.medium"}, transfer.Conversion{Preference: &none}
	vm, err := oci.DecodeResource(oci.VirtualMachine, []byte(machine))
	if err != nil {
		t.Fatal(err)
	}
	for want, choices := range map[string]transfer.Conversion{
		"spec.instancetype: the package has a VirtualMachine" + decides: size, "spec.preference: the package has a VirtualMachine" + decides: preference,
	} {
		if _, err := makeTemplate(vm, choices, nil, nil); err == nil || failureOf(err).Message != want || failureOf(err).Reason != transfer.ReasonUnsupported {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for format, is := range map[v1beta1.ExportFormat]string{v1beta1.ExportOVA: "a template", v1beta1.ExportOCI: "a VirtualMachineTemplate"} {
		s := newSite(t, packageOf(t, format))
		for field, choices := range map[string]transfer.Conversion{"spec.instancetype": size, "spec.preference": preference} {
			task := fromHTTP(transfer.Inspect, s.URL+"/web.pkg")
			task.Conversion = choices
			fails(t, mounts(t, nil), task, transfer.Failure{Reason: transfer.ReasonUnsupported, Message: field + ": the package has " + is + decides})
		}
	}
}

// TestCompressionsOfPackages exports a disk of text in each compression: twice, because a mover that starts again has to write the same bytes.
func TestCompressionsOfPackages(t *testing.T) {
	words, text := strings.Fields("admission reconcile condition binding backing file template volume disk layer digest manifest envelope descriptor grain frame"), make([]byte, 24<<20)
	const begin, end = 1 << 20, 4 << 20
	for i, random := begin, uint32(1); i < end; random = random*1664525 + 1013904223 {
		i += copy(text[i:end], words[random>>28]+" ")
	}
	for _, format := range []v1beta1.ExportFormat{v1beta1.ExportOVA, v1beta1.ExportOCI} {
		sizes, digests := map[v1beta1.ExportCompression]int64{}, map[string]v1beta1.ExportCompression{}
		for _, compression := range []v1beta1.ExportCompression{v1beta1.ExportCompressionFast, v1beta1.ExportCompressionBest, v1beta1.ExportCompressionNone} {
			task := exportTask("web.pkg", format)
			task.Package.Compression = compression
			var states []transfer.State
			var pkg []byte
			for range 2 {
				folders := exportable(t, text)
				states = append(states, succeed(t, folders, task))
				pkg = read(t, folders.path(transfer.ResultFolder, "web.pkg"))
			}
			if states[0].Digest != states[1].Digest || digests[states[0].Digest] != "" {
				t.Errorf("%s, %s: the digests are %s and %s, and one is that of %q", format, compression, states[0].Digest, states[1].Digest, digests[states[0].Digest])
			}
			sizes[compression], digests[states[0].Digest] = states[0].Size, compression
			inspect := fromHTTP(transfer.Inspect, newSite(t, pkg).URL+"/web.pkg")
			into := toImport(inspect, succeed(t, mounts(t, nil), inspect).Plan)
			f := volumes(t, into)
			succeed(t, f, into)
			if got := read(t, f.path(transfer.DisksFolder, into.Disks[0].Name, transfer.DiskFile)); !bytes.Equal(got, text) {
				t.Errorf("%s, %s: another disk is imported", format, compression)
			}
		}
		if sizes[v1beta1.ExportCompressionBest] > sizes[v1beta1.ExportCompressionFast]*98/100 || sizes[v1beta1.ExportCompressionNone] < end-begin || sizes[v1beta1.ExportCompressionNone] > (end-begin)*101/100+1<<20 {
			t.Errorf("%s: sizes %v", format, sizes)
		}
		task := exportTask("web.pkg", format)
		task.Package.Compression = v1beta1.ExportCompressionFast
		if fast := succeed(t, exportable(t, rootDisk()), task); fast.Digest != digestOf(packageOf(t, format)) {
			t.Errorf("%s: the default is not Fast", format)
		}
	}
}

// exportable are the mounts of an export with a disk.
func exportable(t *testing.T, disk []byte) Folders {
	t.Helper()
	return mounts(t, map[string][]byte{filepath.Join(transfer.DisksFolder, "root", transfer.DiskFile): disk, transfer.DisksFolder + "/tools": toolsDisk(), transfer.ResultFolder + "/.keep": nil})
}
