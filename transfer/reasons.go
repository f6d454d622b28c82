package transfer

// Reasons of failures: one word in camel case, which become reasons of conditions.
const (
	// ReasonMoverFailed is a mover that ended without a report again and again.
	ReasonMoverFailed = "MoverFailed"
	// ReasonNotAPackage is a source that is no package, or a malformed one.
	ReasonNotAPackage = "NotAPackage"
	// ReasonLimitExceeded is a package that exceeds a limit.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonTimedOut is a transfer that did not finish in time.
	ReasonTimedOut = "TimedOut"
)
