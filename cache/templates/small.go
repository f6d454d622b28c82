package templates

import (
	"maps"
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/intern"
)

// These are small forms of what is stored of every template of the cluster.

// pairs are the items of a map, each key followed by its value, sorted by key. A small map takes five times as much memory.
type pairs []string

// pairsOf returns the items of a map. Texts that other templates have are stored once.
func pairsOf(in map[string]string, texts *intern.Texts) pairs {
	if len(in) == 0 {
		return nil
	}
	out := make(pairs, 0, 2*len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out = append(out, texts.Of(key), texts.Of(in[key]))
	}
	return out
}

// get returns the value of a key, empty if there is none.
func (p pairs) get(key string) string {
	for i := 0; i < len(p); i += 2 {
		if p[i] == key {
			return p[i+1]
		}
	}
	return ""
}

func (p pairs) toMap() map[string]string {
	if p == nil {
		return nil
	}
	out := make(map[string]string, len(p)/2)
	for i := 0; i < len(p); i += 2 {
		out[p[i]] = p[i+1]
	}
	return out
}

// sharedSpec returns a copy of a spec in which the texts of parameters are stored once if other templates have them.
func sharedSpec(spec v1beta1.VirtualMachineTemplateSpec, texts *intern.Texts) *v1beta1.VirtualMachineTemplateSpec {
	spec.Parameters = slices.Clone(spec.Parameters)
	for i := range spec.Parameters {
		p := &spec.Parameters[i]
		for _, text := range []*string{&p.Name, &p.DisplayName, &p.Description, &p.Value, &p.From} {
			*text = texts.Of(*text)
		}
	}
	return &spec
}

// condition is a condition of a template. A metav1.Condition takes more than twice the memory.
type condition struct {
	state unique.Handle[conditionState]
	// since is the time of the last transition in seconds, which is the precision of the API.
	since, observedGeneration int64
	message                   string
}

// conditionState is what the conditions of many templates have in common.
type conditionState struct {
	kind   string
	status metav1.ConditionStatus
	reason string
}

// conditionsOf returns conditions in their small form. A message that other templates have is stored once.
func conditionsOf(in []metav1.Condition, texts *intern.Texts) []condition {
	out := make([]condition, len(in))
	for i, c := range in {
		out[i] = condition{
			state: unique.Make(conditionState{c.Type, c.Status, c.Reason}),
			since: c.LastTransitionTime.Unix(), observedGeneration: c.ObservedGeneration, message: texts.Of(c.Message),
		}
	}
	return out
}

func (c *condition) whole() metav1.Condition {
	state := c.state.Value()
	return metav1.Condition{
		Type: state.kind, Status: state.status, Reason: state.reason, Message: c.message,
		ObservedGeneration: c.observedGeneration, LastTransitionTime: metav1.NewTime(time.Unix(c.since, 0)),
	}
}
