package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	authenticationv1 "k8s.io/api/authentication/v1"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/internal/delegation"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/template"
	"github.com/vmstencil/stencil/template/alternatives"
	"github.com/vmstencil/stencil/template/validations"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
	"github.com/vmstencil/stencil/webhooks/internal/overrides"
)

// creation is the input of the rendering of a new VM.
type creation struct {
	object    machine.Object
	namespace string
	reference machine.Reference
	template  *templatecache.Template
	// user is the user that the VM is created for. delegated reports that stencil-apiserver creates it on that user's
	// behalf.
	user      authenticationv1.UserInfo
	delegated bool
	// approvals are the approvals of the namespace to evaluate; none if the namespace is not governed, the user is
	// exempt, or the request is a preview.
	approvals []*approval.Approval
	// considered are the approvals to evaluate if the values make no VM. A preview has them, too, because no later webhook is called then.
	considered []*approval.Approval
	// labelled reports that the VM refers to the template by its labels only.
	labelled bool
	// lending reports that templates lend their disks.
	lending bool
	// suffix returns the random end of a generated name.
	suffix func() string
}

// result is the result of a decision: the patch and the warnings, the causes of a rejection, or the objections of
// the approvals.
type result struct {
	patch      *mutation.Patch
	warnings   []string
	causes     field.ErrorList
	objections []approval.Objection
	// draft makes the VM that would be stored without the objections of the approvals; nil if it is not known.
	draft *mutation.Patch
	// objects are the other objects of the template.
	objects attached
	// loans are disks that the template may not lend; see borrowed.
	loans []disks.Loan
	// templateChanged reports that the values were bound for another version of the template.
	templateChanged bool
	// outdated reports that the VM is denied, and was processed from another version of the template.
	outdated bool
}

func (c creation) decide() result {
	compiled, err := c.template.Compiled()
	if err != nil {
		return c.reject(err)
	}
	if c.templateChanged(compiled) {
		return result{templateChanged: true}
	}
	complete, decided := c.decideInstance(compiled)
	if decided {
		return complete
	}
	made := c.render(compiled)
	if len(made.causes)+len(made.objections) > 0 && len(complete.objections) > 0 {
		return complete
	}
	return made
}

// render renders the VM, and merges the user-specified fields over it.
func (c creation) render(compiled *template.Compiled) result {
	explicit := c.object.Parameters()
	name := c.name()
	values, bound, err := c.values(compiled, name, explicit)
	if err != nil {
		return c.reject(err)
	}
	given := c.given(values, explicit)
	binding, err := compiled.Bind(values)
	if err != nil {
		return c.together(compiled, name, values, given, c.reject(err, bound...))
	}
	rendered, err := compiled.RenderAs(binding, name)
	if err != nil {
		return c.together(compiled, name, binding.Values(), given, c.reject(err, bound...))
	}
	evaluated := c.evaluate(compiled, name, given, binding, rendered)
	composed := c.compose(compiled, rendered, name, explicit)
	if evaluated.Denied() {
		return result{objections: besides(slices.Clip(evaluated.Objections), composed.causes), draft: composed.patch}
	}
	if len(composed.objects.names) > 0 {
		composed.objects.sensitive = sensitiveValues(compiled, binding)
	}
	composed.warnings = append(composed.warnings, decision.Warnings(evaluated)...)
	return composed
}

// name returns the name of the VM as far as the request determines it. It generates the name here, because the API
// server would do so only after admission, and the template may refer to the name.
func (c creation) name() string {
	if name := c.object.Name(); name != "" {
		return name
	}
	if prefix := c.object.GenerateName(); prefix != "" {
		return machine.GeneratedName(prefix, c.suffix)
	}
	return ""
}

// values returns the parameter values of the request: those that the server has bound, if it has, and otherwise the
// explicit values and those that the name binds.
func (c creation) values(compiled *template.Compiled, name string, explicit map[string]string) (values map[string]string, bound []string, err error) {
	if text, found := c.boundValues(); found {
		given, err := delegation.ParseBoundValues(text)
		return given.Values, nil, err
	}
	return c.bindName(compiled, name, explicit)
}

// given returns the user-specified values. If the server has bound the values, these are the explicit parameters,
// which the server passes on.
func (c creation) given(values, explicit map[string]string) map[string]string {
	if _, found := c.boundValues(); found {
		return explicit
	}
	return values
}

// boundValues returns the annotation with the values that the server has bound, if it creates the VM on behalf of a user.
func (c creation) boundValues() (string, bool) {
	value, found := c.object.Annotations[contract.AnnotationBoundValues]
	text, _ := value.(string)
	return text, found && c.delegated
}

// templateChanged reports whether the server has bound the values for another version of the template.
func (c creation) templateChanged(compiled *template.Compiled) bool {
	text, found := c.boundValues()
	if !found {
		return false
	}
	given, err := delegation.ParseBoundValues(text)
	return err == nil && given.Digest != compiled.Digest()
}

// bindName adds the parameters that the name of the VM binds to the explicit ones.
func (c creation) bindName(compiled *template.Compiled, name string, explicit map[string]string) (values map[string]string, bound []string, err error) {
	if name == "" {
		return explicit, nil, nil
	}
	fromName, err := compiled.BindName(name, explicit)
	if err != nil {
		return nil, nil, err
	}
	values = maps.Clone(explicit)
	maps.Copy(values, fromName)
	return values, slices.Sorted(maps.Keys(fromName)), nil
}

// renderedObject is the part of a rendered VM that serves as base of the user's object. Fields that the user did not
// set retain the encoding of the engine.
type renderedObject struct {
	Metadata struct {
		Name         string            `json:"name"`
		GenerateName string            `json:"generateName"`
		Namespace    string            `json:"namespace"`
		Labels       map[string]string `json:"labels"`
		Annotations  map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

func (c creation) compose(compiled *template.Compiled, rendered *template.Rendered, name string, explicit map[string]string) result {
	var base renderedObject
	if err := json.Unmarshal(rendered.JSON(), &base); err != nil {
		return c.reject(fmt.Errorf("reading what was rendered: %w", err))
	}
	if invalid := c.misplaced(base); invalid != nil {
		return c.reject(invalid)
	}
	name, invalid := c.finalName(name, base)
	if invalid != nil {
		return result{causes: field.ErrorList{invalid}}
	}
	others := compiled.Objects()
	if len(others) > 0 {
		var err error
		if base.Spec, err = hold(base.Spec); err != nil {
			return c.reject(fmt.Errorf("reading what was rendered: %w", err))
		}
	}

	p := &mutation.Patch{}
	if name != c.object.Name() {
		p.Set(mutation.Pointer{"metadata", "name"}, name)
	}
	merge := overlay{patch: p}
	from := c.record(compiled, explicit)
	spec, err := machine.Decode(base.Spec)
	if err != nil {
		return c.reject(fmt.Errorf("reading what was rendered: %w", err))
	}
	from.Base = baseOf(compiled, spec, name, explicit)
	stamps := map[string]string{}
	if c.object.Spec == nil {
		p.Set(mutation.Pointer{"spec"}, base.Spec)
	} else {
		if causes := inlined(spec, c.object.Spec); len(causes) > 0 {
			return result{causes: causes}
		}
		beside, _ := alternatives.Spec().Without(spec, c.object.Spec).(map[string]any)
		merge.apply(mutation.Pointer{"spec"}, beside, c.object.Spec)
		from.Sent = machine.Fingerprint(c.object.Spec)
		from.Lists = merge.lists
		merged, _ := overrides.Merge(beside, c.object.Spec).(map[string]any)
		if note := overrides.Compare(unheld(spec), unheld(merged), from.Base.Secret).String(); note != "" {
			stamps[contract.AnnotationOverrides] = note
		}
		spec = merged
	}
	c.grant(stamps, spec)
	composed := c.finish(p, compiled, base, name, explicit, from, stamps, merge.merged)
	composed.objects = attached{
		rendered: rendered.Objects(), names: others, lent: lentObjects(compiled),
		binding: objects.Binding{Namespace: c.namespace, Name: name, Record: from.String()},
	}
	return composed
}

// misplaced returns the error of a VM that the template places in another namespace.
func (c creation) misplaced(base renderedObject) error {
	if base.Metadata.Namespace == "" || base.Metadata.Namespace == c.namespace {
		return nil
	}
	return &template.InvalidError{Causes: field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), c.namespace,
		fmt.Sprintf("the template places this VM in namespace %q: create it there, or change the parameter that sets the namespace", base.Metadata.Namespace))}}
}

// record returns the record of the VM.
func (c creation) record(compiled *template.Compiled, explicit map[string]string) machine.Record {
	return machine.Record{
		Namespace:  c.template.Namespace,
		Name:       c.template.Name,
		UID:        c.template.UID,
		Generation: c.template.Generation,
		Digest:     compiled.Digest(),
		Sensitive:  sensitive(compiled, explicit),
		Mutable:    compiled.Mutable(),
		Rules:      c.template.Annotation(validations.AnnotationTemplate) != "",
	}
}

// finish adds the metadata of the template, the record and other stamps to the patch, and removes what must not be stored. merged are the lists that
// the patch has changed.
func (c creation) finish(p *mutation.Patch, compiled *template.Compiled, base renderedObject, name string, explicit map[string]string, from machine.Record, stamps map[string]string, merged []mutation.Pointer) result {
	setMetadata(p, "labels", c.object.Labels, base.Metadata.Labels, from.Labels())
	maps.DeleteFunc(base.Metadata.Annotations, func(key, _ string) bool { return template.IsContract(key) })
	stamps[contract.AnnotationRendered] = from.String()
	discarded := []string{contract.AnnotationBoundValues}
	if _, stamped := stamps[contract.AnnotationOverrides]; !stamped {
		discarded = append(discarded, contract.AnnotationOverrides)
	}
	if len(compiled.Objects()) == 0 {
		discarded = append(discarded, contract.AnnotationPendingObjects)
	}
	if _, stamped := stamps[contract.AnnotationRenderedFor]; !stamped {
		discarded = append(discarded, contract.AnnotationRenderedFor)
	}
	if c.delegated {
		stamps[contract.AnnotationCreatedBy] = c.user.Username
	} else {
		discarded = append(discarded, contract.AnnotationCreatedBy)
	}
	setMetadata(p, "annotations", c.object.Annotations, base.Metadata.Annotations, stamps)
	changed := slices.Concat(merged, discard(p, c.object.Annotations, discarded...), forget(p, c.object.Annotations, from.Sensitive))
	if left, disclaimed := disclaim(c.object.Metadata["managedFields"], changed); disclaimed {
		p.Set(mutation.Pointer{"metadata", "managedFields"}, left)
	}
	return result{patch: p, warnings: slices.Concat(machine.UnusedWarnings(compiled, explicit), machine.MisspeltWarnings(c.object.Annotations)), loans: c.borrowed(compiled, base.Spec, name, explicit)}
}

// finalName determines the name if the request leaves it to the template.
func (c creation) finalName(name string, base renderedObject) (string, *field.Error) {
	switch {
	case name != "":
		return name, nil
	case base.Metadata.Name != "":
		return base.Metadata.Name, nil
	case base.Metadata.GenerateName != "":
		return machine.GeneratedName(base.Metadata.GenerateName, c.suffix), nil
	default:
		return "", field.Required(field.NewPath("metadata", "name"), fmt.Sprintf("neither the request nor template %s names the VM", c.reference))
	}
}

// setMetadata adds string entries to metadata.labels or metadata.annotations: those of the template that the user did
// not specify, and the stamps in any case.
func setMetadata(p *mutation.Patch, key string, requested map[string]any, fromTemplate, stamps map[string]string) {
	add := map[string]string{}
	for k, v := range fromTemplate {
		if requested[k] == nil {
			add[k] = v
		}
	}
	for k, v := range stamps {
		if requested[k] != v {
			add[k] = v
		}
	}
	if len(add) == 0 {
		return
	}
	at := mutation.Pointer{"metadata", key}
	if requested == nil {
		p.Set(at, add)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(add)) {
		p.Set(at.Child(k), add[k])
	}
}

// sensitive returns the names of the given parameters that must not remain on the VM.
func sensitive(compiled *template.Compiled, explicit map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(explicit)) {
		if compiled.Sensitive(name) {
			names = append(names, name)
		}
	}
	return names
}

// reject converts an error of the engine into causes that refer to fields of the request: parameters become the
// annotations that set them, or the name that bound them. Paths in the template are marked as such.
func (c creation) reject(err error, boundByName ...string) result {
	var invalid *template.InvalidError
	if !errors.As(err, &invalid) {
		return result{causes: field.ErrorList{field.InternalError(machine.AnnotationsPath.Key(contract.AnnotationTemplateRef), err)}}
	}
	causes := make(field.ErrorList, 0, len(invalid.Causes))
	for _, cause := range invalid.Causes {
		located := *cause
		located.Field = c.fieldOf(cause.Field, boundByName)
		causes = append(causes, &located)
	}
	return result{causes: causes}
}

func (c creation) fieldOf(engineField string, boundByName []string) string {
	if parameter, found := strings.CutPrefix(engineField, "parameters["); found {
		parameter = strings.TrimSuffix(parameter, "]")
		if slices.Contains(boundByName, parameter) {
			return "metadata.name"
		}
		return machine.AnnotationsPath.Key(contract.AnnotationParameterPrefix + parameter).String()
	}
	if strings.HasPrefix(engineField, "metadata.") {
		return engineField
	}
	return fmt.Sprintf("template[%s].%s", c.reference, engineField)
}
