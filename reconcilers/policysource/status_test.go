package policysource

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/reconcilers/internal/policyapply"
	"github.com/vmstencil/stencil/reconcilers/policysource/artifact"
)

var now = time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)

func made(digest string, names ...string) *artifact.Artifact {
	a := &artifact.Artifact{Digest: digest}
	for _, name := range names {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"enforcement": "Deny"}}}
		object.SetGroupVersionKind(policyapply.Kind)
		object.SetName(name)
		a.Policies = append(a.Policies, object)
	}
	return a
}

func TestStatus(t *testing.T) {
	stored := v1alpha1.VirtualMachinePolicySourceStatus{
		Digest: "sha256:old", Policies: []string{"a", "b"}, Refreshed: "1",
		Conditions: []metav1.Condition{{Type: "Verified", Status: "True", Reason: "Signed", Message: "before"}},
	}
	notSigned := fmt.Errorf("r/p:v1, sha256:new: %w", artifact.ErrNotSigned)
	away := errors.New("reading r/p:v1: connection refused")
	for name, tc := range map[string]struct {
		spec                    v1alpha1.VirtualMachinePolicySourceSpec
		status                  v1alpha1.VirtualMachinePolicySourceStatus
		seen                    observation
		verified, ready, digest string
	}{
		"not enabled": {
			seen:     observation{},
			verified: "Unknown CheckFailed: the artifact was not checked yet",
			ready:    "False NotEnabled: policy sources are not enabled: set the chart's value policySources.enabled; no policy was applied yet",
		},
		"suspended": {
			spec: v1alpha1.VirtualMachinePolicySourceSpec{Suspended: true}, status: stored, seen: observation{enabled: true},
			verified: "True Signed: before", digest: "sha256:old",
			ready: "Unknown Suspended: spec.suspended stops checks and changes of policies; 2 policies of sha256:old remain",
		},
		"applied": {
			status: stored, seen: observation{enabled: true, checked: true, active: made("sha256:new", "b", "a", "c")},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys", digest: "sha256:new",
			ready: "True Applied: 3 policies of sha256:new are applied",
		},
		"applied, with policies that left": {
			status: stored, seen: observation{enabled: true, checked: true, active: made("sha256:new", "a"), left: []string{"b", "c"}},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys", digest: "sha256:new",
			ready: "True Applied: policy a of sha256:new is applied; not in the artifact any more, but they remain without spec.prune: b, c",
		},
		"not signed": {
			status: stored, seen: observation{enabled: true, checked: true, failure: notSigned},
			verified: "False NotSigned: r/p:v1, sha256:new: no signature of spec.verify.publicKeys", digest: "sha256:old",
			ready: "False NotSigned: r/p:v1, sha256:new: no signature of spec.verify.publicKeys: sign this digest with cosign, or correct the keys; 2 policies of sha256:old remain",
		},
		"a registry that is away": {
			status: stored, seen: observation{enabled: true, checked: true, failure: away, active: made("sha256:old", "a", "b")},
			verified: "Unknown CheckFailed: reading r/p:v1: connection refused", digest: "sha256:old",
			ready: "False CheckFailed: reading r/p:v1: connection refused; 2 policies of sha256:old remain",
		},
		"broken": {
			seen:     observation{enabled: true, checked: true, failure: fmt.Errorf("r/p:v1: %w", &artifact.InvalidError{Problem: errors.New("layer 0: wrong")})},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys",
			ready:    "False InvalidArtifact: r/p:v1: layer 0: wrong; no policy was applied yet",
		},
		"a conflict": {
			status: stored, seen: observation{enabled: true, checked: true, problem: &conflictError{[]string{"x"}}},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys", digest: "sha256:old",
			ready: "False PolicyConflict: policies of other owners have these names: x; rename or delete them, or give them label stencil.kubevirt.io/policy-source=s so that the source replaces them; 2 policies of sha256:old remain",
		},
		"rejected, with a long message": {
			status: stored, seen: observation{enabled: true, checked: true, problem: &rejectedError{errors.New("applying policy a: " + strings.Repeat("x", 2000))}},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys", digest: "sha256:old",
			ready: "False PolicyRejected: applying policy a: " + strings.Repeat("x", 969) + "…; 2 policies of sha256:old remain",
		},
		"not written": {
			seen:     observation{enabled: true, checked: true, problem: errors.New("applying policy a: timeout")},
			verified: "True Signed: the artifact is signed with a key of spec.verify.publicKeys",
			ready:    "False WriteFailed: applying policy a: timeout; no policy was applied yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := &v1alpha1.VirtualMachinePolicySource{Spec: tc.spec, Status: tc.status}
			source.Name, source.Generation, source.Annotations = "s", 2, map[string]string{v1alpha1.AnnotationRefresh: "2"}
			next, changed := decide(source, tc.seen, now)
			got := map[string]string{}
			for _, condition := range next.Conditions {
				got[condition.Type] = fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
			if !changed || got["Verified"] != tc.verified || got["Ready"] != tc.ready || next.Digest != tc.digest {
				t.Errorf("changed %v, digest %q\n%s\nwant\n%s\n%s\nwant\n%s", changed, next.Digest, got["Verified"], tc.verified, got["Ready"], tc.ready)
			}
			if tc.seen.checked != (next.Refreshed == "2") {
				t.Errorf("refreshed %q", next.Refreshed)
			}
			source.Status = *next
			if again, changed := decide(source, tc.seen, now.Add(time.Hour)); changed {
				t.Errorf("it changes again to %+v", again)
			}
		})
	}
}

func TestDue(t *testing.T) {
	source := func(interval time.Duration, refresh string) *v1alpha1.VirtualMachinePolicySource {
		s := &v1alpha1.VirtualMachinePolicySource{}
		s.Generation, s.Spec.Interval.Duration, s.Annotations = 2, interval, map[string]string{v1alpha1.AnnotationRefresh: refresh}
		return s
	}
	for name, tc := range map[string]struct {
		source *v1alpha1.VirtualMachinePolicySource
		state  state
		want   time.Time
	}{
		"a new one":        {source(time.Hour, ""), state{}, time.Time{}},
		"a changed one":    {source(time.Hour, ""), state{generation: 1, checked: now}, time.Time{}},
		"a new annotation": {source(time.Hour, "2"), state{generation: 2, refreshed: "1", checked: now}, time.Time{}},
		"its interval":     {source(time.Hour, "1"), state{generation: 2, refreshed: "1", checked: now}, now.Add(time.Hour)},
		"the default":      {source(0, ""), state{generation: 2, checked: now}, now.Add(10 * time.Minute)},
		"after a failure":  {source(time.Hour, ""), state{generation: 2, checked: now, failure: errors.New("x")}, now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := due(tc.source, &tc.state); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestEnforcementReplacesThatOfAllPolicies(t *testing.T) {
	a := made("sha256:new", "a", "b")
	for enforcement, want := range map[v1alpha1.Enforcement]string{"": "Deny", "Warn": "Warn"} {
		for _, each := range manifests(a, enforcement) {
			if got, _, _ := unstructured.NestedString(each.Object.Object, "spec", "enforcement"); got != want || each.Digest != "sha256:new" {
				t.Errorf("policy %s has %s, want %s", each.Name, got, want)
			}
		}
	}
	if got, _, _ := unstructured.NestedString(a.Policies[0].Object, "spec", "enforcement"); got != "Deny" {
		t.Errorf("the artifact was changed to %s", got)
	}
}
