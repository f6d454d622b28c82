package rego

import "time"

// Document is one request, in the form in which the caller gathers it for policies. Its JSON form is the document `input` of the policies.
//
// Maps hold JSON values as encoding/json decodes them into any; integers of type
// int64 and int are accepted too. Sensitive values must be masked already.
type Document struct {
	// Request is input.request.
	Request Request
	// Object is input.object, null on DELETE. Its metadata.managedFields do not
	// reach policies.
	Object map[string]any
	// OldObject is input.oldObject, null on CREATE.
	OldObject map[string]any
	// Namespace is input.namespace: the object's namespace.
	Namespace Namespace
	// Template is input.template: the template to which the VirtualMachine refers; null without one.
	Template *Template
	// Parameters is input.parameters: the values bound for this VirtualMachine.
	// Those of sensitive parameters are "***".
	Parameters map[string]string
	// Instancetype is input.instancetype: the VirtualMachineInstancetype or
	// VirtualMachineClusterInstancetype that the VirtualMachine uses, with kind,
	// metadata (name, labels, annotations) and spec; null without one.
	Instancetype map[string]any
	// Preference is input.preference, likewise.
	Preference map[string]any
	// Objects is input.objects: the objects that are created with a new VirtualMachine because its template has them; an empty list otherwise.
	Objects []map[string]any
}

// Request is input.request.
type Request struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// Kind is the kind of Object and OldObject.
	Kind string
	// RequestKind is the kind of the object in the request. It differs from Kind when the policies evaluate the VirtualMachine that results from that
	// object. Kind when empty.
	RequestKind string
	Namespace   string
	Name        string
	UserInfo    UserInfo
	DryRun      bool
	// Time is when the request was made; input.request.time is null when it is zero. Policies have no other time.
	Time time.Time
}

// UserInfo is input.request.userInfo: the requesting user.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// Namespace is input.namespace.
type Namespace struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// Template is input.template.
type Template struct {
	Namespace   string              `json:"namespace"`
	Name        string              `json:"name"`
	Labels      map[string]string   `json:"labels"`
	Annotations map[string]string   `json:"annotations"`
	Parameters  []TemplateParameter `json:"parameters"`
}

// TemplateParameter is one of input.template.parameters: a parameter as the
// template declares it.
type TemplateParameter struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	// Type is string, int, bool or base64; string when empty.
	Type      string `json:"type"`
	Required  bool   `json:"required"`
	Sensitive bool   `json:"sensitive"`
	// Value is the default; "***" when Sensitive.
	Value    string   `json:"value,omitempty"`
	Generate string   `json:"generate,omitempty"`
	Pattern  string   `json:"pattern,omitempty"`
	Enum     []string `json:"enum,omitempty"`
}
