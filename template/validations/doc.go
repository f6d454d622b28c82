// Package validations reads and evaluates the rules that OpenShift's templates contain for their VMs: an annotation with a
// JSON array of
//
//	{"name": "least-memory", "rule": "integer", "path": "jsonpath::.spec.domain.memory.guest",
//	 "min": 1073741824, "message": "it needs 1 GiB", "valid": "jsonpath::.spec.domain.memory", "justWarning": true}
//
// The rule is one of integer (min, max), string (minLength, maxLength), enum (values) and regex (regex, which may match
// anywhere). Paths begin at the spec.template of a VirtualMachine, and may find several values, all of which must satisfy
// the rule. A path that finds nothing does not satisfy it, unless valid finds nothing either: this restricts a rule to VMs
// with that field. min and max may be paths themselves. Quantities such as 2Gi are integers.
//
// The package is pure. Annotations are hostile input, so their size is limited, and problems are reported with their row and
// column.
package validations

// Annotations.
const (
	// Annotation holds the rules of a VirtualMachine.
	Annotation = "vm.kubevirt.io/validations"

	// AnnotationSkip, with any value but "false", leaves out a VirtualMachine's rules.
	AnnotationSkip = "vm.kubevirt.io/skip-validations"

	// AnnotationTemplate holds the rules of a template.
	AnnotationTemplate = "validations"
)

// Limits of what is read.
const (
	// MaxBytes is the largest annotation.
	MaxBytes = 128 << 10

	// MaxRules is the largest number of rules.
	MaxRules = 256

	// maxRegex is the longest regular expression, in bytes.
	maxRegex = 1024

	// maxFound is the maximum number of values that a path finds.
	maxFound = 1024

	// maxProblems is the maximum number of reported problems.
	maxProblems = 64
)
