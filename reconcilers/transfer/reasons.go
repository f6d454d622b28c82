package transfer

// Reasons of the conditions of imports and exports, besides those of movers.
const (
	// ReasonNameTaken is an object that exists already.
	ReasonNameTaken = "NameTaken"
	// ReasonWaitingForUser is an import that needs a decision.
	ReasonWaitingForUser = "WaitingForUser"
	// ReasonQueued is a transfer that begins when others have ended.
	ReasonQueued = "Queued"
	// ReasonDiskLost is a volume that was deleted while the transfer needed it.
	ReasonDiskLost = "DiskLost"
	// ReasonTemplateUnusable is a template that cannot be exported.
	ReasonTemplateUnusable = "TemplateUnusable"
	// ReasonNotPermitted is a transfer whose user may not do it any more.
	ReasonNotPermitted = "NotPermitted"
	// ReasonSourceDenied is a disk in a namespace that the export does not name.
	ReasonSourceDenied = "SourceDenied"
	// ReasonExpired is an export whose package was deleted.
	ReasonExpired = "Expired"
)
