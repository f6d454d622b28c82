package chart

import "testing"

const networkPolicy = "NetworkPolicy/stencil-manager"

// TestWhoMayCallTheWebhooks is about the two ways in which an admin limits the callers of the manager.
func TestWhoMayCallTheWebhooks(t *testing.T) {
	arguments := deployment + " {" + container + ".args}"
	runRenderCases(t, map[string]renderCase{
		"everybody, unless something is said": {
			want: map[string]any{
				deployment + " {" + pod + ".volumes}":            nil,
				deployment + " {" + container + ".volumeMounts}": nil,
			},
			absent: []string{networkPolicy},
		},
		"the addresses of API servers; probes and metrics are for everybody": {
			values: `{networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}]}}`,
			want: map[string]any{
				networkPolicy + " {.spec.podSelector.matchLabels}": managerSelector,
				networkPolicy + " {.spec.policyTypes}":             []string{"Ingress"},
				networkPolicy + " {.spec.ingress}": []any{
					map[string]any{
						"from":  []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/28"}}},
						"ports": []any{map[string]any{"port": "webhook", "protocol": "TCP"}},
					},
					map[string]any{"ports": []any{map[string]any{"port": "health", "protocol": "TCP"}}},
					map[string]any{"ports": []any{map[string]any{"port": "metrics", "protocol": "TCP"}}},
				},
			},
		},
		"metrics for the monitoring only": {
			values: `{networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}], metrics: [{podSelector: {matchLabels: {app: prometheus}}}]}}`,
			want: map[string]any{networkPolicy + " {.spec.ingress[2]}": map[string]any{
				"from":  []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "prometheus"}}}},
				"ports": []any{map[string]any{"port": "metrics", "protocol": "TCP"}},
			}},
		},
		"no rule for metrics that are not served": {
			values: `{manager: {metrics: {enabled: false}}, networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}]}}`,
			want:   map[string]any{networkPolicy + " {.spec.ingress[*].ports[0].port}": []string{"webhook", "health"}},
		},
		"no pods, no policy": {
			values: `{manager: {enabled: false}, webhooks: {url: "https://localhost:9443"}, networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}]}}`,
			absent: []string{networkPolicy},
		},
		"client certificates": {
			values: `{webhooks: {clientCA: {configMap: callers, names: [kube-apiserver, other]}}}`,
			want: map[string]any{
				arguments: items{"--webhook-client-ca-file=/etc/stencil/callers/ca.crt", "--webhook-client-names=kube-apiserver,other"},
				deployment + " {" + pod + ".volumes}": []any{
					map[string]any{"name": "callers", "configMap": map[string]any{"name": "callers"}},
				},
				deployment + " {" + container + ".volumeMounts}": []any{
					map[string]any{"name": "callers", "mountPath": "/etc/stencil/callers", "readOnly": true},
				},
			},
		},
		"client certificates of any name, beside a serving certificate in a file": {
			values: `{certificates: {provider: cert-manager}, webhooks: {clientCA: {configMap: callers}}}`,
			want: map[string]any{
				arguments: items{"--webhook-client-ca-file=/etc/stencil/callers/ca.crt"},
				deployment + " {" + pod + ".volumes[*].name}":                 []string{"certificates", "callers"},
				deployment + " {" + container + ".volumeMounts[*].mountPath}": []string{"/etc/stencil/certificates", "/etc/stencil/callers"},
			},
		},
		"a part of the decisions is logged": {
			values: `{policies: {decisionLog: {sample: 0.01}}}`,
			want:   map[string]any{arguments: items{"--decision-log-sample=0.01"}},
		},
		"what runs machines beside KubeVirt": {
			values: `{audit: {launcherImages: [registry.example.com:5000/mesh/proxy, quay.example.com/virt-launcher], ownerGroups: [infrastructure.cluster.x-k8s.io]}, entryPoints: {hotplug: Open, clone: Open}}`,
			want: map[string]any{arguments: items{
				"--launcher-images=registry.example.com:5000/mesh/proxy,quay.example.com/virt-launcher", "--owner-groups=infrastructure.cluster.x-k8s.io", "--open-entry-points=clone,hotplug",
			}},
		},
		"what the cluster adds to machines": {
			values: `{audit: {clusterAdditions: [spec.template.spec.tolerations, "spec.template.spec.nodeSelector[\"example.com/zone\"]"]}}`,
			want:   map[string]any{arguments: items{`--cluster-additions=spec.template.spec.tolerations,spec.template.spec.nodeSelector["example.com/zone"]`}},
		},
	})
}
