package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The Prometheus operator's definitions are not available here, its Go types are: strict decoding into them finds what its schema would.
func TestServiceMonitor(t *testing.T) {
	rendered := render(t, "stencil", `{manager: {metrics: {serviceMonitor: {enabled: true, interval: 30s, labels: {prometheus: main}}}}}`)
	object := rendered.get(t, "ServiceMonitor/stencil-manager")
	content, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	var monitor monitoringv1.ServiceMonitor
	if err := yaml.UnmarshalStrict(content, &monitor); err != nil {
		t.Fatal(err)
	}
	if monitor.APIVersion != "monitoring.coreos.com/v1" {
		t.Errorf("apiVersion is %s", monitor.APIVersion)
	}
	if monitor.Labels["prometheus"] != "main" {
		t.Errorf("labels %v lack the one that was given", monitor.Labels)
	}
	want := monitoringv1.ServiceMonitorSpec{
		Endpoints: []monitoringv1.Endpoint{{Port: "metrics", Path: "/metrics", Interval: "30s"}},
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{
			"app.kubernetes.io/name": "stencil", "app.kubernetes.io/instance": "stencil", "app.kubernetes.io/component": "metrics",
		}},
	}
	if diff := cmp.Diff(want, monitor.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}

	service := rendered.get(t, "Service/stencil-metrics")
	for label, value := range monitor.Spec.Selector.MatchLabels {
		if service.GetLabels()[label] != value {
			t.Errorf("the monitor selects %s=%s, which the Service lacks", label, value)
		}
	}
	if webhook := rendered.get(t, "Service/stencil-webhook"); webhook.GetLabels()["app.kubernetes.io/component"] == "metrics" {
		t.Error("the monitor selects the Service of the webhooks, too")
	}
}

func TestServiceMonitorOfTheAPIServer(t *testing.T) {
	for values, secret := range map[string]string{
		`{apiserver: {serviceMonitor: {enabled: true, interval: 30s, labels: {prometheus: main}}}}`:                                         "stencil-webhook-ca",
		`{certificates: {provider: cert-manager}, apiserver: {serviceMonitor: {enabled: true, interval: 30s, labels: {prometheus: main}}}}`: "stencil-apiserver-tls",
	} {
		rendered := render(t, "stencil", values)
		content, err := yaml.Marshal(rendered.get(t, "ServiceMonitor/stencil-apiserver").Object)
		if err != nil {
			t.Fatal(err)
		}
		var monitor monitoringv1.ServiceMonitor
		if err := yaml.UnmarshalStrict(content, &monitor); err != nil {
			t.Fatal(err)
		}
		if len(monitor.Spec.Endpoints) != 1 || monitor.Labels["prometheus"] != "main" {
			t.Fatalf("%+v", monitor)
		}
		endpoint := monitor.Spec.Endpoints[0]
		if endpoint.Port != "https" || endpoint.Path != "/metrics" || endpoint.Interval != "30s" || endpoint.Scheme == nil || *endpoint.Scheme != "https" {
			t.Errorf("endpoint %+v", endpoint)
		}
		if tls := endpoint.TLSConfig; tls == nil || tls.CA.Secret == nil || tls.CA.Secret.Name != secret || tls.CA.Secret.Key != "ca.crt" || tls.ServerName == nil || *tls.ServerName != "stencil-apiserver.stencil-system.svc" {
			t.Errorf("tlsConfig %+v", tls)
		}
		service := rendered.get(t, "Service/stencil-apiserver")
		for label, value := range monitor.Spec.Selector.MatchLabels {
			if service.GetLabels()[label] != value {
				t.Errorf("the monitor selects %s=%s, which the Service lacks", label, value)
			}
		}
	}
}

func TestPrometheusRule(t *testing.T) {
	rendered := render(t, "stencil", `{manager: {metrics: {prometheusRule: {enabled: true, for: 1h, labels: {prometheus: main}}}}}`)
	content, err := yaml.Marshal(rendered.get(t, "PrometheusRule/stencil-manager").Object)
	if err != nil {
		t.Fatal(err)
	}
	var rule monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(content, &rule); err != nil {
		t.Fatal(err)
	}
	if rule.APIVersion != "monitoring.coreos.com/v1" || rule.Labels["prometheus"] != "main" {
		t.Errorf("apiVersion %s, labels %v", rule.APIVersion, rule.Labels)
	}
	alert := rule.Spec.Groups[0].Rules[0]
	if alert.Alert != "StencilTemplateNotReady" || alert.For == nil || *alert.For != "1h" {
		t.Errorf("alert %+v", alert)
	}
	var images []string
	for _, one := range rule.Spec.Groups[1].Rules {
		images = append(images, one.Alert)
		if one.For == nil || one.Annotations["runbook_url"] == "" || one.Expr.String() == "" {
			t.Errorf("alert %+v", one)
		}
	}
	if want := "StencilGoldenImageStale StencilGoldenImageImportFailed StencilGoldenImageCheckFailed StencilGoldenImageNotSigned StencilGoldenImageConflict StencilGoldenImageNotImported"; strings.Join(images, " ") != want {
		t.Errorf("alerts %v, want %s", images, want)
	}
	if got, want := rule.Spec.Groups[1].Rules[0].Expr.String(), `max by (namespace, name) (stencil_golden_image_state{reason="Stale"}) > 0`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := rule.Spec.Groups[2].Rules[0]; got.Alert != "StencilOldInstancetypesStored" || got.Expr.String() != `max by (version, class) (stencil_stored_instancetypes{class!="Current"}) > 0` || got.Annotations["runbook_url"] == "" {
		t.Errorf("alert %+v", got)
	}
	if got := rule.Spec.Groups[3].Rules[0]; got.Alert != "StencilPolicySourceNotReady" || got.For == nil || got.Expr.String() != `max by (source, reason) (stencil_policy_source_state{reason!~"Applied|Suspended"}) > 0` || got.Annotations["runbook_url"] == "" {
		t.Errorf("alert %+v", got)
	}
	for i, want := range []string{"StencilInstallationProblem", "StencilInstallationWarning"} {
		if got := rule.Spec.Groups[4].Rules[i]; got.Alert != want || got.For == nil || !strings.Contains(got.Expr.String(), "stencil_installation_findings") {
			t.Errorf("alert %+v, want %s", got, want)
		}
	}
	// The label names are those of the metric; Prometheus replaces them, not helm.
	if got, want := alert.Annotations["summary"], "VirtualMachineTemplate {{ $labels.template_namespace }}/{{ $labels.template }} is not ready"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
}
