package input_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/internal/fixture"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// full is a case in which every part of the document is set.
func full(t testing.TB) *policyinput.Case {
	t.Helper()
	raw, err := json.Marshal(object(t, web))
	if err != nil {
		t.Fatal(err)
	}
	decoded := func() map[string]any {
		o := fixture.VM(t, raw)
		o["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "m"}}
		o["spec"].(map[string]any)["cpus"] = []any{json.Number("4"), json.Number("1.50"), true, nil}
		return o
	}
	c := &policyinput.Case{
		Request: rego.Request{
			Operation: "UPDATE", Kind: "VirtualMachine", Namespace: "team-a", Name: "web-1", DryRun: true, Time: time.Date(2026, 11, 21, 12, 0, 1, 5, time.FixedZone("", 3600)),
			UserInfo: rego.UserInfo{Username: "ada", UID: "1", Groups: []string{"team-a"}, Extra: map[string][]string{"scopes": {"a"}}},
		},
		Object:       decoded(),
		OldObject:    decoded(),
		Namespace:    rego.Namespace{Name: "team-a", Labels: map[string]string{"env": "prod"}, Annotations: map[string]string{"owner": "ada"}},
		Instancetype: map[string]any{"kind": "VirtualMachineClusterInstancetype", "spec": map[string]any{"cpu": map[string]any{"guest": 4.0}}},
		Preference:   map[string]any{"kind": "VirtualMachineClusterPreference"},
		Objects:      []map[string]any{{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": "abcdefgh"}}, {"kind": "Service", "metadata": map[string]any{"name": "web-1"}}},
	}
	origin, _ := policyinput.OriginOf(c.Object, "team-a")
	c.Template = origin.Template(&metav1.ObjectMeta{UID: "uid", Labels: map[string]string{"os": "linux"}}, compiled(t))
	return c
}

func digest(t *testing.T, d rego.Document) string {
	t.Helper()
	in, err := rego.NewInput(d)
	if err != nil {
		t.Fatal(err)
	}
	return in.Digest()
}

func TestAnInputIsReadAsItWasWritten(t *testing.T) {
	cases := map[string]*policyinput.Case{"full": full(t), "empty": {}}
	for _, kind := range rego.Kinds() {
		// Of a request for it, and of one of another kind from which it results.
		for _, requested := range []string{"", "VirtualMachinePool"} {
			c := full(t)
			c.Request.Kind, c.Request.RequestKind = kind, requested
			c.Object["kind"] = kind
			cases[kind+" "+requested] = c
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			document := c.Document()
			raw, err := policyinput.EncodeInput(document)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(raw), "managedFields") {
				t.Error("managed fields are in it")
			}
			read, err := policyinput.DecodeInput(raw)
			if err != nil {
				t.Fatal(err)
			}
			if want, got := digest(t, document), digest(t, read); got != want {
				t.Errorf("policies see %s, and saw %s: %s", got, want, raw)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	c := full(t)
	document := c.Document()
	input, err := rego.NewInput(document)
	if err != nil {
		t.Fatal(err)
	}
	record, err := c.Record("uid-1", policyset.Decision{
		Denials:  []policyset.Violation{{Policy: "passwords", Finding: rego.Finding{Message: "the password is abcdefgh", Field: "spec", Fix: "hide it"}}},
		Warnings: []policyset.Violation{{Policy: "owners", Finding: rego.Finding{Message: "no owner"}}},
		Audited:  []policyset.Violation{{Policy: "quiet", Finding: rego.Finding{Message: "psst"}}},
		Evaluations: []policyset.Evaluation{
			{Policy: "passwords", Digest: "sha256:1", Enforcement: policyset.EnforcementDeny, Result: policyset.ResultDeny, Duration: 1500 * time.Microsecond},
			{Policy: "slow", Digest: "sha256:2", Enforcement: policyset.EnforcementWarn, Result: policyset.ResultTimeout, Err: errors.New("too slow")},
		},
	}, document, input)
	if err != nil {
		t.Fatal(err)
	}
	want := policyinput.Record{
		UID: "uid-1", Result: "denied", InputDigest: input.Digest(),
		Policies: []policyinput.RecordedPolicy{
			{Name: "passwords", Digest: "sha256:1", Enforcement: "Deny", Result: "deny", Microseconds: 1500},
			{Name: "slow", Digest: "sha256:2", Enforcement: "Warn", Result: "timeout", Error: "too slow"},
		},
		Findings: []policyinput.RecordedFinding{
			{Policy: "passwords", Action: "deny", Finding: rego.Finding{Message: "***", Field: "spec", Fix: "hide it"}},
			{Policy: "owners", Action: "warn", Finding: rego.Finding{Message: "no owner"}},
			{Policy: "quiet", Action: "audit", Finding: rego.Finding{Message: "psst"}},
		},
		Masked: []string{
			"object.spec.template.metadata.annotations.token",
			"object.spec.template.spec.volumes[0].cloudInitNoCloud.userData",
			"oldObject.spec.template.metadata.annotations.token",
			"oldObject.spec.template.spec.volumes[0].cloudInitNoCloud.userData",
		},
		Input: record.Input,
	}
	if diff := cmp.Diff(want, record); diff != "" {
		t.Error(diff)
	}
	raw, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"abcdefgh", "hushhush"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s is in %s", secret, raw)
		}
	}
	for name, text := range map[string]string{
		"a record":        string(raw),
		"a line of a log": `{"level":"info","msg":"decided about a request","decision":` + string(raw) + `}`,
	} {
		read, err := policyinput.DecodeRecord([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(record, read); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		again, err := read.Document()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if again.Request.UserInfo.Username != "ada" || again.Parameters["SIZE"] != "huge" {
			t.Errorf("%s: %+v", name, again)
		}
	}
	for _, text := range []string{"", "{}", `{"decision":7}`, `{"input":`} {
		if _, err := policyinput.DecodeRecord([]byte(text)); err == nil {
			t.Errorf("%q was taken for a decision", text)
		}
	}
	for _, text := range []string{"", `{"colour":1}`, `{} {}`, `{"object":[]}`} {
		if _, err := policyinput.DecodeInput([]byte(text)); err == nil {
			t.Errorf("%q was taken for an input", text)
		}
	}
}

func TestOutcomeOf(t *testing.T) {
	some := []policyset.Violation{{}}
	for want, d := range map[string]policyset.Decision{
		"allowed": {Audited: some}, "warned": {Warnings: some, Audited: some}, "denied": {Denials: some, Warnings: some},
	} {
		if got := policyinput.ResultOf(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
