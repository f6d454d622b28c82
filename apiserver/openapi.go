package apiserver

import (
	"maps"

	extensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
)

// Definitions returns the definitions of the types of requests and responses. Those of Kubernetes come from the package that is generated for them.
// Stencil defines the others, and KubeVirt describes the largest part of them, a VirtualMachine.
func Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := maps.Clone(extensionsopenapi.GetOpenAPIDefinitions(ref))
	metadata := property(spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")}}, "")
	object := func(description string, required []string, properties map[string]spec.Schema) common.OpenAPIDefinition {
		properties["apiVersion"] = text("APIVersion is the version of this representation of an object.")
		properties["kind"] = text("Kind is the kind of the object.")
		properties["metadata"] = metadata
		return common.OpenAPIDefinition{
			Schema: spec.Schema{SchemaProps: spec.SchemaProps{
				Description: description, Type: []string{"object"}, Properties: properties, Required: required,
			}},
			Dependencies: []string{"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
		}
	}
	definitions[util.GetCanonicalTypeName(v1beta1.ProcessOptions{})] = object("ProcessOptions is the request to process and create.", nil, map[string]spec.Schema{
		"parameters": property(spec.Schema{SchemaProps: spec.SchemaProps{
			Type:                 []string{"object"},
			AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Default: ""}}},
		}}, "Parameters are the values of the template's parameters, by name."),
		"explain":         property(spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"boolean"}}}, "Explain requests the decisions that approvals, policies and all other admission would make if the caller created this VirtualMachine now. The response contains them in decisions."),
		"targetNamespace": text("TargetNamespace is the namespace in which create creates the VirtualMachine; the default is the namespace of the template. In another namespace the caller needs permission to create virtualmachinetemplates/create there as well."),
	})
	definitions[util.GetCanonicalTypeName(v1beta1.ProcessedVirtualMachineTemplate{})] = object("ProcessedVirtualMachineTemplate is the response of process and create.", []string{"virtualMachine"}, map[string]spec.Schema{
		"templateRef":    anything("TemplateRef names the template that was processed, by namespace and name."),
		"virtualMachine": anything("VirtualMachine is the resulting VirtualMachine of kubevirt.io/v1: rendered by process, rendered and stored by create."),
		"objects":        list(anything("An object in the namespace of the VirtualMachine."), "Objects are the other objects of the template, rendered by process. create returns none: they are created after the VirtualMachine."),
		"message":        text("Message is the template's message, with its placeholders replaced."),
		"decisions":      decisions(),
	})
	definitions[util.GetCanonicalTypeName(templatev1beta1.VirtualMachineTemplate{})] = object("VirtualMachineTemplate is a template of template.kubevirt.io that is sent to be processed.", []string{"spec"}, map[string]spec.Schema{
		"spec":   anything("Spec is that of a VirtualMachineTemplate of template.kubevirt.io."),
		"status": anything("Status is ignored."),
	})
	definitions[util.GetCanonicalTypeName(kubevirtv1.VirtualMachine{})] = object("VirtualMachine is a VirtualMachine of kubevirt.io/v1 that is sent to have its defaults filled in, and returned with them.", []string{"spec"}, map[string]spec.Schema{
		"spec":   anything("Spec is that of a VirtualMachine of kubevirt.io."),
		"status": anything("Status is ignored."),
	})
	definitions[util.GetCanonicalTypeName(v1beta1.AvailableTemplate{})] = object("AvailableTemplate is a template that the caller may use for a VirtualMachine in the namespace of the request.", []string{"templateRef", "ready", "allowed"}, map[string]spec.Schema{
		"templateRef": anything("TemplateRef names the template, by namespace and name."),
		"displayName": text("DisplayName is the name for users, from annotation openshift.io/display-name."),
		"description": text("Description is what the template is for, from annotation description."),
		"icon":        text("Icon is the name of an icon, from annotation iconClass."),
		"tags":        list(text(""), "Tags are those of annotation tags."),
		"ready":       anything("Ready reports whether VirtualMachines can be created from the template now: status is True, False or Unknown, with reason and message."),
		"allowed":     property(spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"boolean"}}}, "Allowed reports whether the approvals of the namespace allow a VirtualMachine of the template."),
		"enforcement": text("Enforcement specifies what happens to a VirtualMachine that satisfies no approval. If empty, no approval selects the namespace."),
		"variants":    list(anything("One way, with its approvals and parameters."), "Variants are the ways in which a VirtualMachine of the template is allowed: the values of its parameters must satisfy one of them."),
		"reasons":     list(text(""), "Reasons are why no approval allows a VirtualMachine of the template."),
		"schema":      anything("Schema is a JSON Schema, draft 2020-12, of the parameters of a request to process and create."),
	})
	item := spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(util.GetCanonicalTypeName(v1beta1.AvailableTemplate{}))}}
	definitions[util.GetCanonicalTypeName(v1beta1.AvailableTemplateList{})] = object("AvailableTemplateList is a list of AvailableTemplates, sorted by namespace and name of the template.", []string{"items"}, map[string]spec.Schema{
		"items": list(item, "Items are the templates."),
	})
	return definitions
}

// decisions is the schema of the decisions that explain returns.
func decisions() spec.Schema {
	effect := text("Decision is the effect on the VirtualMachine.")
	effect.Enum = []any{string(v1beta1.EffectAllow), string(v1beta1.EffectWarn), string(v1beta1.EffectDeny)}
	decision := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Required: []string{"decision"}, Properties: map[string]spec.Schema{
		"decision": effect,
		"kind":     text("Kind is the source of the decision: TemplateApproval, VirtualMachinePolicy or Rules; empty for other admission of the cluster."),
		"policy":   text("Policy is the name of the approval or policy, or the source of the rules."),
		"message":  text("Message describes the problem. It never contains the value of a sensitive parameter."),
		"field":    text("Field is the field of the VirtualMachine, or the parameter, that the decision is about."),
		"fix":      text("Fix describes how to solve the problem, if the policy specifies it."),
	}}}
	return list(decision, "Decisions are the decisions about the VirtualMachine if the caller created it, denials first. They are set if explain is true.")
}

// list is the schema of an atomic list.
func list(item spec.Schema, description string) spec.Schema {
	return property(spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &item}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-list-type": "atomic"}},
	}, description)
}

func property(schema spec.Schema, description string) spec.Schema {
	schema.Description = description
	return schema
}

func text(description string) spec.Schema {
	return property(spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}, description)
}

// anything is the schema of an object with fields that are described elsewhere.
func anything(description string) spec.Schema {
	return property(spec.Schema{
		SchemaProps:      spec.SchemaProps{Type: []string{"object"}},
		VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}},
	}, description)
}
