package chart

import (
	"encoding/base64"
	"strings"
	"testing"
)

// authority has the form of a certificate; no test parses it.
const authority = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

var secretValues = `{certificates: {provider: secret, secret: {name: stencil-tls, caBundle: "` + strings.ReplaceAll(authority, "\n", `\n`) + `"}}}`

func TestCertificates(t *testing.T) {
	fromFiles := items{"--certificate-source=files", "--certificate-directory=/etc/stencil/certificates"}
	mounted := []any{map[string]any{"name": "certificates", "mountPath": "/etc/stencil/certificates", "readOnly": true}}
	volume := func(secret string) []any {
		return []any{map[string]any{"name": "certificates", "secret": map[string]any{"secretName": secret}}}
	}
	// Rights that only a manager with an authority of its own needs.
	noSecrets := map[string]any{
		"Role/stencil-manager {.rules[?(@.resources[0]==\"secrets\")].resourceNames}":                 []string{"stencil-object-keys"},
		"ClusterRole/stencil-manager {.rules[?(@.apiGroups[0]==\"admissionregistration.k8s.io\")]}":   nil,
		"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"virtualmachinetemplates\")].verbs}":  []any{[]string{"get", "list", "watch"}, []string{"create", "patch", "delete"}},
		"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"subjectaccessreviews\")].verbs}":     []string{"create"},
		"Role/stencil-manager {.rules[?(@.resources[0]==\"leases\")].resourceNames}":                  []string{"stencil-manager"},
		"MutatingWebhookConfiguration/a-stencil-render {.webhooks[0].clientConfig.service.path}":      "/mutate-virtualmachine-render",
		"ValidatingWebhookConfiguration/stencil-validate {.webhooks[0].clientConfig.service.path}":    "/validate-virtualmachinetemplate",
		"Deployment/stencil-manager {.spec.template.spec.containers[0].securityContext.runAsNonRoot}": nil,
	}
	runRenderCases(t, map[string]renderCase{
		"self-managed leaves caBundle to the manager, and gives it the rights to write it": {
			want: map[string]any{
				renderWebhook + " {.webhooks[0].clientConfig.caBundle}":   nil,
				validateWebhook + " {.webhooks[0].clientConfig.caBundle}": nil,
				renderWebhook + " {.metadata.annotations}":                nil,
				deployment + " {" + pod + ".volumes}":                     nil,
				deployment + " {" + container + ".volumeMounts}":          nil,
				"ClusterRole/stencil-manager {.rules[?(@.apiGroups[0]==\"admissionregistration.k8s.io\")]}": []any{
					map[string]any{
						"apiGroups": []string{"admissionregistration.k8s.io"}, "resources": []string{"mutatingwebhookconfigurations"},
						"resourceNames": []string{"a-stencil-render", "zz-stencil-preview"}, "verbs": []string{"get", "list", "watch", "patch"},
					},
					map[string]any{
						"apiGroups": []string{"admissionregistration.k8s.io"}, "resources": []string{"validatingwebhookconfigurations"},
						"resourceNames": []string{"stencil-validate", "stencil-policies"}, "verbs": []string{"get", "list", "watch", "patch"},
					},
				},
			},
			absent: []string{"Certificate/stencil-webhook", "Issuer/stencil-webhook-root"},
		},
		"self-managed with other lifetimes": {
			values: `{certificates: {selfManaged: {authorityDuration: 100h, duration: 30m}}}`,
			want: map[string]any{
				deployment + " {" + container + ".args}": items{"--certificate-authority-duration=100h", "--certificate-duration=30m"},
			},
		},
		"cert-manager with an authority of the chart's own": {
			values: `{certificates: {provider: cert-manager}}`,
			want: merged(noSecrets, map[string]any{
				renderWebhook + " {.metadata.annotations}":                                map[string]any{"cert-manager.io/inject-ca-from": "stencil-system/stencil-webhook"},
				validateWebhook + " {.metadata.annotations}":                              map[string]any{"cert-manager.io/inject-ca-from": "stencil-system/stencil-webhook"},
				renderWebhook + " {.webhooks[0].clientConfig.caBundle}":                   nil,
				deployment + " {" + container + ".args}":                                  fromFiles,
				deployment + " {" + container + ".volumeMounts}":                          mounted,
				deployment + " {" + pod + ".volumes}":                                     volume("stencil-webhook-tls"),
				"Issuer/stencil-webhook-root {.spec}":                                     map[string]any{"selfSigned": map[string]any{}},
				"Certificate/stencil-webhook-authority {.spec.isCA}":                      true,
				"Certificate/stencil-webhook-authority {.spec.issuerRef.name}":            "stencil-webhook-root",
				"Issuer/stencil-webhook-authority {.spec.ca.secretName}":                  "stencil-webhook-authority",
				"Certificate/stencil-webhook-authority {.spec.secretName}":                "stencil-webhook-authority",
				"Certificate/stencil-webhook {.spec.issuerRef.name}":                      "stencil-webhook-authority",
				"Certificate/stencil-webhook {.spec.secretName}":                          "stencil-webhook-tls",
				"Certificate/stencil-webhook {.spec.dnsNames}":                            []string{"stencil-webhook.stencil-system.svc", "stencil-webhook.stencil-system.svc.cluster.local"},
				"Certificate/stencil-webhook {.spec.duration}":                            "2160h",
				"Certificate/stencil-webhook {.spec.renewBefore}":                         "720h",
				"Certificate/stencil-webhook {.spec.privateKey.rotationPolicy}":           "Always",
				"Certificate/stencil-webhook-authority {.spec.privateKey.rotationPolicy}": "Never",
			}),
		},
		"cert-manager with an issuer that exists": {
			values: `
certificates:
  provider: cert-manager
  certManager: {issuerRef: {name: corporate, kind: ClusterIssuer, group: cert-manager.io}, duration: 48h, renewBefore: 12h}
`,
			want: map[string]any{
				"Certificate/stencil-webhook {.spec.issuerRef}":   map[string]any{"name": "corporate", "kind": "ClusterIssuer", "group": "cert-manager.io"},
				"Certificate/stencil-webhook {.spec.duration}":    "48h",
				"Certificate/stencil-webhook {.spec.renewBefore}": "12h",
			},
			absent: []string{"Issuer/stencil-webhook-root", "Issuer/stencil-webhook-authority", "Certificate/stencil-webhook-authority"},
		},
		"cert-manager for a manager outside the cluster certifies the name in the URL": {
			values: `{certificates: {provider: cert-manager}, manager: {enabled: false}, webhooks: {url: "https://stencil.example.com"}}`,
			want:   map[string]any{"Certificate/stencil-webhook {.spec.dnsNames}": []string{"stencil.example.com"}},
		},
		"cert-manager for a manager at an address": {
			values: `{certificates: {provider: cert-manager}, manager: {enabled: false}, webhooks: {url: "https://[fd00::1]:9443"}}`,
			want: map[string]any{
				"Certificate/stencil-webhook {.spec.dnsNames}":    nil,
				"Certificate/stencil-webhook {.spec.ipAddresses}": []string{"fd00::1"},
			},
		},
		"a Secret that exists is mounted, and its authority given to the API server": {
			values: secretValues,
			want: merged(noSecrets, map[string]any{
				renderWebhook + " {.webhooks[0].clientConfig.caBundle}":   base64.StdEncoding.EncodeToString([]byte(authority)),
				validateWebhook + " {.webhooks[0].clientConfig.caBundle}": base64.StdEncoding.EncodeToString([]byte(authority)),
				renderWebhook + " {.metadata.annotations}":                nil,
				deployment + " {" + container + ".args}":                  fromFiles,
				deployment + " {" + container + ".volumeMounts}":          mounted,
				deployment + " {" + pod + ".volumes}":                     volume("stencil-tls"),
			}),
			absent: []string{"Certificate/stencil-webhook"},
		},
		"a Secret whose authority the API server's host trusts": {
			values: `{certificates: {provider: secret, secret: {name: stencil-tls}}, webhooks: {url: "https://stencil.example.com"}}`,
			want:   map[string]any{renderWebhook + " {.webhooks[0].clientConfig}": map[string]any{"url": "https://stencil.example.com/mutate-virtualmachine-render"}},
		},
	})
}

func merged(all ...map[string]any) map[string]any {
	result := map[string]any{}
	for _, one := range all {
		for key, value := range one {
			result[key] = value
		}
	}
	return result
}
