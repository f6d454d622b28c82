package compliance

import (
	"strings"
	"testing"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

func TestMessagesAreBounded(t *testing.T) {
	var many []policyset.Violation
	for range 7 {
		v := policyset.Violation{Policy: "p", Rule: policyset.RuleDeny}
		v.Message = strings.Repeat("ä", 1000)
		many = append(many, v)
	}
	j := evaluation{applying: []string{"p"}, decision: policyset.Decision{Denials: many}}
	if got := len(j.condition(1).Message); got > maximumMessage || got < maximumMessage-4 {
		t.Errorf("%d bytes", got)
	}
	if got := len(j.objections()["p"]); got > maximumCause || got < maximumCause-4 {
		t.Errorf("%d bytes", got)
	}
	j.decision.Denials = nil
	for range 7 {
		j.decision.Denials = append(j.decision.Denials, policyset.Violation{Policy: "p"})
	}
	if got := j.condition(1).Message; !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("got %s", got)
	}
}
