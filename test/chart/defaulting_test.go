package chart

import (
	"maps"
	"strings"
	"testing"
)

const (
	defaultsWebhook = "manager/MutatingWebhookConfiguration/zz-stencil-defaults"
	sidecar         = ".spec.template.spec.initContainers[0]"
	apiserver       = "Deployment/stencil-apiserver"
)

func TestDefaulting(t *testing.T) {
	runRenderCases(t, map[string]renderCase{
		"nothing of it unless it is switched on": {
			want: map[string]any{
				deployment + " {" + pod + ".initContainers}":                                      nil,
				deployment + " {" + pod + ".volumes}":                                             nil,
				apiserver + " {" + pod + ".initContainers}":                                       nil,
				apiserver + " {" + pod + ".volumes}":                                              nil,
				apiserver + " {" + pod + ".automountServiceAccountToken}":                         true,
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"kubevirts\")].verbs}":  nil,
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"namespaces\")].verbs}": []string{"list", "watch"},
				"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"kubevirts\")].verbs}":    []string{"list"},
			},
			absent: []string{defaultsWebhook, strings.TrimPrefix(defaultsWebhook, "manager/"), "ClusterRole/stencil-defaults"},
		},
		"a webhook that is called last, again when others change something, and that nobody has to answer": {
			values: `{defaulting: {enabled: true}}`,
			want: map[string]any{
				// The manager adds them, together with the caBundle.
				strings.TrimPrefix(defaultsWebhook, "manager/") + " {.webhooks}": nil,
				defaultsWebhook + " {.webhooks[*].name}":                         "defaults.template.kubevirt.io",
				defaultsWebhook + " {.webhooks[0].clientConfig}":                 map[string]any{"service": map[string]any{"name": "stencil-webhook", "namespace": "stencil-system", "path": "/mutate-virtualmachine-defaults", "port": 443}},
				defaultsWebhook + " {.webhooks[0].failurePolicy}":                "Ignore",
				defaultsWebhook + " {.webhooks[0].reinvocationPolicy}":           "IfNeeded",
				defaultsWebhook + " {.webhooks[0].sideEffects}":                  "None",
				defaultsWebhook + " {.webhooks[0].namespaceSelector}": map[string]any{"matchExpressions": []any{
					map[string]any{"key": "defaults.template.kubevirt.io/skip", "operator": "NotIn", "values": []string{"true"}},
				}},
				defaultsWebhook + " {.webhooks[0].rules[0].operations}":                                                    []string{"CREATE", "UPDATE"},
				defaultsWebhook + " {.webhooks[0].matchConditions[*].name}":                                                []string{"not-skipped", "create-or-spec-or-record-change", "create-or-not-exempt"},
				"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"kubevirts\")].verbs}":                             []string{"list", "watch"},
				"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"mutatingwebhookconfigurations\")].resourceNames}": []string{"a-stencil-render", "zz-stencil-defaults", "zz-stencil-preview"},
				deployment + " {" + container + ".args}": items{
					"--webhook-configurations=mutating/a-stencil-render,validating/stencil-validate,validating/stencil-policies,mutating/zz-stencil-defaults,mutating/zz-stencil-preview",
					"--defaulting-socket=/run/stencil/defaulter.sock", "--defaulting-failure-policy=Ignore", "--defaulting-machine-type=pin",
					"--defaulting-pci-address=true", "--defaulting-firmware-uuid=true", "--defaulting-mac=never", "--defaulting-cpu=true", "--defaulting-memory=true",
				},
			},
		},
		"a policy of one's own": {
			values: `{defaulting: {enabled: true, failurePolicy: Fail, machineType: keep, pciAddress: false, firmwareUUID: false, mac: generate, cpu: false, memory: false}}`,
			want: map[string]any{
				defaultsWebhook + " {.webhooks[0].failurePolicy}": "Fail",
				deployment + " {" + container + ".args}": items{
					"--defaulting-failure-policy=Fail", "--defaulting-machine-type=keep", "--defaulting-pci-address=false",
					"--defaulting-firmware-uuid=false", "--defaulting-mac=generate", "--defaulting-cpu=false", "--defaulting-memory=false",
				},
				"ClusterRole/stencil-manager {.rules[?(@.resourceNames[0]==\"kubemacpool-mutator\")].verbs}":     []string{"list", "watch"},
				"ClusterRole/stencil-manager {.rules[?(@.resourceNames[0]==\"kubemacpool-mutator\")].resources}": []string{"mutatingwebhookconfigurations"},
			},
		},
		"the image with KubeVirt's libvirt pins machine types": {
			values: `{defaulting: {enabled: true, variant: KubeVirt, machineType: pin, image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}}`,
			want: map[string]any{
				deployment + " {" + sidecar + ".image}":  "ghcr.io/vmstencil/stencil-defaulter@sha256:0000000000000000000000000000000000000000000000000000000000000000",
				deployment + " {" + container + ".args}": items{"--defaulting-machine-type=pin"},
			},
		},
		"the image with Debian's libvirt keeps them": {
			values: `{defaulting: {enabled: true, variant: Debian, machineType: keep, debianImage: {pullPolicy: Always}}}`,
			want: map[string]any{
				deployment + " {" + sidecar + ".image}":           "ghcr.io/vmstencil/stencil-defaulter-debian:0.1.0",
				deployment + " {" + sidecar + ".imagePullPolicy}": "Always",
				apiserver + " {" + sidecar + ".image}":            "ghcr.io/vmstencil/stencil-defaulter-debian:0.1.0",
				deployment + " {" + container + ".args}":          items{"--defaulting-machine-type=keep"},
			},
		},
		"a mirror has all images": {
			values: `{imageRegistry: "mirror.example.com:5000/stencil/", defaulting: {enabled: true}, apiserver: {image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}}`,
			want: map[string]any{
				deployment + " {" + container + ".image}":         "mirror.example.com:5000/stencil/stencil-manager:0.1.0",
				deployment + " {" + sidecar + ".image}":           "mirror.example.com:5000/stencil/stencil-defaulter:0.1.0",
				apiserver + " {" + container + ".image}":          "mirror.example.com:5000/stencil/stencil-apiserver@sha256:0000000000000000000000000000000000000000000000000000000000000000",
				"Job/stencil-uninstall {" + container + ".image}": "mirror.example.com:5000/stencil/stencil-manager:0.1.0",
			},
		},
		"the defaulter is beside the manager and meets the restricted profile": {
			values: `{defaulting: {enabled: true}}`,
			want: map[string]any{
				deployment + " {" + sidecar + ".name}":          "defaulter",
				deployment + " {" + sidecar + ".restartPolicy}": "Always",
				deployment + " {" + sidecar + ".image}":         "ghcr.io/vmstencil/stencil-defaulter:0.1.0",
				deployment + " {" + sidecar + ".args}":          []string{"--socket=/run/stencil/defaulter.sock", "--root=/var/lib/stencil-defaulter"},
				deployment + " {" + sidecar + ".securityContext}": map[string]any{
					"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
					"capabilities":   map[string]any{"drop": []string{"ALL"}},
					"seccompProfile": map[string]any{"type": "RuntimeDefault"},
				},
				deployment + " {" + sidecar + ".resources.limits}":                             map[string]any{"memory": "256Mi"},
				deployment + " {" + sidecar + ".ports}":                                        nil,
				deployment + " {" + pod + ".hostNetwork}":                                      nil,
				deployment + " {" + pod + ".hostPID}":                                          nil,
				deployment + " {" + pod + ".securityContext.runAsNonRoot}":                     true,
				deployment + " {" + sidecar + ".env}":                                          nil,
				deployment + " {" + sidecar + ".volumeMounts[*].mountPath}":                    []string{"/run/stencil", "/var/lib/stencil-defaulter"},
				deployment + " {" + pod + ".volumes[?(@.name==\"defaulter-state\")].emptyDir}": map[string]any{"medium": "Memory", "sizeLimit": "64Mi"},
				deployment + " {" + sidecar + ".volumeMounts[*].name}":                         []string{"defaulter-socket", "defaulter-state"},
			},
		},
		"and has no token, which the manager mounts itself": {
			values: `{defaulting: {enabled: true}}`,
			want: map[string]any{
				deployment + " {" + pod + ".automountServiceAccountToken}":                                                false,
				deployment + " {" + container + ".volumeMounts[*].name}":                                                  []string{"token", "defaulter-socket"},
				deployment + " {" + container + ".volumeMounts[0].mountPath}":                                             "/var/run/secrets/kubernetes.io/serviceaccount",
				deployment + " {" + container + ".volumeMounts[0].readOnly}":                                              true,
				deployment + " {" + pod + ".volumes[?(@.name==\"token\")].projected.sources[*].serviceAccountToken.path}": "token",
			},
		},
		"together with a certificate that exists": {
			values: `{defaulting: {enabled: true, image: {repository: mirror.example/defaulter, tag: v2}, extraArgs: [--queue=8], stateSize: 32Mi}, certificates: {provider: cert-manager}}`,
			want: map[string]any{
				deployment + " {" + container + ".volumeMounts[*].name}":                                 []string{"token", "defaulter-socket", "certificates"},
				deployment + " {" + pod + ".volumes[*].name}":                                            []string{"token", "defaulter-socket", "defaulter-state", "certificates"},
				deployment + " {" + sidecar + ".image}":                                                  "mirror.example/defaulter:v2",
				deployment + " {" + sidecar + ".args[-1:]}":                                              "--queue=8",
				deployment + " {" + pod + ".volumes[?(@.name==\"defaulter-state\")].emptyDir.sizeLimit}": "32Mi",
			},
		},
	})
}

// The server of the aggregated API has the same defaulter, with the same settings.
func TestDefaultingBesideTheAPIServer(t *testing.T) {
	beside := func(path string, value any) map[string]any {
		return map[string]any{deployment + " {" + path + "}": value, apiserver + " {" + path + "}": value}
	}
	all := map[string]any{}
	for _, some := range []map[string]any{
		beside(sidecar+".name", "defaulter"),
		beside(sidecar+".restartPolicy", "Always"),
		beside(sidecar+".image", "mirror.example/defaulter:v2"),
		beside(sidecar+".args", []string{"--socket=/run/stencil/defaulter.sock", "--root=/var/lib/stencil-defaulter", "--queue=8"}),
		beside(sidecar+".securityContext", map[string]any{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
			"capabilities":   map[string]any{"drop": []string{"ALL"}},
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		}),
		beside(sidecar+".resources.limits", map[string]any{"memory": "300Mi"}),
		beside(sidecar+".env", nil),
		beside(sidecar+".ports", nil),
		beside(sidecar+".volumeMounts[*].name", []string{"defaulter-socket", "defaulter-state"}),
		beside(pod+".automountServiceAccountToken", false),
		beside(pod+".volumes[*].name", []string{"token", "defaulter-socket", "defaulter-state", "certificates"}),
		beside(pod+".volumes[?(@.name==\"token\")].projected.sources[*].serviceAccountToken.path", "token"),
		beside(pod+".volumes[?(@.name==\"defaulter-state\")].emptyDir", map[string]any{"medium": "Memory", "sizeLimit": "32Mi"}),
		beside(container+".volumeMounts[*].mountPath", []string{"/var/run/secrets/kubernetes.io/serviceaccount", "/run/stencil", "/etc/stencil/certificates"}),
		beside(container+".args", items{
			"--defaulting-socket=/run/stencil/defaulter.sock", "--defaulting-machine-type=keep", "--defaulting-pci-address=false",
			"--defaulting-firmware-uuid=false", "--defaulting-mac=generate", "--defaulting-cpu=false", "--defaulting-memory=false",
		}),
		{
			"ClusterRole/stencil-apiserver {.rules[?(@.resourceNames[0]==\"kubemacpool-mutator\")].verbs}": []string{"list", "watch"},
			"ClusterRole/stencil-defaults {.rules[*]}": map[string]any{
				"apiGroups": []string{"subresources.template.kubevirt.io"}, "resources": []string{"defaults"}, "verbs": []string{"create"},
			},
		},
	} {
		maps.Copy(all, some)
	}
	runRenderCases(t, map[string]renderCase{
		"the same": {
			values: `{defaulting: {enabled: true, image: {repository: mirror.example/defaulter, tag: v2}, extraArgs: [--queue=8], stateSize: 32Mi, resources: {limits: {memory: 300Mi}},
				machineType: keep, pciAddress: false, firmwareUUID: false, mac: generate, cpu: false, memory: false}, certificates: {provider: cert-manager}}`,
			want: all,
		},
		"without MAC addresses it reads no VirtualMachines": {
			values: `{defaulting: {enabled: true}}`,
			want: map[string]any{
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"virtualmachines\")].verbs}":               []string{"create"},
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"kubevirts\")].verbs}":                     []string{"list", "watch"},
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"namespaces\")].verbs}":                    [][]string{{"list", "watch"}, {"get"}},
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"mutatingwebhookconfigurations\")].verbs}": nil,
			},
		},
		"without that server there is no right to call it": {
			values: `{defaulting: {enabled: true}, apiserver: {enabled: false}}`,
			absent: []string{apiserver, "ClusterRole/stencil-defaults"},
		},
		"outside the cluster it has the flags": {
			values:  `{defaulting: {enabled: true}, apiserver: {external: {host: api.example.com, port: 9444}}}`,
			absent:  []string{apiserver},
			present: []string{"ClusterRole/stencil-defaults"},
		},
	})
}
