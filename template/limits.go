package template

// Limits on input, independent of its origin.
const (
	// MaxTemplateBytes is the largest size of a template's spec as JSON.
	MaxTemplateBytes = 512 << 10

	// MaxParameters is the maximum number of parameters that a template declares.
	MaxParameters = 256

	// MaxObjects is the maximum number of other objects of a template.
	MaxObjects = 32

	// MaxRenderedBytes is the largest size of a rendered VirtualMachine as JSON, of
	// all other rendered objects together, of a rendered message, and of all that
	// the generators of one template make.
	MaxRenderedBytes = 1 << 20

	// MaxDepth is the maximum nesting depth of lists and objects in a VirtualMachine or another object, which itself is level 1.
	MaxDepth = 64

	// MaxPatternSize is the maximum number of instructions that the patterns of all parameters of one template may compile
	// to, repetitions unrolled.
	MaxPatternSize = 10_000

	// MaxMatchedBytes is the largest value that is matched against a pattern.
	MaxMatchedBytes = 16 << 10

	// maxCauses is the maximum number of causes in one error. Further causes are counted.
	maxCauses = 256

	// maxShown is the number of bytes of an offending value that a cause shows.
	maxShown = 128
)
