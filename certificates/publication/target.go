package publication

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of webhook configuration.
type Kind string

// The kinds, as Target's text form names them.
const (
	Mutating   Kind = "mutating"
	Validating Kind = "validating"
)

// Target names one webhook configuration to watch.
type Target struct {
	Kind Kind
	Name string
}

// String returns the kind and name as kubectl writes them.
func (t Target) String() string {
	if t.Kind == Mutating {
		return "MutatingWebhookConfiguration/" + t.Name
	}
	return "ValidatingWebhookConfiguration/" + t.Name
}

// ParseTargets reads names of webhook configurations, each mutating/NAME, validating/NAME, or NAME alone, which
// stands for the configurations of both kinds that have the name, whether or not there are two.
func ParseTargets(names []string) ([]Target, error) {
	var targets []Target
	seen := map[Target]bool{}
	add := func(target Target) {
		if !seen[target] {
			seen[target] = true
			targets = append(targets, target)
		}
	}
	for _, text := range names {
		prefix, name, qualified := strings.Cut(text, "/")
		if !qualified {
			prefix, name = "", text
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("webhook configuration %q: %s", text, strings.Join(problems, ", "))
		}
		switch {
		case !qualified:
			add(Target{Mutating, name})
			add(Target{Validating, name})
		case Kind(prefix) == Mutating, Kind(prefix) == Validating:
			add(Target{Kind(prefix), name})
		default:
			return nil, fmt.Errorf("webhook configuration %q: before the slash may stand %s or %s", text, Mutating, Validating)
		}
	}
	return targets, nil
}

// object returns an empty object of the target's kind.
func (t Target) object() client.Object {
	if t.Kind == Mutating {
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{}
}
