package ovf

// Limits of descriptors, independent of their origin.
const (
	// MaxDescriptorBytes is the largest size of a descriptor.
	MaxDescriptorBytes = 4 << 20

	// MaxDepth is the maximum nesting depth of elements; the Envelope is level 1.
	MaxDepth = 32

	// MaxElements is the maximum number of elements of a descriptor.
	MaxElements = 50_000

	// MaxAttributes is the maximum number of attributes of one element.
	MaxAttributes = 64

	// MaxFiles is the maximum number of referenced files.
	MaxFiles = 1024

	// MaxDisks is the maximum number of disks.
	MaxDisks = 256

	// MaxSystems is the maximum number of virtual systems.
	MaxSystems = 64

	// MaxItems is the maximum number of items of one virtual hardware section, in all configurations.
	MaxItems = 1024

	// MaxProperties is the maximum number of properties of one virtual system, those of its collections included.
	MaxProperties = 512

	// MaxChunks is the maximum number of parts of one referenced file.
	MaxChunks = 10_000

	// MaxAnnotationBytes is the largest size of the annotation of a virtual system, those of its collections included.
	MaxAnnotationBytes = 64 << 10

	// MaxWarnings is the maximum number of warnings. Further ones are left out.
	MaxWarnings = 256

	// maxShown is the number of bytes of an offending value in a message.
	maxShown = 64
)
