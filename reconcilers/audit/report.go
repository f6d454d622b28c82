package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
)

const (
	// reportName is the name of Stencil's Report in every namespace.
	reportName = "stencil"
	// reportSource identifies the author of a Report.
	reportSource = "stencil"
	// reportCategory and policyCategory are the categories of results about approvals and about policies.
	reportCategory = "Template approval"
	policyCategory = "Virtual machine policy"
	// managedBy marks the objects that the audit may change and delete.
	managedBy, managedByStencil = "app.kubernetes.io/managed-by", "stencil-manager"
	// digestAnnotation identifies the content of a Report, except for the time.
	digestAnnotation = "stencil.kubevirt.io/digest"

	resultFail, resultWarn, resultSkip = "fail", "warn", "skip"
)

// reportOf returns the Report of a namespace, and the digest of its content. Results about approvals contain names of VMs, paths and names
// of approvals, but no content of templates. Results about policies contain the messages of the policies. A VM counts once for all
// approvals, and once for each policy that applies to it; the policies
// that cannot decide afterwards count as skipped, and so do violations that an exception allows. Only the latter are listed, after all others.
func reportOf(n namespaceTally, now time.Time) (*openreports.Report, string) {
	report := &openreports.Report{
		TypeMeta: metav1.TypeMeta{APIVersion: openreports.SchemeGroupVersion.String(), Kind: "Report"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: n.namespace,
			Name:      reportName,
			Labels:    map[string]string{managedBy: managedByStencil},
		},
		Source:  reportSource,
		Scope:   &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: n.namespace},
		Summary: openreports.ReportSummary{Pass: n.conforming - n.warned + n.passed, Warn: n.warned, Fail: n.violating + n.failed, Skip: n.unknown + n.excepted},
		Configuration: &openreports.ReportConfiguration{Limits: openreports.Limits{
			MaxResults: maximumResults, StatusFilter: []openreports.StatusFilter{resultFail, resultWarn, resultSkip},
		}},
	}
	for _, f := range n.findings {
		report.Results = append(report.Results, f.result(n.namespace, resultFail, severityOf(f.enforcement)))
	}
	for _, f := range n.warnings {
		report.Results = append(report.Results, f.result(n.namespace, resultWarn, "low"))
	}
	for _, o := range n.objections {
		report.Results = append(report.Results, o.result(n.namespace))
	}
	for _, o := range n.exceptions[:min(len(n.exceptions), maximumResults-len(report.Results))] {
		result := o.result(n.namespace)
		result.Result, result.Scored = resultSkip, false
		result.Properties["exception"], result.Properties["exceptionReason"] = o.ruling.exception.Name, o.ruling.exception.Reason
		result.Properties["exceptionExpires"] = o.ruling.exception.End()
		report.Results = append(report.Results, result)
	}
	digest := digestOf(report)
	report.Annotations = map[string]string{digestAnnotation: digest}
	for i := range report.Results {
		report.Results[i].Timestamp = metav1.Timestamp{Seconds: now.Unix()}
	}
	return report, digest
}

// result returns the entry of a violation in a Report.
func (o objection) result(namespace string) openreports.ReportResult {
	return openreports.ReportResult{
		Source:      reportSource,
		Policy:      o.ruling.policy,
		Rule:        string(policyset.RuleDeny),
		Category:    policyCategory,
		Severity:    openreports.ResultSeverity(o.ruling.severity),
		Result:      resultFail,
		Scored:      true,
		Description: o.ruling.objection,
		Properties: map[string]string{
			"enforcement": string(o.ruling.enforcement),
			"digest":      o.ruling.digest,
		},
		Subjects: []corev1.ObjectReference{{
			APIVersion: vmVersion.String(), Kind: kindVirtualMachine, Namespace: namespace, Name: o.name, UID: o.uid,
		}},
	}
}

// result returns the entry of a finding in a Report.
func (f finding) result(namespace string, result openreports.Result, severity openreports.ResultSeverity) openreports.ReportResult {
	return openreports.ReportResult{
		Source:      reportSource,
		Policy:      f.cause.approval,
		Rule:        f.cause.rule,
		Category:    reportCategory,
		Severity:    severity,
		Result:      result,
		Scored:      true,
		Description: f.cause.message,
		Properties: map[string]string{
			"approvals":   strings.Join(f.approvals, ","),
			"enforcement": string(f.enforcement),
		},
		Subjects: []corev1.ObjectReference{{
			APIVersion: apiVersionOf(f.kind), Kind: f.kind, Namespace: namespace, Name: f.name, UID: f.uid,
		}},
	}
}

func apiVersionOf(kind string) string {
	if kind == kindPod {
		return "v1"
	}
	return vmVersion.String()
}

// severityOf maps an enforcement to the severity of a result.
func severityOf(enforcement v1alpha1.Enforcement) openreports.ResultSeverity {
	switch enforcement {
	case v1alpha1.EnforcementWarn:
		return "medium"
	case v1alpha1.EnforcementAudit:
		return "low"
	default:
		return "high"
	}
}

func digestOf(report *openreports.Report) string {
	raw, err := json.Marshal(report)
	if err != nil {
		panic(fmt.Sprintf("encoding strings and numbers as JSON: %v", err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
