package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// Responses of a cluster to install check.
const (
	definitionsAt = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
	servicesAt    = "GET /apis/apiregistration.k8s.io/v1/apiservices/"
	ofHelm        = `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "stencil", "meta.helm.sh/release-namespace": "stencil-system"}}}`
	ofOperator    = `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "virt-operator"}}}`
	plain         = `{"metadata": {}}`
)

// kubeVirtOf is a KubeVirt of a version, with fields of its configuration.
func kubeVirtOf(version, configuration string) map[string][]string {
	return map[string][]string{
		definitionsAt + "kubevirts.kubevirt.io": {plain}, definitionsAt + "cdis.cdi.kubevirt.io": {plain},
		"GET /apis/kubevirt.io/v1/kubevirts": {fmt.Sprintf(`{"items": [{"metadata": {"namespace": "kubevirt", "name": "kubevirt"}, "spec": {"configuration": {%s}},
			"status": {"phase": "Deployed", "observedKubeVirtVersion": %q, "targetKubeVirtVersion": %q}}]}`, configuration, version, version)},
		"GET /apis/cdi.kubevirt.io/v1beta1/cdis": {`{"items": [{"metadata": {"name": "cdi"}, "status": {"phase": "Deployed", "observedVersion": "v1.65.0"}}]}`},
	}
}

// usable is a template.
const usable = `{"metadata": {"namespace": "golden", "name": "t-%d"}, "spec": {"virtualMachine": {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}}`

// withDefinitions are the definitions of templates with an owner, and templates.
func withDefinitions(owner string, services bool, templates int) map[string][]string {
	items := ""
	for i := range templates {
		if i > 0 {
			items += ", "
		}
		items += fmt.Sprintf(usable, i)
	}
	answers := map[string][]string{
		definitionsAt + "virtualmachinetemplates.template.kubevirt.io":          {owner},
		definitionsAt + "virtualmachinetemplaterequests.template.kubevirt.io":   {owner},
		"GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplates":        {`{"items": [` + items + `]}`},
		"GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplaterequests": {`{"items": []}`},
	}
	if services {
		answers[servicesAt+"v1alpha1.subresources.template.kubevirt.io"] = []string{owner}
		answers[servicesAt+"v1beta1.subresources.template.kubevirt.io"] = []string{owner}
	}
	return answers
}

func TestInstallCheck(t *testing.T) {
	t.Chdir("testdata")
	const webhooksAt = "GET /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	webhook := func(name, part, resource string) string {
		return `{"metadata": {"name": "` + name + `", "labels": {"app.kubernetes.io/part-of": "` + part + `"}},
			"webhooks": [{"rules": [{"apiGroups": ["kubevirt.io"], "resources": ["` + resource + `"], "operations": ["CREATE"]}]}]}`
	}
	const ofRelease = `"annotations": {"meta.helm.sh/release-name": "stencil", "meta.helm.sh/release-namespace": "stencil-system"}}`
	server := map[string][]string{"GET /version": {`{"gitVersion": "v1.34.1"}`}, webhooksAt: {`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList", "items": []}`}}
	for name, tc := range map[string]struct {
		flags   string
		answers []map[string][]string
	}{
		"a fresh cluster":            {"", []map[string][]string{kubeVirtOf("v1.8.2", "")}},
		"nothing else":               {"", nil},
		"an old API server":          {"", []map[string][]string{{"GET /version": {`{"gitVersion": "v1.29.3"}`}}}},
		"installed":                  {"", []map[string][]string{kubeVirtOf("v1.8.2", `"virtTemplateDeployment": {"enabled": false}`), withDefinitions(ofHelm, true, 3)}},
		"installed, before 1.9":      {"", []map[string][]string{kubeVirtOf("v1.8.2", ""), withDefinitions(ofHelm, true, 3)}},
		"installed, upgraded to 1.9": {"", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofHelm, true, 3)}},
		"KubeVirt 1.9":               {"", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofOperator, true, 2)}},
		"KubeVirt 1.9, no templates": {"", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofOperator, true, 0)}},
		"KubeVirt 1.9, starting":     {"", []map[string][]string{kubeVirtOf("v1.9.0", "")}},
		"KubeVirt 1.9, gate off":     {"", []map[string][]string{kubeVirtOf("v1.9.0", `"developerConfiguration": {"disabledFeatureGates": ["Template"]}`)}},
		"KubeVirt 1.8, gate on":      {"", []map[string][]string{kubeVirtOf("v1.8.2", `"developerConfiguration": {"featureGates": ["Template"]}`), withDefinitions(ofOperator, false, 0)}},
		"templates that are rejected": {"", []map[string][]string{kubeVirtOf("v1.8.2", `"virtTemplateDeployment": {"enabled": false}`), withDefinitions(ofHelm, true, 1), {
			"GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplates": {`{"items": [` + fmt.Sprintf(usable, 0) + `,
				{"metadata": {"namespace": "golden", "name": "keys"}, "spec": {"parameters": [{"name": "KEYS", "value": "a\nb"}], "virtualMachine": {"metadata": {"annotations": {"keys": "${KEYS}"}}, "spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}},
				{"metadata": {"namespace": "golden", "name": "lots"}, "spec": {"parameters": [{"name": "P", "value": "lots"}], "virtualMachine": {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "${P}"}, "devices": {}}}}}}}}]}`},
		}}},
		"switched off": {"", []map[string][]string{kubeVirtOf("v1.9.0", `"virtTemplateDeployment": {"enabled": false}`), withDefinitions(ofOperator, false, 1)}},
		"switched off, guarded": {"", []map[string][]string{
			kubeVirtOf("v1.9.0", `"virtTemplateDeployment": {"enabled": false}`), withDefinitions(ofOperator, false, 1),
			{"GET /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/stencil-definitions": {plain}},
		}},
		"webhooks behind the defaults": {"", []map[string][]string{kubeVirtOf("v1.8.2", `"virtTemplateDeployment": {"enabled": false}`), {webhooksAt: {`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList", "items": [` + strings.Join([]string{
			webhook("virt-api-mutator", "kubevirt", "virtualmachines"), webhook("zz-stencil-defaults", "stencil", "virtualmachines"), webhook("zz-stencil-preview", "stencil", "virtualmachines"),
			webhook("zzz-agents", "ours", "virtualmachines"), webhook("zzz-all", "ours", "*"), webhook("zzz-pods", "ours", "pods"),
		}, ", ") + `]}`}}}},
		"leftovers": {"", []map[string][]string{kubeVirtOf("v1.8.2", `"virtTemplateDeployment": {"enabled": false}`), {
			webhooksAt: {`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList", "items": [{"metadata": {"name": "zz-stencil-defaults", "labels": {"app.kubernetes.io/part-of": "stencil"}, ` + ofRelease + `}]}`},
			"GET /apis/rbac.authorization.k8s.io/v1/clusterroles": listed("rbac.authorization.k8s.io/v1", "ClusterRole",
				`{"metadata": {"name": "stencil-defaults", `+ofRelease+`}, {"metadata": {"name": "stencil-kept", `+strings.Replace(ofRelease, "{", `{"helm.sh/resource-policy": "keep", `, 1)+`}, {"metadata": {"name": "other"}}`),
		}}},
		"external": {"--template-api External", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofOperator, true, 2)}},
		"external, as installed": {"", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofOperator, true, 2), {webhooksAt: {
			`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfigurationList", "items": [{"metadata": {"name": "a-stencil-render", "labels": {"app.kubernetes.io/part-of": "stencil", "app.kubernetes.io/instance": "stencil"}, "annotations": {"stencil.kubevirt.io/template-api": "External"}}}]}`,
		}}}},
		"external, switched off":     {"--template-api External", []map[string][]string{kubeVirtOf("v1.9.0", `"virtTemplateDeployment": {"enabled": false}`), withDefinitions(ofOperator, true, 2)}},
		"external, gate off":         {"--template-api External", []map[string][]string{kubeVirtOf("v1.9.0", `"developerConfiguration": {"disabledFeatureGates": ["Template"]}`)}},
		"external, KubeVirt 1.8":     {"--template-api External", []map[string][]string{kubeVirtOf("v1.8.2", "")}},
		"external, starting":         {"--template-api External", []map[string][]string{kubeVirtOf("v1.9.0", "")}},
		"external, taken over":       {"--template-api External", []map[string][]string{kubeVirtOf("v1.9.0", ""), withDefinitions(ofHelm, true, 2)}},
		"external, without KubeVirt": {"--template-api External", nil},
		"no such API":                {"--template-api Both", nil},

		"another release":  {"--release stencil/other", []map[string][]string{kubeVirtOf("v1.8.2", ""), withDefinitions(ofHelm, false, 0)}},
		"by hand, as JSON": {"-o json", []map[string][]string{withDefinitions(plain, false, 0)}},
		"no release":       {"--release stencil", nil},
		"forbidden":        {"", []map[string][]string{{definitionsAt + "virtualmachinetemplates.template.kubevirt.io": {respondWithError(403, "Forbidden", "customresourcedefinitions is forbidden")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := maps.Clone(server)
			for _, more := range tc.answers {
				maps.Copy(answers, more)
			}
			line := "install check"
			if tc.flags != "" {
				line += " " + tc.flags
			}
			compare(t, "install check, "+name, runInCluster(t, line, answers))
		})
	}
}
