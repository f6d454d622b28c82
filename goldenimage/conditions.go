package goldenimage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Reasons of conditions.
const (
	ReasonLatest        = "Latest"
	ReasonPinned        = "Pinned"
	ReasonSuspended     = "Suspended"
	ReasonProvided      = "Provided"
	ReasonConflict      = "Conflict"
	ReasonNoConflict    = "NoConflict"
	ReasonNotChecked    = "NotChecked"
	ReasonCheckFailed   = "CheckFailed"
	ReasonInvalid       = "InvalidSpec"
	ReasonImporting     = "Importing"
	ReasonImportFailed  = "ImportFailed"
	ReasonImported      = "Imported"
	ReasonStale         = "Stale"
	ReasonChannel       = "ChannelNotImported"
	ReasonTest          = "ChannelTestFailed"
	ReasonSigned        = "Signed"
	ReasonNotSigned     = "NotSigned"
	ReasonNotVerified   = "NotVerified"
	ReasonDigest        = "DigestUnknown"
	ReasonAdopted       = "Adopted"
	ReasonMade          = "Made"
	ReasonWriteFailed   = "WriteFailed"
	ReasonNotEnabled    = "NamespaceNotEnabled"
	ReasonCDINotServed  = "CDINotInstalled"
	maximumPartsOfNotes = 3
	// conflictInterval is the delay until it is checked again whether an object of another owner exists.
	conflictInterval = time.Minute
)

// Set sets a condition of a status, and keeps the time of its last transition while its status is the same.
func Set(status *v1alpha1.GoldenImageStatus, generation int64, kind string, value metav1.ConditionStatus, reason, message string, now metav1.Time) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: now,
	})
}

func (d *decision) set(kind string, value metav1.ConditionStatus, reason, message string) {
	Set(&d.plan.Status, d.image.Generation, kind, value, reason, message, metav1.NewTime(d.Now))
}

// stored returns the reason of a condition that is stored.
func (d *decision) stored(kind string) string {
	if condition := meta.FindStatusCondition(d.image.Status.Conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}

func (d *decision) conditions() {
	if len(d.conflicts) > 0 {
		if d.stored(v1alpha1.ConditionConflict) != ReasonConflict {
			d.event(true, EventConflict, "%s", list(d.conflicts))
		}
		d.set(v1alpha1.ConditionConflict, metav1.ConditionTrue, ReasonConflict, list(d.conflicts))
	} else {
		d.set(v1alpha1.ConditionConflict, metav1.ConditionFalse, ReasonNoConflict, "No object of a needed name belongs to somebody else")
	}
	switch {
	case len(d.adopted) > 0:
		d.set(v1alpha1.ConditionAdopted, metav1.ConditionTrue, ReasonAdopted, "Taken over: DataSource "+list(d.adopted))
	case len(d.provided) > 0:
		d.set(v1alpha1.ConditionAdopted, metav1.ConditionFalse, ReasonProvided, list(d.provided))
	default:
		d.set(v1alpha1.ConditionAdopted, metav1.ConditionFalse, ReasonMade, "No DataSource existed before")
	}
	if len(d.conflicts)+len(d.provided) > 0 {
		// Not all of these objects are watched.
		d.again(d.Now.Add(conflictInterval))
	}
	d.importing()
	d.conditionVerified()
	value, reason, message := d.upToDate()
	if reason == ReasonStale && d.stored(v1alpha1.ConditionUpToDate) != ReasonStale {
		d.event(true, EventStale, "%s", message)
	}
	d.set(v1alpha1.ConditionUpToDate, value, reason, message)
}

// importing sets the condition Importing.
func (d *decision) importing() {
	var running, failed []string
	for _, a := range d.arches {
		if a.cron == nil && a.volume == "" && a.problem == "" || a.desired == "" || a.Current != nil && a.Current.Digest == a.desired || d.image.Spec.Suspended {
			continue
		}
		if a.problem != "" {
			failed = append(failed, fmt.Sprintf("%s into %s: %s", a.desired, volumeName(a.DataSource, a.desired), a.problem))
			continue
		}
		running = append(running, fmt.Sprintf("%s into %s: %s", a.desired, volumeName(a.DataSource, a.desired), cmp.Or(a.Progress, "waiting for CDI")))
	}
	switch {
	case len(failed) > 0:
		if d.stored(v1alpha1.ConditionImporting) != ReasonImportFailed {
			d.event(true, EventImport, "%s", list(failed))
		}
		d.set(v1alpha1.ConditionImporting, metav1.ConditionTrue, ReasonImportFailed, list(append(failed, running...)))
	case len(running) > 0:
		d.set(v1alpha1.ConditionImporting, metav1.ConditionTrue, ReasonImporting, list(running))
	default:
		d.set(v1alpha1.ConditionImporting, metav1.ConditionFalse, ReasonImported, "No import is going on")
	}
}

// upToDate returns the condition UpToDate.
func (d *decision) upToDate() (metav1.ConditionStatus, string, string) {
	status := &d.plan.Status
	switch {
	case len(d.conflicts) > 0:
		return metav1.ConditionFalse, ReasonConflict, list(d.conflicts)
	case status.NextCheckTime == nil && !d.image.Spec.Suspended && len(d.problems) > 0:
		return metav1.ConditionFalse, ReasonInvalid, list(d.problems)
	case len(d.provided) > 0:
		return metav1.ConditionUnknown, ReasonProvided, list(d.provided)
	}
	if signed := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionVerified); signed != nil && signed.Reason == ReasonNotSigned {
		return metav1.ConditionFalse, ReasonNotSigned, signed.Message
	}
	var current []string
	for _, a := range d.arches {
		stale := a.Current != nil && d.stale(a)
		switch {
		case a.Current == nil && a.desired == "" && status.CheckError != "":
			return metav1.ConditionFalse, ReasonCheckFailed, status.CheckError
		case d.image.Spec.Suspended:
		case a.desired == "" && status.CheckError != "":
			return metav1.ConditionUnknown, ReasonCheckFailed, status.CheckError
		case a.unknown != "":
			return metav1.ConditionFalse, ReasonDigest, a.unknown
		case a.desired == "":
			return metav1.ConditionUnknown, ReasonNotChecked, "The source was not checked yet"
		case a.Current == nil || a.Current.Digest != a.desired:
			if a.problem != "" {
				return metav1.ConditionFalse, ReasonImportFailed, a.problem
			}
			return metav1.ConditionFalse, ReasonImporting, fmt.Sprintf("%s is being imported for DataSource %s", a.desired, a.DataSource)
		}
		if a.Current == nil {
			continue
		}
		if stale {
			return metav1.ConditionFalse, ReasonStale, fmt.Sprintf("DataSource %s stands for %s%s, which was imported at %s, and spec.staleAfter is %s",
				a.DataSource, a.Current.Digest, ofTag(a.Current.Tag), a.Current.ImportedAt.UTC().Format("2006-01-02 15:04 MST"), d.image.Spec.StaleAfter.Duration)
		}
		current = append(current, fmt.Sprintf("DataSource %s stands for %s%s", a.DataSource, a.Current.Digest, ofTag(a.Current.Tag)))
	}
	switch {
	case d.image.Spec.Suspended:
		return metav1.ConditionUnknown, ReasonSuspended, strings.Join(append([]string{"spec.suspended stops checks"}, current...), "; ")
	case len(d.problems) > 0:
		return metav1.ConditionFalse, ReasonChannel, list(d.problems)
	case len(d.failed) > 0:
		return metav1.ConditionFalse, ReasonTest, list(d.failed)
	case d.image.Spec.Digest != "":
		return metav1.ConditionTrue, ReasonPinned, list(current)
	case status.CheckError != "":
		return metav1.ConditionUnknown, ReasonCheckFailed, status.CheckError
	}
	return metav1.ConditionTrue, ReasonLatest, list(current)
}

// stale reports whether the image of an architecture is stale, and wakes at the time at which it will be.
func (d *decision) stale(a *architecture) bool {
	limit := d.image.Spec.StaleAfter
	if limit == nil {
		return false
	}
	at := a.Current.ImportedAt.Add(limit.Duration)
	if at.After(d.Now) {
		d.again(at)
		return false
	}
	return true
}

func list(parts []string) string {
	more := len(parts) - maximumPartsOfNotes
	if more <= 0 {
		return strings.Join(parts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(parts[:maximumPartsOfNotes], "; "), more)
}

// Failed returns the status after an action failed: what was known before, with the result of the check.
func Failed(image *v1alpha1.GoldenImage, plan Plan, err error, now metav1.Time) v1alpha1.GoldenImageStatus {
	status := *image.Status.DeepCopy()
	p := plan.Status
	status.CheckedSource, status.Refreshed, status.LastCheckTime, status.NextCheckTime = p.CheckedSource, p.Refreshed, p.LastCheckTime, p.NextCheckTime
	status.CheckFailures, status.CheckError, status.DataSource, status.ObservedGeneration = p.CheckFailures, p.CheckError, p.DataSource, p.ObservedGeneration
	status.Architectures = p.Architectures
	for i := range status.Architectures {
		status.Architectures[i].Current = nil
		for _, before := range image.Status.Architectures {
			if before.Name == status.Architectures[i].Name {
				status.Architectures[i].Current = before.Current
			}
		}
	}
	Set(&status, image.Generation, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, ReasonWriteFailed, err.Error(), now)
	return status
}
