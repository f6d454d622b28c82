package audit

import (
	"fmt"
	"time"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/template"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/test/bench/measurement"
)

// evaluating holds one measurement per round of each kind of work.
type evaluating struct {
	// decode reads a VM, match compares it with its template, approved does so under an approval and evaluates its values, beyond finds the fields
	// that its template does not have.
	decode, match, approved, beyond measurement.Series
	// size of the VM as JSON, in bytes.
	size int
}

// rules returns the spec of the approvals of all measurements.
func rules(golden *v1beta1.VirtualMachineTemplate) v1alpha1.TemplateApprovalSpec {
	return v1alpha1.TemplateApprovalSpec{
		NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
		Templates:         []v1alpha1.ApprovedTemplate{{Namespace: golden.Namespace, Name: golden.Name}},
		Parameters:        []v1alpha1.ParameterConstraint{{Name: "INSTANCETYPE", Allowed: []string{"u1.small", "u1.medium"}}},
		Overrides:         []string{"spec.runStrategy", "metadata.labels.*", "spec.template.spec.domain.devices.interfaces[name=default].macAddress"},
	}
}

func (j *evaluating) measure(golden *v1beta1.VirtualMachineTemplate, duration time.Duration) error {
	compiled, err := template.Compile(golden)
	if err != nil {
		return fmt.Errorf("compiling the template: %w", err)
	}
	encoded, err := stored(golden, compiled, namespaceOf(0), "bench-1")
	if err != nil {
		return err
	}
	j.size = len(encoded)
	object, err := machine.Decode(encoded)
	if err != nil {
		return err
	}
	rule, err := approval.Compile(&v1alpha1.TemplateApproval{Spec: rules(golden)})
	if err != nil {
		return fmt.Errorf("compiling the approval: %w", err)
	}
	cluster, err := approval.ClusterAdditions()
	if err != nil {
		return err
	}
	found, err := compiled.Match(object)
	if err != nil {
		return err
	}
	for _, own := range []struct {
		into *measurement.Series
		work func() error
	}{
		{&j.decode, func() error { _, err := machine.Decode(encoded); return err }},
		{&j.match, func() error { return matching(compiled.Match(object)) }},
		{&j.approved, func() error {
			found, err := compiled.Match(object, template.Ignoring(rule.OverridableField), template.Preferring(rule.ClosedValues(compiled)))
			if err := matching(found, err); err != nil {
				return err
			}
			if causes := rule.Parameters(found.Values(), compiled.Sensitive); len(causes) > 0 {
				return causes.ToAggregate()
			}
			return nil
		}},
		{&j.beyond, func() error {
			made, err := compiled.Reconstruct(found)
			if err != nil {
				return err
			}
			expected, err := machine.Decode(made.JSON())
			if err != nil {
				return err
			}
			if more := cluster.Beyond(expected, object); len(more) > 0 {
				return fmt.Errorf("the VM has %s beyond its template", more[0])
			}
			return nil
		}},
	} {
		cost, err := measurement.Of(duration, own.work)
		if err != nil {
			return err
		}
		*own.into = append(*own.into, cost)
	}
	return nil
}

// matching returns an error unless the VM matches its template: a comparison that ends early costs less.
func matching(found *template.Match, err error) error {
	if err != nil {
		return err
	}
	if !found.Matches() {
		return fmt.Errorf("the VM differs from its template: %+v", found.Differences()[0])
	}
	return nil
}
