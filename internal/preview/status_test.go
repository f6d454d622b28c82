package preview_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/internal/preview"
)

func TestDecisionsComeBackAsTheyWere(t *testing.T) {
	want := []v1beta1.Decision{
		{Decision: v1beta1.EffectDeny, Kind: v1beta1.DecisionKindPolicy, Policy: "sizes", Message: "\"8\" CPUs\nare too many", Field: "spec.instancetype", Fix: "take u1.small"},
		{Decision: v1beta1.EffectAllow, Kind: v1beta1.DecisionKindApproval, Policy: "team"},
	}
	status := preview.Status(want)
	// The API server puts a text of its own in front of the message.
	status.Message = `admission webhook "preview.template.kubevirt.io" denied the request: ` + status.Message
	got, found := preview.Decisions(fmt.Errorf("creating: %w", &apierrors.StatusError{ErrStatus: status}))
	if !found {
		t.Fatal("no decisions")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoDecisionsAreAnAnswer(t *testing.T) {
	got, found := preview.Decisions(&apierrors.StatusError{ErrStatus: preview.Status(nil)})
	if !found || got == nil || len(got) != 0 {
		t.Errorf("%v, %v", got, found)
	}
}

func TestTooManyDecisionsAreCut(t *testing.T) {
	if got := len(preview.Status(make([]v1beta1.Decision, 1000)).Details.Causes); got != 512 {
		t.Errorf("%d causes", got)
	}
}

func TestOtherErrorsHoldNone(t *testing.T) {
	forged := preview.Status(nil)
	forged.Details.Causes = []metav1.StatusCause{{Type: "Decision", Message: "no JSON"}}
	bare := preview.Status(nil)
	bare.Details = nil
	for name, err := range map[string]error{
		"none":                  nil,
		"one of the network":    errors.New("connection refused"),
		"another refusal":       apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("x").GroupResource(), "web-1", errors.New("no")),
		"causes that are none":  &apierrors.StatusError{ErrStatus: forged},
		"a status without them": &apierrors.StatusError{ErrStatus: bare},
	} {
		if got, found := preview.Decisions(err); found {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDenialsComeFirst(t *testing.T) {
	decisions := []v1beta1.Decision{{Decision: "allow", Policy: "a"}, {Decision: "warn", Policy: "b"}, {Decision: "deny", Policy: "c"}, {Decision: "warn", Policy: "d"}}
	if !preview.Denied(decisions) || preview.Denied(decisions[:2]) {
		t.Error("Denied is wrong")
	}
	preview.Sort(decisions)
	want := []v1beta1.Decision{{Decision: "deny", Policy: "c"}, {Decision: "warn", Policy: "b"}, {Decision: "warn", Policy: "d"}, {Decision: "allow", Policy: "a"}}
	if diff := cmp.Diff(want, decisions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
