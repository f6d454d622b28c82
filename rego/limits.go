package rego

// Limits of a policy. Each limit has a test that a policy at it is accepted and one beyond it is rejected.
const (
	// MaxSourceBytes is the length of a policy's source.
	MaxSourceBytes = 64 << 10
	// MaxComprehensionDepth is how deeply comprehensions may be nested in each
	// other. The time to compile them is exponential in it.
	MaxComprehensionDepth = 5
	// MaxMessages is how many findings one evaluation returns, deny and warn
	// together; see Result.Truncated.
	MaxMessages = 64
	// MaxMessageBytes is the length of each text of a finding.
	MaxMessageBytes = 1 << 10
)
