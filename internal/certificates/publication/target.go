package publication

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of object with a caBundle: a webhook configuration of either kind, or
// an APIService, which is treated as a configuration with one webhook.
type Kind string

// The kinds, as in Target's text form.
const (
	Mutating   Kind = "mutating"
	Validating Kind = "validating"
	APIService Kind = "apiservice"
)

// Target names one webhook configuration, or one APIService, to watch.
type Target struct {
	Kind Kind
	Name string
}

// String returns the kind and name in the form of kubectl.
func (t Target) String() string {
	switch t.Kind {
	case Mutating:
		return "MutatingWebhookConfiguration/" + t.Name
	case APIService:
		return "APIService/" + t.Name
	default:
		return "ValidatingWebhookConfiguration/" + t.Name
	}
}

// ParseTargets parses names of webhook configurations, each mutating/NAME, validating/NAME, or NAME alone, which stands for the configurations of
// both kinds with that name, whether or not both exist; and of APIServices, each apiservice/NAME.
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
		case Kind(prefix) == Mutating, Kind(prefix) == Validating, Kind(prefix) == APIService:
			add(Target{Kind(prefix), name})
		default:
			return nil, fmt.Errorf("webhook configuration %q: before the slash may stand %s, %s or %s", text, Mutating, Validating, APIService)
		}
	}
	return targets, nil
}

// object returns an empty object of the target's kind.
func (t Target) object() client.Object {
	switch t.Kind {
	case Mutating:
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	case APIService:
		return &apiregistrationv1.APIService{}
	default:
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
}
