package template

// Limits on what is accepted, whoever wrote it.
const (
	// MaxTemplateBytes is the largest size of a template's spec as JSON.
	MaxTemplateBytes = 512 << 10

	// MaxParameters is the largest number of parameters that a template declares.
	MaxParameters = 256

	// MaxRenderedBytes is the largest size of a rendered VirtualMachine as JSON,
	// of a rendered message, and of all that the generators of one template make.
	MaxRenderedBytes = 1 << 20

	// MaxDepth is how deep lists and objects may be nested in a VirtualMachine,
	// whose own object is level 1.
	MaxDepth = 64

	// MaxPatternSize is the largest number of instructions that the patterns of
	// all parameters of one template may compile to, repetitions unrolled.
	MaxPatternSize = 10_000

	// MaxMatchedBytes is the largest value that is matched against a pattern.
	MaxMatchedBytes = 16 << 10

	// maxCauses is how many causes one error holds. What exceeds it is counted.
	maxCauses = 256

	// maxShown is how many bytes of an offending value a cause shows.
	maxShown = 128
)
