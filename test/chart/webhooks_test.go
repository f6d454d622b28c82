package chart

import "testing"

const (
	renderWebhook    = "MutatingWebhookConfiguration/a-stencil-render"
	templatesWebhook = "ValidatingWebhookConfiguration/stencil-validate"
)

func TestWebhooks(t *testing.T) {
	service := func(path string) map[string]any {
		return map[string]any{"service": map[string]any{
			"name": "stencil-webhook", "namespace": "stencil-system", "path": path, "port": 443,
		}}
	}
	runRenderCases(t, map[string]renderCase{
		"rendering fails closed, is called once, and for VirtualMachines of every version": {
			want: map[string]any{
				renderWebhook + " {.webhooks[*].name}":                    "render.template.kubevirt.io",
				renderWebhook + " {.webhooks[0].clientConfig}":            service("/mutate-virtualmachine-render"),
				renderWebhook + " {.webhooks[0].failurePolicy}":           "Fail",
				renderWebhook + " {.webhooks[0].matchPolicy}":             "Equivalent",
				renderWebhook + " {.webhooks[0].reinvocationPolicy}":      "Never",
				renderWebhook + " {.webhooks[0].sideEffects}":             "None",
				renderWebhook + " {.webhooks[0].timeoutSeconds}":          10,
				renderWebhook + " {.webhooks[0].admissionReviewVersions}": []string{"v1"},
				renderWebhook + " {.webhooks[0].namespaceSelector}":       nil,
				renderWebhook + " {.webhooks[0].objectSelector}":          nil,
				renderWebhook + " {.webhooks[0].rules}": []any{map[string]any{
					"apiGroups": []string{"kubevirt.io"}, "apiVersions": []string{"v1", "v1alpha3"},
					"operations": []string{"CREATE", "UPDATE"}, "resources": []string{"virtualmachines"}, "scope": "Namespaced",
				}},
				renderWebhook + " {.webhooks[0].matchConditions[*].name}": []string{
					"has-template-ref", "create-or-relevant-change", "create-or-not-exempt",
				},
			},
		},
		"templates are judged in both versions, not their status": {
			want: map[string]any{
				templatesWebhook + " {.webhooks[*].name}":                    "virtualmachinetemplate.validate.template.kubevirt.io",
				templatesWebhook + " {.webhooks[0].clientConfig}":            service("/validate-virtualmachinetemplate"),
				templatesWebhook + " {.webhooks[0].failurePolicy}":           "Fail",
				templatesWebhook + " {.webhooks[0].matchPolicy}":             "Equivalent",
				templatesWebhook + " {.webhooks[0].sideEffects}":             "None",
				templatesWebhook + " {.webhooks[0].timeoutSeconds}":          10,
				templatesWebhook + " {.webhooks[0].admissionReviewVersions}": []string{"v1"},
				templatesWebhook + " {.webhooks[0].rules}": []any{map[string]any{
					"apiGroups": []string{"template.kubevirt.io"}, "apiVersions": []string{"v1alpha1", "v1beta1"},
					"operations": []string{"CREATE", "UPDATE"}, "resources": []string{"virtualmachinetemplates"}, "scope": "Namespaced",
				}},
			},
		},
		"a URL takes the place of the Service, and stands in the certificate": {
			values: `{webhooks: {url: "https://stencil.example.com:9443"}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].clientConfig}":    map[string]any{"url": "https://stencil.example.com:9443/mutate-virtualmachine-render"},
				templatesWebhook + " {.webhooks[0].clientConfig}": map[string]any{"url": "https://stencil.example.com:9443/validate-virtualmachinetemplate"},
				deployment + " {" + container + ".args}":          items{"--certificate-dns-names=stencil-webhook.stencil-system.svc,stencil-webhook.stencil-system.svc.cluster.local,stencil.example.com"},
			},
		},
		"a URL with a path of its own": {
			values: `{webhooks: {url: "https://gateway.example.com/stencil/"}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].clientConfig.url}": "https://gateway.example.com/stencil/mutate-virtualmachine-render",
			},
		},
		"another timeout": {
			values: `{webhooks: {timeoutSeconds: 5}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].timeoutSeconds}":    5,
				templatesWebhook + " {.webhooks[0].timeoutSeconds}": 5,
			},
		},
		"some namespaces and objects only": {
			values: `
webhooks:
  namespaceSelector: {matchExpressions: [{key: virt, operator: Exists}]}
  objectSelector: {matchLabels: {stencil: "true"}}
`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].namespaceSelector.matchExpressions[0].key}":    "virt",
				renderWebhook + " {.webhooks[0].objectSelector.matchLabels.stencil}":           "true",
				templatesWebhook + " {.webhooks[0].namespaceSelector.matchExpressions[0].key}": "virt",
				templatesWebhook + " {.webhooks[0].objectSelector.matchLabels.stencil}":        "true",
			},
		},
		"other users are exempt, whatever characters their names have": {
			values: `{exemptUsers: ["system:serviceaccount:virt:operator", "o'brien \"bob\" <b>"]}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].matchConditions[2].expression}": `request.operation == 'CREATE' || !(request.userInfo.username in ` +
					`["system:serviceaccount:virt:operator","o'brien \"bob\" \u003cb\u003e"])`,
			},
		},
		"nobody is exempt": {
			values: `{exemptUsers: []}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].matchConditions[*].name}": []string{"has-template-ref", "create-or-relevant-change"},
			},
		},
	})
}
