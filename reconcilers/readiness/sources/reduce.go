package sources

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/internal/excerpt"
)

// Object is the reduced form of an object. Equal values have the same meaning.
type Object struct {
	UID types.UID
	// Deleting is set when the object is being deleted.
	Deleting bool
	// Ready is set if the object by itself can be used.
	Ready bool
	// ReadyReported is set if Ready is reported by a controller: by CDI for DataSources.
	ReadyReported bool
	// Importing is set while it is being filled; Progress is the completed part, rounded down to tens of percent.
	Importing bool
	Progress  string
	// Reason and Message are why it cannot be used.
	Reason, Message string
	// To is the source in the status of a DataSource, or in its spec if the status has none; Spec is the one in its spec.
	To, Spec Key
	// Image is what the annotations of a DataSource report.
	Image Image
}

// maximumMessage is the maximum length of a stored message, in bytes.
const maximumMessage = 512

func truncate(message string) string { return excerpt.Of(message, maximumMessage) }

func text(object map[string]any, path ...string) string {
	found, _, _ := unstructured.NestedString(object, path...)
	return found
}

// condition returns the condition of this type in the status; nil if there is none.
func condition(object *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		if one, is := item.(map[string]any); is && one["type"] == kind {
			return one
		}
	}
	return nil
}

func reduceClaim(object *unstructured.Unstructured) Object {
	phase := text(object.Object, "status", "phase")
	if phase == "" {
		phase = "Pending"
	}
	if phase == "Bound" {
		return Object{Ready: true}
	}
	return Object{Reason: phase, Message: "it is " + phase + " and not Bound"}
}

func reduceSnapshot(object *unstructured.Unstructured) Object {
	if ready, _, _ := unstructured.NestedBool(object.Object, "status", "readyToUse"); ready {
		return Object{Ready: true}
	}
	if problem := text(object.Object, "status", "error", "message"); problem != "" {
		return Object{Reason: "Failed", Message: truncate(problem)}
	}
	return Object{Reason: "NotReadyToUse", Message: "it is not ready to use yet"}
}

// reduceDataVolume reads the phase, and the message of a worker that fails repeatedly.
func reduceDataVolume(object *unstructured.Unstructured) Object {
	phase := text(object.Object, "status", "phase")
	running := condition(object, "Running")
	switch {
	case phase == "Succeeded":
		return Object{Ready: true}
	case phase == "Failed", running["status"] == "False" && running["reason"] == "Error":
		reason, message := "Failed", "it failed"
		if running["reason"] == "Error" {
			reason, message = "Error", text(running, "message")
		}
		return Object{Reason: reason, Message: truncate(message)}
	case strings.HasSuffix(phase, "InProgress"), strings.HasSuffix(phase, "Scheduled"):
		return Object{Importing: true, Progress: tens(text(object.Object, "status", "progress")), Reason: phase}
	case phase == "":
		phase = "Pending"
	}
	return Object{Reason: phase, Message: "its phase is " + phase}
}

// tens rounds a progress such as 37.52% down to tens: otherwise each change would be written to every template.
func tens(progress string) string {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(progress, "%"), 64)
	if err != nil || percent < 0 || percent > 100 {
		return ""
	}
	return fmt.Sprintf("%d%%", int(percent)/10*10)
}

func reduceDataSource(object *unstructured.Unstructured) Object {
	spec, status := target(object, "spec"), target(object, "status")
	reduced := Object{To: status, Spec: spec, Image: imageOf(object)}
	if status == (Key{}) {
		reduced.To = spec
	}
	if ready := condition(object, "Ready"); ready != nil {
		reduced.ReadyReported, reduced.Ready = true, ready["status"] == "True"
		if !reduced.Ready {
			reduced.Reason, reduced.Message = text(ready, "reason"), truncate(text(ready, "message"))
		}
	}
	return reduced
}

// target returns the key of the source in a field of a DataSource; the zero key if there is none.
func target(object *unstructured.Unstructured, field string) Key {
	for name, kind := range map[string]Kind{"pvc": Claim, "snapshot": Snapshot, "dataSource": DataSource} {
		from, is, _ := unstructured.NestedMap(object.Object, field, "source", name)
		if !is {
			continue
		}
		namespace := text(from, "namespace")
		if namespace == "" {
			namespace = object.GetNamespace()
		}
		return Key{Kind: kind, Namespace: namespace, Name: text(from, "name")}
	}
	return Key{}
}
