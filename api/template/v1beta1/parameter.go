package v1beta1

// Parameter is one value that a VirtualMachineTemplate leaves open.
//
// +kubebuilder:validation:XValidation:rule="!has(self.generate) || has(self.from) || has(self.value)",message="generate needs from",fieldPath=".from",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.from) || has(self.generate)",message="from needs generate",fieldPath=".from"
// +kubebuilder:validation:XValidation:rule="!(has(self.minimum) || has(self.maximum)) || (has(self.type) && self.type == 'int')",message="minimum and maximum need type int",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",message="minimum must not be above maximum",fieldPath=".minimum"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'bool' || !(has(self.pattern) || has(self.enum) || has(self.generate))",message="type bool takes no pattern, enum or generate",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.multiline) || !self.multiline || !has(self.type) || self.type == 'string'",message="multiline needs type string",fieldPath=".type"
// +kubebuilder:validation:XValidation:rule="!has(self.enum) || !has(self.value) || size(self.value) == 0 || self.value in self.enum",message="value must be one of enum",fieldPath=".value"
type Parameter struct {
	// Name is what placeholders call the parameter: ${NAME} or ${{NAME}}.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_]+$`
	Name string `json:"name"`

	// DisplayName is shown by user interfaces in place of the name.
	//
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// Description tells people what the parameter is for.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// Value is the default. While it is there, nothing is generated.
	//
	// +optional
	Value string `json:"value,omitempty"`

	// Generate names the generator that makes a value when neither the person
	// nor the template gives one. The only generator is expression.
	//
	// +optional
	// +kubebuilder:validation:Enum=expression
	Generate string `json:"generate,omitempty"`

	// From is what the generator works from: text in which each expression of
	// the form [CHARACTERS]{LENGTH} is replaced by LENGTH random characters, 1 to
	// 255 of them. CHARACTERS are letters, digits, ranges of them such as a-z,
	// and the classes \w (letters, digits and underscore), \d (digits),
	// \a (letters and digits) and \A (the 32 ASCII punctuation characters).
	// For instance, vm-[a-z0-9]{5} makes vm-3kd9x.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`\[([a-zA-Z0-9\-\\]+)\](\{(\w+)\})`
	From string `json:"from,omitempty"`

	// Required refuses an empty value.
	//
	// +optional
	Required bool `json:"required,omitempty"`

	// Multiline allows values with line breaks (U+000A); it needs type string.
	// Every other control character is refused with it and without it, but for the
	// tab. This field is Stencil's own.
	//
	// +optional
	Multiline bool `json:"multiline,omitempty"`

	// Type is what values must be: string (the default, anything), int (a JSON
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

	// Sensitive keeps values of this parameter out of stored annotations,
	// refusals, events and logs. This field is Stencil's own.
	//
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
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

	// ParameterTypeInt is an integer as JSON writes it, of any size.
	ParameterTypeInt ParameterType = "int"

	// ParameterTypeBool is true or false.
	ParameterTypeBool ParameterType = "bool"

	// ParameterTypeBase64 is text in the standard base64 encoding of RFC 4648,
	// section 4, with padding.
	ParameterTypeBase64 ParameterType = "base64"
)
