package policywebhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/exemption"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// Match conditions of an entry. A request is sent if all of them are true. A condition that cannot be evaluated denies the request if the
// entry fails closed, so each must have a value for every object.
const (
	// Both as in the chart.
	hasReference = "object.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue() || " +
		"(oldObject != null && oldObject.metadata.?annotations[?'template.kubevirt.io/template-ref'].hasValue())"
	hasNoReference = "!(" + hasReference + ")"

	// VirtualMachines with rules that the request may violate match a webhook of the chart. Its condition has-rules is the negation of this.
	hasNoRules = "!((object.metadata.?annotations[?'vm.kubevirt.io/validations'].orValue('') != '' || " +
		"object.metadata.?annotations[?'template.kubevirt.io/rendered'].orValue('').contains('\"rules\":true')) && " +
		"object.metadata.?annotations[?'vm.kubevirt.io/skip-validations'].orValue('false') == 'false' && " +
		"(request.operation == 'CREATE' || object.?spec != oldObject.?spec || " +
		"['validations', 'skip-validations'].exists(key, " +
		"object.metadata.?annotations[?'vm.kubevirt.io/' + key].orValue('') != " +
		"oldObject.metadata.?annotations[?'vm.kubevirt.io/' + key].orValue(''))))"

	// Changes of finalizers, owner references and managed fields alone are not evaluated: an object can be deleted while no manager runs.
	relevantChange = "object.?spec != oldObject.?spec || " +
		"object.metadata.?labels != oldObject.metadata.?labels || " +
		"object.metadata.?annotations != oldObject.metadata.?annotations"

	// virt-api, in any namespace, writes the changes that a user requests by a subresource such as addvolume. Starting and stopping VMs is
	// not evaluated.
	fromVirtAPI = "request.userInfo.username.endsWith('" + machine.VirtAPI + "')"

	// Changes to an object that is being deleted are not evaluated either, unless they change its spec.
	notEnding = "!has(object.metadata.deletionTimestamp) || object.?spec != oldObject.?spec"
)

func conditions(entry Entry, exempt exemption.Names) []admissionregistrationv1.MatchCondition {
	var list []admissionregistrationv1.MatchCondition
	add := func(name, expression string) {
		list = append(list, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
	// There is no object in a DELETE.
	if entry.Kind == v1alpha1.PolicyKindVirtualMachine && entry.Operation != v1alpha1.PolicyOperationDelete {
		if entry.Templated {
			add("has-template-ref", hasReference)
		} else {
			add("has-no-template-ref", hasNoReference)
		}
		add("has-no-rules", hasNoRules)
	}
	if entry.Operation == v1alpha1.PolicyOperationUpdate {
		add("relevant-change", relevantChange)
		add("not-ending", notEnding)
	}
	if expression := notExempt(entry, exempt); expression != "" {
		add("not-exempt", expression)
	}
	return list
}

// notExempt returns the condition that excludes exempt users; empty if no user is exempt, or if requests of exempt users to this entry are
// evaluated, too.
func notExempt(entry Entry, exempt exemption.Names) string {
	expression := exempt.Expression()
	if expression == "" {
		return ""
	}
	expression = "!(" + expression + ")"
	switch {
	case entry.Kind == kindInstance && entry.Operation == v1alpha1.PolicyOperationCreate:
		// virt-controller creates them from VirtualMachines, ReplicaSets and pools, which were evaluated.
		return expression
	case entry.Operation == v1alpha1.PolicyOperationCreate:
		// Creations by exempt users are evaluated: they may be on behalf of a user.
		return ""
	case entry.Operation != v1alpha1.PolicyOperationUpdate:
		return expression
	case entry.Kind == kindInstance:
		return expression + " || " + fromVirtAPI + " && object.?spec != oldObject.?spec"
	case entry.Kind == v1alpha1.PolicyKindVirtualMachine:
		return expression + " || " + fromVirtAPI + " && object.?spec.?template != oldObject.?spec.?template"
	default:
		return expression
	}
}
