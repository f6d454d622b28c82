package capture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
)

// Times after which a request is reconciled again without an event.
const (
	longestWait = 30 * time.Second
	// shortestWait is for changes that cause no event here.
	shortestWait = time.Second
)

// maximumFew is the maximum number of names in a message.
const maximumFew = 3

// step is what an action does.
type step string

const (
	// doNothing waits for an event.
	doNothing step = "nothing"
	// wait writes the conditions and waits.
	wait step = "wait"
	// fail ends the request; the objects that it created are deleted afterwards.
	fail step = "fail"
	// finish ends the request with its template.
	finish step = "finish"

	addFinalizer      step = "add the finalizer"
	removeFinalizer   step = "remove the finalizer"
	createSnapshot    step = "create the snapshot"
	recordSnapshot    step = "record the snapshot"
	createDataVolumes step = "create DataVolumes"
	createTemplate    step = "create the template"
	linkRequest       step = "have the template own the request"
	unlinkRequest     step = "have the template own the request no more"
	handOver          step = "hand the DataVolumes over to the template"
	deleteSnapshot    step = "delete the snapshot"
	releaseTemplate   step = "have the request own the template no more"
	deleteTemplate    step = "delete the template"
	deleteDataVolumes step = "delete DataVolumes"
	deleteRequest     step = "delete the request"
)

// action is the next action.
type action struct {
	step step
	// reason and message are for the conditions; if empty, the conditions do not change.
	reason, message string
	// again is the maximum time until the next reconciliation. Zero means at once, or never after doNothing and deleteRequest.
	again time.Duration
}

// check is one line of the checklist: it returns the action that is due, or nil if the line is done.
type check func(*state) *action

// decide returns the next action.
func decide(s *state) action {
	var list []check
	switch {
	case s.request.DeletionTimestamp != nil:
		list = []check{checkFinalizer, ensureNoLink, ensureNoTemplate, ensureNoDataVolumes, ensureNoSnapshot, ensureNoFinalizer}
	case s.ended() && s.ready():
		list = []check{ensureNoSnapshot, ensureNoFinalizer, checkExpiry}
	case s.ended():
		list = []check{checkFinalizer, ensureNoLink, ensureNoTemplate, ensureNoDataVolumes, ensureNoSnapshot, ensureNoFinalizer}
	default:
		list = []check{
			checkDeadline, ensureFinalizer, checkAPIsServed, checkTemplateOwner,
			ensureRequestLinked, checkDisksExist, ensureHandOver, ensureSnapshotDeleted, ensureTemplateReleased, ensureFinished,
			ensureSnapshot, ensureSnapshotRecorded, checkSnapshotReady, checkContent, ensureDataVolumes, checkDataVolumesReady, ensureTemplate,
		}
	}
	for _, line := range list {
		if next := line(s); next != nil {
			return *next
		}
	}
	return action{step: doNothing}
}

func failure(reason, format string, arguments ...any) *action {
	return &action{step: fail, reason: reason, message: fmt.Sprintf(format, arguments...)}
}

func progress(next step, reason, format string, arguments ...any) *action {
	return &action{step: next, reason: reason, message: fmt.Sprintf(format, arguments...)}
}

func waiting(s *state, reason, format string, arguments ...any) *action {
	return &action{step: wait, reason: reason, message: fmt.Sprintf(format, arguments...), again: max(min(longestWait, s.deadline().Sub(s.now)), shortestWait)}
}

// Checks of every request in progress.

func checkDeadline(s *state) *action {
	if s.now.Before(s.deadline()) {
		return nil
	}
	last := ""
	for _, condition := range s.request.Status.Conditions {
		if condition.Type == v1beta1.ConditionProgressing && condition.Message != "" {
			last = "; the last that was known: " + condition.Message
		}
	}
	return failure(v1beta1.ReasonTimeout, "not finished within %s%s", s.deadline().Sub(s.request.CreationTimestamp.Time), last)
}

func ensureFinalizer(s *state) *action {
	if slices.Contains(s.request.Finalizers, v1beta1.FinalizerSnapshotCleanup) {
		return nil
	}
	return progress(addFinalizer, v1beta1.ReasonStarting, "the request was accepted")
}

func checkAPIsServed(s *state) *action {
	if s.unknown == "" {
		return nil
	}
	return waiting(s, v1beta1.ReasonWaitingForAPI, "waiting until the API server serves %s", s.unknown)
}

func checkTemplateOwner(s *state) *action {
	name := templateName(s.request)
	switch {
	case s.template == nil && s.link() != nil, (s.underConstruction() || s.linked()) && s.template.DeletionTimestamp != nil:
		return failure(v1beta1.ReasonTemplateDeleted, "VirtualMachineTemplate %s was deleted before the request was finished", name)
	case s.template != nil && !s.underConstruction() && !s.linked():
		return failure(v1beta1.ReasonTemplateExists, "VirtualMachineTemplate %s exists, and this request has not made it; choose another spec.templateName, or delete the template", name)
	}
	return nil
}

// Checks after the template was created: it receives ownership of the disks and the request.

func ensureRequestLinked(s *state) *action {
	if s.template == nil || s.linked() {
		return nil
	}
	return progress(linkRequest, v1beta1.ReasonFinishing, "VirtualMachineTemplate %s was created", s.template.Name)
}

func checkDisksExist(s *state) *action {
	if s.template == nil {
		return nil
	}
	for _, each := range s.disks {
		if each.copy == nil || each.copy.DeletionTimestamp != nil {
			return failure(v1beta1.ReasonDataVolumeFailed, "DataVolume %s, a disk of the template, was deleted", each.name)
		}
	}
	return nil
}

func ensureHandOver(s *state) *action {
	if s.template == nil || len(s.owned) == 0 {
		return nil
	}
	return progress(handOver, v1beta1.ReasonFinishing, "the disks are handed over to VirtualMachineTemplate %s", s.template.Name)
}

func ensureSnapshotDeleted(s *state) *action {
	if s.template == nil {
		return nil
	}
	return ensureNoSnapshot(s)
}

func ensureTemplateReleased(s *state) *action {
	if !s.underConstruction() {
		return nil
	}
	return &action{step: releaseTemplate}
}

func ensureFinished(s *state) *action {
	if s.template == nil {
		return nil
	}
	return &action{step: finish}
}

// Checks until the template is created.

func ensureSnapshot(s *state) *action {
	source := s.request.Spec.VirtualMachineRef
	recorded := s.request.Status.SnapshotRef
	switch {
	case s.snapshot != nil && recorded != nil && s.snapshot.UID != recorded.UID,
		s.snapshot == nil && recorded != nil:
		return failure(v1beta1.ReasonSnapshotLost, "VirtualMachineSnapshot %s/%s was deleted before it had served", recorded.Namespace, recorded.Name)
	case s.snapshot != nil && !s.ownsSnapshot():
		return failure(v1beta1.ReasonNameTaken, "VirtualMachineSnapshot %s/%s exists, and was not taken for this request", source.Namespace, s.snapshot.Name)
	case s.snapshot != nil:
		return nil
	case s.vm == nil:
		return waitingForVM(s)
	case s.vm.DeletionTimestamp != nil:
		return failure(v1beta1.ReasonVirtualMachineNotFound, "VirtualMachine %s/%s is being deleted", source.Namespace, source.Name)
	}
	return progress(createSnapshot, v1beta1.ReasonStarting, "taking a snapshot of VirtualMachine %s/%s", source.Namespace, source.Name)
}

// waitingForVM waits for a VirtualMachine that does not exist. No event announces it, so the interval grows with the age of the request.
func waitingForVM(s *state) *action {
	source := s.request.Spec.VirtualMachineRef
	next := waiting(s, v1beta1.ReasonWaitingForVirtualMachine, "VirtualMachine %s/%s does not exist; waiting for it until %s",
		source.Namespace, source.Name, s.deadline().UTC().Format(time.RFC3339))
	next.again = max(min(next.again, s.now.Sub(s.request.CreationTimestamp.Time)/4), shortestWait)
	return next
}

func ensureSnapshotRecorded(s *state) *action {
	if s.request.Status.SnapshotRef != nil {
		return nil
	}
	return progress(recordSnapshot, v1beta1.ReasonWaitingForSnapshot, "%s", snapshotMessage(s))
}

func snapshotMessage(s *state) string {
	message := fmt.Sprintf("waiting for VirtualMachineSnapshot %s/%s", s.request.Spec.VirtualMachineRef.Namespace, s.snapshot.Name)
	if s.snapshot.Status.Phase != "" {
		message += ": " + s.snapshot.Status.Phase
	}
	if trouble := s.snapshot.trouble(); trouble != "" {
		message += ": " + trouble
	}
	return message
}

func checkSnapshotReady(s *state) *action {
	name := s.request.Spec.VirtualMachineRef.Namespace + "/" + s.snapshot.Name
	switch {
	case s.snapshot.DeletionTimestamp != nil:
		return failure(v1beta1.ReasonSnapshotLost, "VirtualMachineSnapshot %s was deleted before it had served", name)
	case s.snapshot.Status.Phase == "Failed":
		trouble := s.snapshot.trouble()
		if trouble == "" {
			trouble = "KubeVirt gives no cause"
		}
		return failure(v1beta1.ReasonSnapshotFailed, "VirtualMachineSnapshot %s failed: %s", name, trouble)
	case !s.snapshot.taken() && s.vm == nil:
		// KubeVirt would wait for the VM until the deadline. Once the snapshot has begun, KubeVirt protects the VM from deletion.
		source := s.request.Spec.VirtualMachineRef
		return failure(v1beta1.ReasonVirtualMachineNotFound, "VirtualMachine %s/%s was deleted before its snapshot was taken", source.Namespace, source.Name)
	case len(s.lost) > 0:
		return failure(v1beta1.ReasonSnapshotLost, "VirtualMachineSnapshot %s lost VolumeSnapshots before it had served: %s", name, excerpt.Sentences(s.lost, maximumFew))
	case !s.snapshot.Status.ReadyToUse || s.snapshot.Status.Content == "":
		return waiting(s, v1beta1.ReasonWaitingForSnapshot, "%s", snapshotMessage(s))
	}
	return nil
}

func checkContent(s *state) *action {
	name := s.request.Spec.VirtualMachineRef.Namespace + "/" + s.snapshot.Status.Content
	switch {
	case s.content == nil || s.content.DeletionTimestamp != nil:
		return failure(v1beta1.ReasonSnapshotLost, "VirtualMachineSnapshotContent %s was deleted before it had served", name)
	case s.content.Spec.Source.VirtualMachine == nil:
		return failure(v1beta1.ReasonSnapshotFailed, "VirtualMachineSnapshotContent %s holds no VirtualMachine", name)
	}
	return nil
}

func ensureDataVolumes(s *state) *action {
	var missing []string
	for _, each := range s.disks {
		switch {
		case each.copy == nil:
			missing = append(missing, each.name)
		case !ownedBy(each.copy, s.uid()):
			return failure(v1beta1.ReasonNameTaken, "DataVolume %s exists, and was not made for this request", each.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return progress(createDataVolumes, v1beta1.ReasonWaitingForDataVolumes, "copying %d disks: %s", len(s.disks), excerpt.Sentences(missing, maximumFew))
}

func checkDataVolumesReady(s *state) *action {
	var open []string
	for _, each := range s.disks {
		switch phase := each.copy.Status.Phase; {
		case each.copy.DeletionTimestamp != nil:
			open = append(open, each.name+" is being deleted, and will be made anew")
		case phase == "Succeeded":
		case phase == "Failed":
			trouble := each.copy.trouble()
			if trouble == "" {
				trouble = "CDI gives no cause"
			}
			return failure(v1beta1.ReasonDataVolumeFailed, "DataVolume %s failed: %s", each.name, trouble)
		default:
			open = append(open, strings.TrimRight(strings.Join([]string{each.name, phase, reportedProgress(each.copy.Status.Progress), each.copy.trouble()}, " "), " "))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return waiting(s, v1beta1.ReasonWaitingForDataVolumes, "%d of %d disks are copied, waiting for %s", len(s.disks)-len(open), len(s.disks), excerpt.Sentences(open, maximumFew))
}

// reportedProgress returns the progress, or an empty string if CDI reports none.
func reportedProgress(progress string) string {
	if progress == "N/A" {
		return ""
	}
	return progress
}

func ensureTemplate(s *state) *action {
	return progress(createTemplate, v1beta1.ReasonFinishing, "making VirtualMachineTemplate %s", templateName(s.request))
}

// Cleanup after a request that has ended or is being deleted.

// checkFinalizer stops if the request has created nothing, or its cleanup is done.
func checkFinalizer(s *state) *action {
	if slices.Contains(s.request.Finalizers, v1beta1.FinalizerSnapshotCleanup) {
		return nil
	}
	return &action{step: doNothing}
}

// ensureNoLink removes the owner reference to the template, so that a failed request is not deleted with the template.
func ensureNoLink(s *state) *action {
	if s.link() == nil || s.template != nil && !s.underConstruction() || s.ended() && s.ready() {
		return nil
	}
	return &action{step: unlinkRequest}
}

func ensureNoTemplate(s *state) *action {
	if !s.underConstruction() || s.template.DeletionTimestamp != nil {
		return nil
	}
	return &action{step: deleteTemplate}
}

func ensureNoDataVolumes(s *state) *action {
	if !slices.ContainsFunc(s.owned, func(each metav1.PartialObjectMetadata) bool { return each.DeletionTimestamp == nil }) {
		return nil
	}
	return &action{step: deleteDataVolumes}
}

func ensureNoSnapshot(s *state) *action {
	if !s.ownsSnapshot() || s.snapshot.DeletionTimestamp != nil {
		return nil
	}
	return &action{step: deleteSnapshot}
}

func ensureNoFinalizer(s *state) *action {
	if !slices.Contains(s.request.Finalizers, v1beta1.FinalizerSnapshotCleanup) {
		return nil
	}
	return &action{step: removeFinalizer}
}

func checkExpiry(s *state) *action {
	seconds := s.request.Spec.TTLSecondsAfterFinished
	if seconds == nil {
		return nil
	}
	for _, condition := range s.request.Status.Conditions {
		if condition.Type != v1beta1.ConditionProgressing {
			continue
		}
		if left := condition.LastTransitionTime.Add(time.Duration(*seconds) * time.Second).Sub(s.now); left > 0 {
			return &action{step: doNothing, again: left}
		}
		return &action{step: deleteRequest}
	}
	return nil
}
