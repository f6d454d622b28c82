package conversion

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/ovf"
	"github.com/vmstencil/stencil/template/plain"
)

// Parameters that imports add.
const (
	ParameterName       = "NAME"
	ParameterAcceptEULA = "ACCEPT_EULA"
)

// AnnotationAcceptedEULA is the annotation of VirtualMachines that records that the license agreement was accepted.
const AnnotationAcceptedEULA = "ovf.template.kubevirt.io/accepted-eula"

// maxLicense is the length of license agreements, in bytes, from which they are shortened in the description of a parameter.
const maxLicense = 16 << 10

// system is the state of the conversion of one virtual system.
type system struct {
	envelope      *ovf.Envelope
	source        *ovf.System
	options       *Options
	configuration string
	items         []ovf.Item
	os            guest
	plan          SystemPlan
	parameters    []v1beta1.Parameter
	// byProperty are the names of the parameters of properties.
	byProperty map[string]string

	annotations                 map[string]any
	disks, volumes, dataVolumes []any
	interfaces, networks        []any
	objects                     []any
	volumeNames                 []string
	secretize                   bool
	// repeats is the sum of repetitions in the patterns of properties.
	repeats int64
}

// Warnings returns the warnings of an envelope as notes.
func Warnings(e *ovf.Envelope) (notes []Note) {
	for _, w := range e.Warnings {
		source := w.Path
		if w.Line > 0 {
			source += fmt.Sprintf(" (line %d)", w.Line)
		}
		action := ActionWarning
		if w.Dropped {
			action = ActionDropped
		}
		notes = append(notes, Note{action, source, w.Message})
	}
	return notes
}

// Import converts an envelope. It fails if an option does not fit the envelope, and if a system has no memory, or disks that are
// differences to others.
func Import(e *ovf.Envelope, options Options) (*Plan, error) {
	if err := options.check(e); err != nil {
		return nil, err
	}
	plan := &Plan{Notes: Warnings(e)}
	if options.Template != nil {
		restored, err := restore(e, &options)
		if err != nil {
			return nil, err
		}
		plan.Systems = []SystemPlan{*restored}
		return plan, nil
	}
	var names []string
	for i := range e.Systems {
		s := &system{envelope: e, source: &e.Systems[i], options: &options, byProperty: map[string]string{}, annotations: map[string]any{}}
		names = append(names, unique(s.name(), "-", names))
		if err := s.convert(names[i]); err != nil {
			return nil, fmt.Errorf("converting the virtual system %s: %w", s.source.ID, err)
		}
		plan.Systems = append(plan.Systems, s.plan)
	}
	plan.Notes = append(plan.Notes, unused(e, plan)...)
	return plan, nil
}

// name returns the name of the template.
func (s *system) name() string {
	own := label(s.source.Title(), "vm")
	switch {
	case s.options.Name == "":
		return own
	case len(s.envelope.Systems) == 1:
		return s.options.Name
	}
	return s.options.Name + "-" + own
}

func (s *system) note(action Action, source, result string, arguments ...any) {
	s.plan.Notes = append(s.plan.Notes, Note{action, source, fmt.Sprintf(result, arguments...)})
}

func (s *system) convert(name string) error {
	s.configuration = s.options.Configuration
	if s.configuration == "" {
		s.configuration = s.envelope.DefaultConfiguration()
	}
	s.items = s.source.Hardware.Select(s.configuration)
	s.os = guestOf(s.source.OperatingSystem)
	s.plan = SystemPlan{System: s.source.ID, Configuration: s.configuration, Disks: []Disk{}, Notes: []Note{}}
	s.parameters = []v1beta1.Parameter{{
		Name: ParameterName, Description: "Name of the VirtualMachine", Generate: v1beta1.GeneratorExpression, From: name[:min(len(name), 24)] + "-[a-z0-9]{5}", Required: true,
		Pattern: "[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?",
	}}
	domain, err := s.domain()
	if err != nil {
		return err
	}
	s.properties()
	if err := s.storage(name); err != nil {
		return err
	}
	s.adapters()
	s.others()
	s.license()
	s.deliver()
	devices := map[string]any{}
	if len(s.disks) > 0 {
		devices["disks"] = s.disks
	}
	if s.source.Hardware.TPM {
		devices["tpm"] = map[string]any{}
		s.note(ActionChanged, "TPM", "a new TPM for each VirtualMachine, which loses its state when the VirtualMachine stops; what the source's TPM sealed cannot be opened")
	}
	if len(s.interfaces) > 0 {
		devices["interfaces"] = s.interfaces
	} else {
		devices["autoattachPodInterface"] = false
	}
	domain["devices"] = devices
	return s.template(name, domain)
}

// template puts the template together.
func (s *system) template(name string, domain map[string]any) error {
	guest := map[string]any{"domain": domain}
	if len(s.volumes) > 0 {
		guest["volumes"] = s.volumes
	}
	if len(s.networks) > 0 {
		guest["networks"] = s.networks
	}
	if s.os.architecture != "" {
		guest["architecture"] = s.os.architecture
	}
	spec := map[string]any{"runStrategy": "Halted", "template": map[string]any{"spec": guest}}
	if len(s.dataVolumes) > 0 {
		spec["dataVolumeTemplates"] = s.dataVolumes
	}
	if s.options.Instancetype != "" {
		spec["instancetype"] = map[string]any{"name": s.options.Instancetype}
		s.note(ActionChanged, "sizes", "instance type %s, as requested; VirtualMachines cannot be created in a cluster without it", s.options.Instancetype)
	}
	if preference := s.preference(); preference != "" {
		spec["preference"] = map[string]any{"name": preference}
	}
	metadata := map[string]any{"name": "${NAME}"}
	if len(s.annotations) > 0 {
		metadata["annotations"] = s.annotations
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec})
	if err != nil {
		return fmt.Errorf("encoding the VirtualMachine: %w", err)
	}
	t := &v1beta1.VirtualMachineTemplate{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "VirtualMachineTemplate"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.options.Namespace, Annotations: s.describe()},
		Spec:       v1beta1.VirtualMachineTemplateSpec{VirtualMachine: &runtime.RawExtension{Raw: raw}, Secretize: s.secretize},
	}
	if len(s.plan.Disks) > 0 {
		t.Labels = map[string]string{contract.LabelDiskAccess: contract.DiskAccessLend}
		s.note(ActionChanged, "disks", "users who may use the template get copies of its disks (label %s=%s)", contract.LabelDiskAccess, contract.DiskAccessLend)
	}
	dollar := strings.Contains(string(raw), "${"+plain.Dollar+"}")
	for _, object := range s.objects {
		raw, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("encoding an object: %w", err)
		}
		dollar = dollar || strings.Contains(string(raw), "${"+plain.Dollar+"}")
		t.Spec.Objects = append(t.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	if dollar {
		s.parameters = append(s.parameters, plain.Parameter(plain.Dollar))
	}
	t.Spec.Parameters = s.parameters
	if err := checkLimits(&t.Spec); err != nil {
		return err
	}
	s.plan.Template = t
	return nil
}

// Limits of the template engine and of the API.
const (
	maxParameters = 256
	maxSpecBytes  = 512 << 10
)

func checkLimits(spec *v1beta1.VirtualMachineTemplateSpec) error {
	if n := len(spec.Parameters); n > maxParameters {
		return fmt.Errorf("it needs %d parameters, and a template has at most %d; choose another delivery of its properties", n, maxParameters)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encoding the template: %w", err)
	}
	if len(raw) > maxSpecBytes {
		return fmt.Errorf("its template has %d KiB, and at most %d are accepted", len(raw)>>10, maxSpecBytes>>10)
	}
	return nil
}

// escape writes text of the descriptor so that it renders to itself.
func escape(text string) string { return plain.Text(text, plain.Dollar) }

// describe returns the annotations of the template.
func (s *system) describe() map[string]string {
	var lines []string
	for i := range s.source.Products {
		p := &s.source.Products[i]
		if line := strings.TrimSpace(strings.Join([]string{p.Vendor, p.Product, p.Version}, " ")); line != "" {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	if s.source.Annotation != "" {
		lines = append(lines, s.source.Annotation)
	}
	annotations := map[string]string{}
	if len(lines) > 0 {
		annotations["description"] = strings.Join(lines, "\n")
	}
	if s.source.Name != "" {
		annotations["openshift.io/display-name"] = s.source.Name
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// declare adds a parameter and returns its name. If the name is taken, a number is appended.
func (s *system) declare(p v1beta1.Parameter) string {
	taken := []string{plain.Dollar}
	for _, other := range s.parameters {
		taken = append(taken, other.Name)
	}
	p.Name = unique(p.Name, "_", append(taken, ParameterAcceptEULA))
	s.parameters = append(s.parameters, p)
	return p.Name
}

// license makes acceptance of license agreements a parameter.
func (s *system) license() {
	if len(s.source.Licenses) == 0 {
		return
	}
	text := strings.Join(s.source.Licenses, "\n\n")
	if len(text) > maxLicense {
		text = strings.ToValidUTF8(text[:maxLicense], "") + "…"
		s.note(ActionWarning, "license agreement", "its description is shortened to %d KiB; publish the whole text elsewhere", maxLicense>>10)
	}
	s.parameters = append(s.parameters, v1beta1.Parameter{
		Name: ParameterAcceptEULA, DisplayName: "Accept the license agreement", Required: true, Enum: []string{"yes"},
		Description: "Set this to yes if you accept the license agreement:\n" + text,
	})
	s.annotations[AnnotationAcceptedEULA] = "${" + ParameterAcceptEULA + "}"
	s.note(ActionParameter, "license agreement", "users accept it by %s=yes; the VirtualMachine records that in the annotation %s", ParameterAcceptEULA, AnnotationAcceptedEULA)
}

func (s *system) preference() string {
	name, source := s.os.preference, "operating system "+s.os.source
	if s.options.Preference != nil {
		name = *s.options.Preference
		if name != "" {
			s.note(ActionChanged, source, "preference %s, as requested", name)
		}
		return name
	}
	if name == "" {
		s.note(ActionWarning, source, "no preference is known for it; devices are those of the descriptor")
		return ""
	}
	s.note(ActionChanged, source, "preference %s; VirtualMachines cannot be created in a cluster without it", name)
	return name
}

// unused reports disks and files of the package that no template uses.
func unused(e *ovf.Envelope, plan *Plan) []Note {
	var files []string
	for i := range plan.Systems {
		for _, disk := range plan.Systems[i].Disks {
			files = append(files, disk.File)
		}
	}
	embedded := EmbeddedFile(e)
	var notes []Note
	for i := range e.Files {
		f := &e.Files[i]
		switch {
		case embedded != nil && f.ID == embedded.ID:
			notes = append(notes, Note{ActionDropped, "file " + f.Href, "the template that the package carries is not used"})
		case !slices.Contains(files, f.Href):
			notes = append(notes, Note{ActionDropped, "file " + f.Href, "no virtual system uses it"})
		}
	}
	return notes
}
