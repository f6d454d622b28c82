package transfer

// Reasons of failures.
const (
	// ReasonUnreachableSource is a source that does not answer, or answers with an error.
	ReasonUnreachableSource = "UnreachableSource"
	// ReasonSourceDenied is a source that denies the credentials, or that must not be connected to.
	ReasonSourceDenied = "SourceDenied"
	// ReasonUnreachableTarget is a registry that does not answer, or answers with an error, when a package is written to it.
	ReasonUnreachableTarget = "UnreachableTarget"
	// ReasonTargetDenied is a registry that denies the credentials, or that must not be connected to.
	ReasonTargetDenied = "TargetDenied"
	// ReasonSourceChanged is a source that has another content than before.
	ReasonSourceChanged = "SourceChanged"
	// ReasonChecksumMismatch is a package whose digest is not the requested one.
	ReasonChecksumMismatch = "ChecksumMismatch"
	// ReasonManifestMismatch is a member of a package whose digest is not that of the manifest.
	ReasonManifestMismatch = "ManifestMismatch"
	// ReasonManifestMissing is a package without the manifest that Require needs.
	ReasonManifestMissing = "ManifestMissing"
	// ReasonNotAPackage is a source that is no package, or a malformed one.
	ReasonNotAPackage = "NotAPackage"
	// ReasonUnsupported is a package that is well formed, and not supported.
	ReasonUnsupported = "Unsupported"
	// ReasonLimitExceeded is a package that exceeds one of the Limits.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonVolumeTooSmall is a volume that has no room for its disk or package.
	ReasonVolumeTooSmall = "VolumeTooSmall"
	// ReasonNoSpace is a volume that is full.
	ReasonNoSpace = "NoSpace"
	// ReasonTimedOut is a transfer that took longer than Limits.Seconds.
	ReasonTimedOut = "TimedOut"
	// ReasonInvalidTask is a task that the mover cannot work on, or a mount that is missing.
	ReasonInvalidTask = "InvalidTask"
	// ReasonInterrupted is a mover that was ended.
	ReasonInterrupted = "Interrupted"
	// ReasonMoverFailed is a mover that ended without a report again and again. The manager reports it.
	ReasonMoverFailed = "MoverFailed"
	// ReasonInternal is any other error, such as one of a volume.
	ReasonInternal = "Internal"
)

// Error implements error.
func (f *Failure) Error() string { return f.Message }
