package sources

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Populator is a kind of objects from which a volume populator fills claims, and the resource of its objects.
type Populator struct {
	schema.GroupVersionKind
	Resource string
}

// ParsePopulator parses KIND.VERSION.GROUP/RESOURCE.
func ParsePopulator(text string) (Populator, error) {
	name, resource, _ := strings.Cut(text, "/")
	kind, _ := schema.ParseKindArg(name)
	if kind == nil || kind.Kind == "" || kind.Version == "" || kind.Group == "" || resource == "" {
		return Populator{}, fmt.Errorf("%q must be KIND.VERSION.GROUP/RESOURCE, such as Milk.v1.example.org/milks", text)
	}
	return Populator{GroupVersionKind: *kind, Resource: resource}, nil
}

// KindIn returns the Kind of objects of another API group than those of the constants: KIND.GROUP.
func KindIn(group, kind string) Kind { return Kind(kind + "." + group) }

// NotWatchedError is returned for a kind that is none of the constants and no Populator.
type NotWatchedError struct{ Kind Kind }

// Error implements error.
func (e *NotWatchedError) Error() string {
	return fmt.Sprintf("the manager does not read objects of the kind %s: add it to the chart's value readiness.populators", e.Kind)
}

// readyPhases are the phases that mean that an object can be used, of those that common controllers write.
var readyPhases = map[string]bool{"Active": true, "Available": true, "Bound": true, "Complete": true, "Completed": true, "Ready": true, "Succeeded": true}

// reducePopulator reads, in this order, the condition Ready, status.ready and status.phase. An object without any of them can be used.
func reducePopulator(object *unstructured.Unstructured) Object {
	if ready := condition(object, "Ready"); ready != nil {
		return stateOf(text(ready, "status") == "True", text(ready, "reason"), text(ready, "message"), "its condition Ready is not True")
	}
	if ready, is, err := unstructured.NestedBool(object.Object, "status", "ready"); is && err == nil {
		return stateOf(ready, "", "", "its status.ready is false")
	}
	if phase := text(object.Object, "status", "phase"); phase != "" {
		return stateOf(readyPhases[phase], phase, "", "its phase is "+phase)
	}
	return Object{Ready: true}
}

// stateOf returns the state of an object that can be used or not. Defaults are for an object without a reason or a message.
func stateOf(ready bool, reason, message, defaultMessage string) Object {
	if ready {
		return Object{Ready: true}
	}
	if reason == "" {
		reason = "NotReady"
	}
	if message == "" {
		message = defaultMessage
	}
	return Object{Reason: truncate(reason), Message: truncate(message)}
}
