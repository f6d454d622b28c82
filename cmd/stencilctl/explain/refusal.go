package explain

import (
	"regexp"
	"strings"

	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
)

// refusal describes what denied a request, and why.
type refusal struct {
	Code   int32  `json:"code"`
	Reason string `json:"reason"`
	// By is the component that denied it, in the cluster's terms; Meaning explains it.
	By      string          `json:"by"`
	Meaning string          `json:"meaning"`
	Message string          `json:"message"`
	Causes  []cluster.Cause `json:"causes,omitempty"`
}

// deniers match the API server's messages about what denied a request. Their meaning applies to
// components other than Stencil's.
var deniers = []struct {
	pattern *regexp.Regexp
	kind    string
	meaning string
}{
	{regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`), "ValidatingAdmissionPolicy ", "a policy in the API server that is not one of Stencil's"},
	{regexp.MustCompile(`admission webhook "([^"]+)" denied the request`), "webhook ", "a webhook that is not one of Stencil's"},
	{regexp.MustCompile(`failed calling webhook "([^"]+)"`), "webhook ", "a webhook that does not answer, and without which nothing is stored"},
}

// meanings describe Stencil's webhooks and its ValidatingAdmissionPolicies. The names of the
// policies begin with the name of the release. See charts/stencil and policies.
var meanings = []struct{ name, meaning string }{
	{"render.template.kubevirt.io", "rendering: the template, the values of its parameters, your permission to use it, and what may be written beside it"},
	{"governed.template.kubevirt.io", "approvals: this namespace accepts VMs from approved templates only"},
	{"virtualmachine.validate.template.kubevirt.io", "approvals and policies, for the VM as it would be stored"},
	{"ruledvirtualmachine.validate.template.kubevirt.io", "approvals, policies and validation rules, for the VM as it would be stored"},
	{"create.templatedvirtualmachine.policies.stencil.kubevirt.io", "policies, for the VM as it would be stored"},
	{"defaults.template.kubevirt.io", "defaults that the guest sees"},
	{"-approved-templates", "approvals: the template is not one of those approved for this namespace"},
	{"-governed-machines", "approvals: this namespace accepts VMs from approved templates only"},
	{"-undecided-namespaces", "approvals: one may govern this namespace, which is not decided yet"},
	{"-template-reference", "the reference to the template, which must be well-formed and stay as it is"},
	{"-template-use", "your permission to use the template"},
	{"virtualmachine-validator.kubevirt.io", "KubeVirt's own validation"},
	{"virtualmachines-mutator.kubevirt.io", "KubeVirt's own defaults"},
}

func explainRefusal(denial cluster.Refusal) *refusal {
	r := &refusal{Code: denial.Code, Reason: string(denial.Reason), By: "the API server", Message: denial.Message, Causes: denial.Causes}
	// The message of an Invalid has what denied it in its causes only.
	text := denial.Message
	for _, cause := range denial.Causes {
		text += "\n" + cause.Message
	}
	for _, denier := range deniers {
		if found := denier.pattern.FindStringSubmatch(text); found != nil {
			r.By, r.Meaning = denier.kind+found[1], denier.meaning
			if !strings.HasPrefix(denier.meaning, "a webhook that does not answer") {
				r.Meaning = meaning(found[1], denier.meaning)
			}
			return r
		}
	}
	switch denial.Code {
	case 401:
		r.Meaning = "the request is not authenticated"
	case 403:
		r.Meaning = "permissions, a quota or another part of the API server"
	case 404:
		r.Meaning = "the namespace, or the API of KubeVirt, is not there"
	case 409:
		r.Meaning = "there is a VirtualMachine of this name already"
	case 400, 422:
		r.Meaning = "the manifest is not one of a VirtualMachine"
	default:
		r.Meaning = "it could not decide"
	}
	return r
}

func meaning(name, other string) string {
	for _, each := range meanings {
		if name == each.name || strings.HasPrefix(each.name, "-") && strings.HasSuffix(name, each.name) {
			return each.meaning
		}
	}
	return other
}
