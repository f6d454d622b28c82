package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/mutation"
	"github.com/vmstencil/stencil/internal/objects"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/decision"
)

// instance is a new VM that was sent complete, as process returns it, and is compared with its template instead of rendered. The values of the
// parameters are those that the VM shows. Whatever differs from what the template makes of these values is an override, so the VM is exactly
// what would be rendered, apart from overrides.
type instance struct {
	creation
	compiled *template.Compiled
	name     string
	explicit map[string]string
	// vm is the requested VM without the annotations that the user could forge. Parameters have their annotations.
	vm map[string]any
}

// instance returns the VM as an instance of the template. It returns false if the VM is to be rendered: if its spec is not complete, or if it has
// parameters that the template does not declare and is not claimed to be complete.
func (c creation) instance(compiled *template.Compiled) (instance, bool) {
	if machine.MapAt(c.object.Spec, "template", "spec") == nil || c.delegated {
		return instance{}, false
	}
	i := instance{creation: c, compiled: compiled, name: c.name(), explicit: c.object.Parameters()}
	if declared := compiled.Parameters(); !c.claimed() {
		for name := range i.explicit {
			if !slices.ContainsFunc(declared, parameterNamed(name)) {
				return instance{}, false
			}
		}
	}
	annotations := maps.Clone(c.object.Annotations)
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return template.IsContract(key) && !strings.HasPrefix(key, contract.AnnotationParameterPrefix)
	})
	metadata := maps.Clone(c.object.Metadata)
	metadata["annotations"] = annotations
	if i.name != "" {
		metadata["name"] = i.name
	}
	i.vm = maps.Clone(c.object.Object)
	i.vm["metadata"] = metadata
	return i, true
}

// claimed reports whether the VM is complete according to its sender: it comes from process, or refers to its template by labels. Nothing is
// merged into such a VM, so that an edited VM stays as the user edited it.
func (c creation) claimed() bool {
	return c.labelled || c.processedDigest() != ""
}

// processedDigest returns the digest of the template from which process has rendered the VM.
func (c creation) processedDigest() string {
	return machine.StringAt(c.object.Annotations, contract.AnnotationProcessed)
}

// decideInstance decides about a VM that is an instance of its template. It returns false if the VM is to be rendered; the result then has the
// objections to the instance, if it is one.
func (c creation) decideInstance(compiled *template.Compiled) (result, bool) {
	i, is := c.instance(compiled)
	if !is {
		return result{}, false
	}
	plain, err := i.match()
	if err != nil || !plain.Matches() && !c.claimed() {
		return result{}, false
	}
	chosen := i.bind(plain)
	evaluated := approval.Decision{Allowed: true}
	if len(c.approvals) > 0 {
		matches := map[string]comparison{}
		question := c.question(compiled, i.name, nil)
		question.Instance = func(a *approval.Approval) approval.Instance {
			found, err := i.match(template.Ignoring(a.OverridableField), template.Preferring(a.ClosedValues(compiled)))
			if err != nil {
				return approval.Instance{Differences: []approval.Objection{{Message: fmt.Sprintf("the VM cannot be compared with its template: %v", err)}}}
			}
			matches[a.Name()] = i.bind(found)
			return i.evaluated(matches[a.Name()])
		}
		evaluated = approval.Evaluate(c.approvals, question)
		if found, is := matches[evaluated.By]; is {
			chosen = found
		}
	}
	outdated := !plain.Matches() && c.processedDigest() != "" && c.processedDigest() != compiled.Digest()
	if evaluated.Denied() && outdated {
		return result{outdated: true}, true
	}
	if evaluated.Denied() {
		return result{objections: evaluated.Objections, draft: &mutation.Patch{}}, c.claimed()
	}
	composed := i.compose(chosen)
	composed.warnings = append(composed.warnings, decision.Warnings(evaluated)...)
	if outdated {
		composed.warnings = append(composed.warnings, fmt.Sprintf("template %s changed after this VM was processed from it; the VM is created as it was sent", c.reference))
	}
	return composed, true
}

// match compares the VM with the template. Values that the template cannot have generated count as given, but if a comparison without such values
// finds no difference, it is preferred.
func (i instance) match(options ...template.MatchOption) (*template.Match, error) {
	found, err := i.compiled.Match(i.vm, options...)
	if err != nil || found.Matches() || !i.claimed() && len(found.Differences()) > i.generators() {
		// A short manifest lacks most of the template. It is not compared again.
		return found, err
	}
	given, err := i.compiled.Match(i.vm, append(slices.Clip(options), template.AsGiven())...)
	if err != nil || len(given.Differences()) >= len(found.Differences()) {
		return found, err
	}
	return given, nil
}

// comparison is a comparison of the VM with its template.
type comparison struct {
	*template.Match
	// binding has the values of which the other objects of the template are made: those that the user gave or the VM shows, and otherwise defaults
	// and generated ones. It is nil if there are no objects, or if invalid is set.
	binding *template.Binding
	invalid error
}

// bind binds the values of the other objects of the template.
func (i instance) bind(found *template.Match) comparison {
	compared := comparison{Match: found}
	if len(i.compiled.Objects()) > 0 {
		compared.binding, compared.invalid = i.compiled.Bind(i.values(found))
	}
	return compared
}

// generators returns the number of parameters that the template generates.
func (i instance) generators() int {
	count := 0
	for _, p := range i.compiled.Parameters() {
		if p.Generate != "" {
			count++
		}
	}
	return count
}

// evaluated returns the VM as approvals evaluate it.
func (i instance) evaluated(found comparison) approval.Instance {
	values := i.values(found.Match)
	made := approval.Instance{Values: values, Given: maps.Clone(values)}
	if found.binding != nil {
		made.Values = found.binding.Values()
	}
	for _, p := range i.compiled.Parameters() {
		_, explicit := i.explicit[p.Name]
		if i.compiled.Generates(p.Name, values[p.Name]) && !explicit && !i.compiled.Naming(p.Name) {
			delete(made.Given, p.Name)
		}
	}
	touched, problems := i.touched(found, values)
	made.Touched, made.Differences = touched, problems
	return made
}

// values returns the values that the VM shows and those in its annotations. The latter include those that it does not show.
func (i instance) values(found *template.Match) map[string]string {
	values := found.Values()
	for name, value := range i.explicit {
		if _, shown := values[name]; !shown {
			values[name] = value
		}
	}
	return values
}

// touched returns the places where the VM differs from what the template makes of the values, and the values that the template rejects.
func (i instance) touched(found comparison, values map[string]string) ([]approval.Path, []approval.Objection) {
	var problems []approval.Objection
	var invalid *template.InvalidError
	err, others := found.invalid, len(i.compiled.Objects()) > 0
	if !others {
		_, err = i.compiled.Bind(values)
	}
	if errors.As(err, &invalid) {
		for _, cause := range invalid.Causes {
			name, isValue := strings.CutPrefix(cause.Field, "parameters[")
			// The comparison reports the values that the VM shows. A required parameter that it does not show is part of nothing in it, but may be
			// part of an object.
			if _, shown := found.Values()[strings.TrimSuffix(name, "]")]; isValue && !shown && (others || cause.Type != field.ErrorTypeRequired) {
				problems = append(problems, approval.Objection{Field: cause.Field, Message: cause.ErrorBody()})
			}
		}
	}
	rendered, err := i.compiled.Reconstruct(found.Match)
	if err != nil {
		return nil, append(problems, approval.Objection{Field: "spec", Message: "the template makes no VirtualMachine of the values that this one shows"})
	}
	under, err := machine.Decode(rendered.JSON())
	if err != nil {
		panic("reading back a rendered VirtualMachine: " + err.Error())
	}
	touched := approval.Changes(under, i.vm)
	for _, difference := range found.Differences() {
		// Most differences are touched places. The others are values that their parameters reject.
		if !slices.ContainsFunc(touched, func(path approval.Path) bool { return samePlace(path.String(), difference.Path) }) {
			problems = append(problems, approval.Objection{
				Field: difference.Path, Message: fmt.Sprintf("the template has %s here, the VM %s, and the approval lists no override for it", difference.Want, difference.Got),
			})
		}
	}
	return touched, problems
}

// samePlace reports whether a touched place is that of a difference: itself, all of its content, or all items of its list. An override of a touched
// place is one of the difference, too.
func samePlace(touched, difference string) bool {
	if touched == difference || touched == difference+".*" || touched == difference+"[*]" {
		return true
	}
	item := strings.LastIndex(difference, "[")
	return item >= 0 && strings.HasSuffix(difference, "]") && touched == difference[:item]+"[*]"
}

// compose returns the patch of an instance: its spec stays as it is, and the record is added. If the template has other objects, they are made of the
// values of the VM, as for a VM that is rendered: they come from the template alone.
func (i instance) compose(found comparison) result {
	var base renderedObject
	if found.invalid != nil {
		return i.reject(found.invalid)
	}
	if rendered, err := i.compiled.Reconstruct(found.Match); err == nil {
		if err := json.Unmarshal(rendered.JSON(), &base); err != nil {
			return i.reject(fmt.Errorf("reading what was rendered: %w", err))
		}
	}
	if invalid := i.misplaced(base); invalid != nil {
		return i.reject(invalid)
	}
	name, missing := i.finalName(i.name, base)
	if missing != nil {
		return result{causes: field.ErrorList{missing}}
	}
	p := &mutation.Patch{}
	if name != i.object.Name() {
		p.Set(mutation.Pointer{"metadata", "name"}, name)
	}
	from := i.record(i.compiled, i.explicit)
	from.Sent = machine.Fingerprint(i.object.Spec)
	stamps := map[string]string{}
	if i.labelled {
		stamps[contract.AnnotationTemplateRef] = i.reference.String()
	}
	i.grant(stamps, i.object.Spec)
	if found.Matches() {
		i.note(found.Match, &from, stamps)
	}
	base.Metadata.Labels, base.Metadata.Annotations = nil, nil
	var others attached
	if found.binding != nil {
		rendered, err := i.compiled.RenderAs(found.binding, name)
		if err != nil {
			return i.reject(err)
		}
		i.hold(p)
		others = attached{
			rendered: rendered.Objects(), names: i.compiled.Objects(), lent: lentObjects(i.compiled), sensitive: sensitiveValues(i.compiled, found.binding),
			binding: objects.Binding{Namespace: i.namespace, Name: name, Record: from.String()},
		}
	}
	composed := i.finish(p, i.compiled, base, name, i.explicit, from, stamps, nil)
	composed.objects = others
	return composed
}

// hold adds the annotation to the patch that holds the VM back until its objects exist.
func (i instance) hold(p *mutation.Patch) {
	at := mutation.Pointer{"spec", "template", "metadata"}
	metadata := machine.MapAt(i.object.Spec, "template", "metadata")
	switch {
	case metadata == nil:
		p.Set(at, map[string]any{"annotations": map[string]any{contract.AnnotationHold: held}})
	case machine.MapAt(metadata, "annotations") == nil:
		p.Set(at.Child("annotations"), map[string]any{contract.AnnotationHold: held})
	default:
		p.Set(at.Child("annotations").Child(contract.AnnotationHold), held)
	}
}

// note adds the values that were given without an annotation: those that are not secret as annotations, so that the VM has the same values whenever
// it is compared with the template again, and the names of the others to the record.
func (i instance) note(found *template.Match, from *machine.Record, stamps map[string]string) {
	values := found.Values()
	named, _ := i.compiled.BindName(i.name, i.explicit)
	for _, p := range i.compiled.Parameters() {
		value, shown := values[p.Name]
		_, explicit := i.explicit[p.Name]
		byName, isNamed := named[p.Name]
		switch {
		case !shown || explicit || value == p.Value || isNamed && byName == value || i.compiled.Generates(p.Name, value):
		case p.Sensitive:
			from.Sensitive = append(from.Sensitive, p.Name)
		case value != "":
			stamps[contract.AnnotationParameterPrefix+p.Name] = value
		}
	}
	slices.Sort(from.Sensitive)
}

func parameterNamed(name string) func(v1beta1.Parameter) bool {
	return func(p v1beta1.Parameter) bool { return p.Name == name }
}
