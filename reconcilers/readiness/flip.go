package readiness

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// flip is a change of the status of the condition Ready of a template.
type flip struct {
	template types.NamespacedName
	uid      types.UID
	version  string
	// ready is the condition after the change.
	ready metav1.Condition
	// cause is the source that changed, and detail its state; the zero key if the cause is the template itself, a policy or a dry run.
	cause  sources.Key
	detail string
}

// pending reports whether a condition Ready is Unknown until a check is made for the first time.
func pending(ready *metav1.Condition) bool {
	return ready != nil && ready.Status == metav1.ConditionUnknown && (ready.Reason == v1beta1.ReasonNotTried || ready.Reason == v1beta1.ReasonNotEvaluated)
}

// flipOf returns the change of the condition Ready of a template. A template that is ready from the start causes none, nor does one that is
// checked for the first time.
func flipOf(t *templatecache.Template, stored *metav1.Condition, ready metav1.Condition, found v1beta1.TemplateSources) (changed flip, is bool) {
	if stored != nil && stored.Status == ready.Status || pending(&ready) || (stored == nil || pending(stored)) && ready.Status == metav1.ConditionTrue {
		return flip{}, false
	}
	changed = flip{template: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}, uid: t.UID, version: t.ResourceVersion, ready: ready}
	if from := cause(stored, ready, found); from != nil {
		changed.cause, changed.detail = from.key, from.Message
	}
	return changed, true
}

// cause returns the source because of which Ready changed; nil if that is none. stored is the condition before the change.
func cause(stored *metav1.Condition, ready metav1.Condition, found v1beta1.TemplateSources) *dependency {
	all := list(found)
	switch {
	case stored != nil && stored.ObservedGeneration != ready.ObservedGeneration:
		// The template was changed.
		return nil
	case ready.Status != metav1.ConditionTrue && blocked(ready):
		if _, worst := gravest(all); len(worst) > 0 {
			return &worst[0]
		}
	case ready.Status == metav1.ConditionTrue && blocked(*stored):
		return recovered(all, stored.Message)
	}
	return nil
}

// blocked reports whether a source is the reason of a condition Ready that is not True.
func blocked(ready metav1.Condition) bool {
	return ready.Reason == v1beta1.ReasonSourcesNotReady || ready.Reason == v1beta1.ReasonSourceUnknown
}

// recovered returns the source that an earlier message of Ready names, or else the first one that is an object. Of several names the longest is
// the right one: the others may be a part of it.
func recovered(all []dependency, message string) *dependency {
	var found *dependency
	named := 0
	for i := range all {
		one := &all[i]
		if one.State != v1beta1.SourceReady || one.key.Name == "" {
			continue
		}
		length := len(one.key.String())
		if !strings.Contains(message, one.key.String()) {
			length = 0
		}
		if found == nil || length > named {
			found, named = one, length
		}
	}
	return found
}
