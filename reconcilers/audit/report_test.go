package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

func tallied() namespaceTally {
	return namespaceTally{namespace: "team-a", conforming: 4, violating: 2, findings: []finding{
		{kind: kindVirtualMachine, name: "web", uid: "u1", cause: cause{ruleNoTemplate, "a", "it names no template"}, enforcement: v1alpha1.EnforcementDeny, approvals: []string{"a", "b"}},
		{kind: kindVirtualMachine, name: "db", uid: "u2", cause: cause{ruleDifferent, "b", "differs"}, enforcement: v1alpha1.EnforcementWarn, approvals: []string{"b"}},
	}}
}

func TestReportOf(t *testing.T) {
	report, digest := reportOf(tallied(), noon)
	got, err := yaml.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: openreports.io/v1alpha1
configuration:
  limits:
    maxResults: 200
    statusFilter:
    - fail
    - warn
    - skip
kind: Report
metadata:
  annotations:
    stencil.kubevirt.io/digest: ` + digest + `
  labels:
    app.kubernetes.io/managed-by: stencil-manager
  name: stencil
  namespace: team-a
results:
- category: Template approval
  message: it names no template
  policy: a
  properties:
    approvals: a,b
    enforcement: Deny
  resources:
  - apiVersion: kubevirt.io/v1
    kind: VirtualMachine
    name: web
    namespace: team-a
    uid: u1
  result: fail
  rule: NoTemplate
  scored: true
  severity: high
  source: stencil
  timestamp:
    nanos: 0
    seconds: 1780315200
- category: Template approval
  message: differs
  policy: b
  properties:
    approvals: b
    enforcement: Warn
  resources:
  - apiVersion: kubevirt.io/v1
    kind: VirtualMachine
    name: db
    namespace: team-a
    uid: u2
  result: fail
  rule: DifferentFromTemplate
  scored: true
  severity: medium
  source: stencil
  timestamp:
    nanos: 0
    seconds: 1780315200
scope:
  apiVersion: v1
  kind: Namespace
  name: team-a
source: stencil
summary:
  error: 0
  fail: 2
  pass: 4
  skip: 0
  warn: 0
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestAWarningOfAReport(t *testing.T) {
	n := tallied()
	n.warned, n.warnings = 1, []finding{{kind: kindVirtualMachine, name: "old", uid: "u3", cause: cause{ruleClosedParameter, "a", "parameters[P]: no"}, enforcement: v1alpha1.EnforcementDeny, approvals: []string{"a"}}}
	report, _ := reportOf(n, noon)
	if got := report.Summary; got.Pass != 3 || got.Warn != 1 || got.Fail != 2 {
		t.Errorf("summary: %+v", got)
	}
	last := report.Results[len(report.Results)-1]
	if last.Result != "warn" || last.Rule != "closedParameter" || last.Severity != "low" || last.Description != "parameters[P]: no" || last.Subjects[0].Name != "old" {
		t.Errorf("result: %+v", last)
	}
}

func TestTheDigestOfAReport(t *testing.T) {
	_, digest := reportOf(tallied(), noon)
	for _, tc := range []struct {
		name   string
		change func(*namespaceTally)
		at     time.Time
		same   bool
	}{
		{"does not depend on the time", func(*namespaceTally) {}, noon.Add(time.Hour), true},
		{"tells another count", func(n *namespaceTally) { n.conforming++ }, noon, false},
		{"tells another warning", func(n *namespaceTally) { n.warned++ }, noon, false},
		{"tells another cause", func(n *namespaceTally) { n.findings[0].cause.message = "x" }, noon, false},
		{"tells another machine of the same name", func(n *namespaceTally) { n.findings[0].uid = "u3" }, noon, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := tallied()
			tc.change(&n)
			if _, got := reportOf(n, tc.at); (got == digest) != tc.same {
				t.Errorf("%s and %s", got, digest)
			}
		})
	}
}

func TestSeverityOf(t *testing.T) {
	for enforcement, want := range map[v1alpha1.Enforcement]openreports.ResultSeverity{
		v1alpha1.EnforcementDeny: "high", v1alpha1.EnforcementWarn: "medium", v1alpha1.EnforcementAudit: "low",
	} {
		if got := severityOf(enforcement); got != want {
			t.Errorf("%s: got %s, want %s", enforcement, got, want)
		}
	}
}
