package v1beta1

// Parameter is a parameter of a VirtualMachineTemplate.
//
// +kubebuilder:validation:XValidation:rule="!has(self.generate) || has(self.from) || has(self.value)",message="generate needs from",fieldPath=".from",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!(has(self.minimum) || has(self.maximum)) || (has(self.type) && self.type == 'int')",message="minimum and maximum need type int",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",message="minimum must not be above maximum",fieldPath=".minimum"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'bool' || !(has(self.pattern) || has(self.enum) || has(self.generate))",message="type bool takes no pattern, enum or generate",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.multiline) || !self.multiline || !has(self.type) || self.type == 'string'",message="multiline needs type string",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.mutable) || !self.mutable || !has(self.generate)",message="a mutable parameter takes no generate",fieldPath=".mutable"
// +kubebuilder:validation:XValidation:rule="!has(self.mutable) || !self.mutable || !has(self.sensitive) || !self.sensitive",message="a mutable parameter must not be sensitive: its value is stored with the VirtualMachine",fieldPath=".mutable"
// +kubebuilder:validation:XValidation:rule="!has(self.enum) || !has(self.value) || size(self.value) == 0 || self.value in self.enum",message="value must be one of enum",fieldPath=".value"
type Parameter struct {
	// Name is the name of the parameter in placeholders: ${NAME} or ${{NAME}}.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// DisplayName is shown by user interfaces in place of the name.
	//
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Description describes the purpose of the parameter.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// Value is the default. If it is set, no value is generated.
	//
	// +optional
	Value string `json:"value,omitempty"`

	// Generate is the generator that creates a value if neither the user nor the
	// template sets one. The only generator is expression.
	//
	// +optional
	// +kubebuilder:validation:Enum=expression
	Generate string `json:"generate,omitempty"`

	// From is the input of the generator: text in which each expression of the
	// form [CHARACTERS]{LENGTH} is replaced by LENGTH random characters, 1 to 255
	// of them. CHARACTERS are letters, digits, ranges of them such as a-z, and
	// the classes \w (letters, digits and underscore), \d (digits), \a (letters
	// and digits) and \A (the 32 ASCII punctuation characters). For instance,
	// vm-[a-z0-9]{5} makes vm-3kd9x.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`\[([a-zA-Z0-9\-\\]+)\](\{(\w+)\})`
	From string `json:"from,omitempty"`

	// Required rejects an empty value.
	//
	// +optional
	Required bool `json:"required,omitempty"`

	// Multiline allows values with line breaks (U+000A); it needs type string. All
	// other control characters except the tab are always rejected. This field is
	// Stencil's own.
	//
	// +optional
	Multiline bool `json:"multiline,omitempty"`

	// Type is the type of values: string (the default, any text), int (a JSON
	// integer of any size), bool (true or false) or base64 (standard encoding
	// with padding). This field is Stencil's own.
	//
	// +optional
	Type ParameterType `json:"type,omitempty"`

	// Pattern is a regular expression (RE2) that the whole value must match. This
	// field is Stencil's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Pattern string `json:"pattern,omitempty"`

	// Enum lists the values that are allowed. This field is Stencil's own.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Enum []string `json:"enum,omitempty"`

	// Minimum is the lowest value that is allowed; it needs type int. This field
	// is Stencil's own.
	//
	// +optional
	Minimum *int64 `json:"minimum,omitempty"`

	// Maximum is the highest value that is allowed; it needs type int. This
	// field is Stencil's own.
	//
	// +optional
	Maximum *int64 `json:"maximum,omitempty"`

	// Sensitive excludes values of this parameter from stored annotations, denials,
	// events and logs. This field is Stencil's own.
	//
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`

	// Mutable allows users of the template to change the value on a stored
	// VirtualMachine: the fields that depend on the parameter are then rendered
	// again. Such a parameter has no generator, is not sensitive, and determines
	// neither the name, the run strategy, the disks and the names of list items of
	// the VirtualMachine nor other objects. This field is Stencil's own.
	//
	// +optional
	Mutable bool `json:"mutable,omitempty"`
}

// GeneratorExpression is the generator that replaces expressions such as
// [a-z]{5} by random characters.
const GeneratorExpression = "expression"

// ParameterType is the type of a parameter's values.
//
// +kubebuilder:validation:Enum=string;int;bool;base64
type ParameterType string

const (
	// ParameterTypeString is any text. It is the type of a parameter that
	// declares none.
	ParameterTypeString ParameterType = "string"

	// ParameterTypeInt is an integer in JSON syntax, of any size.
	ParameterTypeInt ParameterType = "int"

	// ParameterTypeBool is true or false.
	ParameterTypeBool ParameterType = "bool"

	// ParameterTypeBase64 is text in the standard base64 encoding of RFC 4648,
	// section 4, with padding.
	ParameterTypeBase64 ParameterType = "base64"
)
