package chart

import (
	"strings"
	"testing"
)

// Values that are invalid are rejected before anything reaches the API server, with a message that names the value.
func TestValuesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		values string
		want   string
	}{
		"an unknown value at the top": {
			values: `{replicas: 3}`,
			want:   "additional properties 'replicas' not allowed",
		},
		"a misspelt value below": {
			values: `{manager: {replica: 3}}`,
			want:   "at '/manager': additional properties 'replica' not allowed",
		},
		"an unknown provider of certificates": {
			values: `{certificates: {provider: vault}}`,
			want:   "at '/certificates/provider': value must be one of 'self-managed', 'cert-manager', 'secret', 'virt-operator'",
		},
		"an entry point that is neither open nor closed": {
			values: `{entryPoints: {clone: Ajar}}`,
			want:   "at '/entryPoints/clone': value must be one of 'Closed', 'Open'",
		},
		"templates of an unknown component": {
			values: `{templateAPI: Both}`,
			want:   "at '/templateAPI': value must be one of 'Own', 'External'",
		},
		"KubeVirt's API of templates, and Stencil's server of it": {
			values: `{templateAPI: External, objects: {resources: []}}`,
			want:   "templateAPI is External: set apiserver.enabled to false, because KubeVirt's own servers have process and create\n",
		},
		"KubeVirt's API of templates, and all that it does not have": {
			values: `{templateAPI: External}`,
			want:   "set apiserver.enabled to false, because KubeVirt's own servers have process and create; set objects.resources to [], because KubeVirt's definition of templates has no objects",
		},
		"entry points under their former name": {
			values: `{doors: {clone: Open}}`,
			want:   "at '/doors': value must be 'renamed to entryPoints'",
		},
		"an entry point that does not exist": {
			values: `{entryPoints: {window: Open}}`,
			want:   "at '/entryPoints': additional properties 'window' not allowed",
		},
		"a policy that the library does not have": {
			values: `{policies: {library: {allowed-registrys: {enabled: true}}}}`,
			want:   "at '/policies/library': additional properties 'allowed-registrys' not allowed",
		},
		"a parameter that the policy does not have": {
			values: `{policies: {library: {allowed-registries: {parameters: {registry: [quay.io]}}}}}`,
			want:   "additional properties 'registry' not allowed",
		},
		"a parameter of another type than the policy's": {
			values: `{policies: {library: {size-limits: {parameters: {maxCPUs: "4"}}}}}`,
			want:   "at '/policies/library/size-limits/parameters/maxCPUs': got string, want integer",
		},
		"a policy of defaults that there is not": {
			values: `{defaulting: {machineType: alias}}`,
			want:   "at '/defaulting/machineType': value must be one of 'pin', 'keep'",
		},
		"machine types of Debian's QEMU": {
			values: `{defaulting: {enabled: true, variant: Debian}}`,
			want:   "defaulting.variant is Debian and defaulting.machineType is pin: set defaulting.machineType to keep, because the nodes may not have the machine types of Debian's QEMU, or defaulting.variant to KubeVirt\n",
		},
		"an image of stencil-defaulter that there is not": {
			values: `{defaulting: {variant: Fedora}}`,
			want:   "at '/defaulting/variant': value must be one of 'KubeVirt', 'Debian'",
		},
		"a mirror with a scheme": {
			values: `{imageRegistry: "https://mirror.example.com"}`,
			want:   "at '/imageRegistry': 'https://mirror.example.com' does not match pattern",
		},
		"MAC addresses in a way that there is not": {
			values: `{defaulting: {mac: pool}}`,
			want:   "at '/defaulting/mac': value must be one of 'never', 'generate'",
		},
		"no replicas": {
			values: `{manager: {replicas: 0}}`,
			want:   "at '/manager/replicas': minimum: got 0, want 1",
		},
		"a replica count in quotes": {
			values: `{manager: {replicas: "2"}}`,
			want:   "at '/manager/replicas': got string, want integer",
		},
		"a webhook URL without TLS": {
			values: `{webhooks: {url: "http://stencil.example.com"}}`,
			want:   "at '/webhooks/url': 'http://stencil.example.com' does not match pattern",
		},
		"a webhook URL with a query, which the API server refuses": {
			values: `{webhooks: {url: "https://stencil.example.com?x=y"}}`,
			want:   "at '/webhooks/url'",
		},
		"a timeout that the API server does not wait": {
			values: `{webhooks: {timeoutSeconds: 31}}`,
			want:   "at '/webhooks/timeoutSeconds': maximum: got 31, want 30",
		},
		"a misspelt selector": {
			values: `{webhooks: {namespaceSelector: {matchLabel: {a: b}}}}`,
			want:   "at '/webhooks/namespaceSelector': additional properties 'matchLabel' not allowed",
		},
		"an issuer without a name": {
			values: `{certificates: {certManager: {issuerRef: {kind: ClusterIssuer}}}}`,
			want:   "properties 'name' required, if 'kind' exists",
		},
		"a duration without a unit": {
			values: `{certificates: {selfManaged: {duration: "24"}}}`,
			want:   "at '/certificates/selfManaged/duration'",
		},
		"an authority that is not PEM": {
			values: `{certificates: {secret: {caBundle: LS0tLS1CRUdJTg==}}}`,
			want:   "at '/certificates/secret/caBundle'",
		},
		"a log level that nobody knows": {
			values: `{manager: {logLevel: loud}}`,
			want:   "at '/manager/logLevel'",
		},
		"an extra argument that is no flag": {
			values: `{manager: {extraArgs: [verbose]}}`,
			want:   "at '/manager/extraArgs/0'",
		},
		"a disruption budget that blocks every drain": {
			values: `{manager: {podDisruptionBudget: {maxUnavailable: 0}}}`,
			want:   "at '/manager/podDisruptionBudget/maxUnavailable'",
		},
		"a privileged port, which the manager cannot open": {
			values: `{manager: {metrics: {port: 80}}}`,
			want:   "at '/manager/metrics/port': minimum: got 80, want 1,024",
		},
		"a network policy that keeps the API servers away": {
			values: `{networkPolicy: {enabled: true}}`,
			want:   "networkPolicy.enabled without networkPolicy.webhooks would keep the API servers away",
		},
		"names of callers without an authority": {
			values: `{webhooks: {clientCA: {names: [kube-apiserver]}}}`,
			want:   "webhooks.clientCA.names without webhooks.clientCA.configMap says nothing",
		},
		"a permitted image with a tag": {
			values: `{audit: {launcherImages: ["registry.example.com/mesh/proxy:v1"]}}`,
			want:   "at '/audit/launcherImages/0'",
		},
		"a permitted owner with a version": {
			values: `{audit: {ownerGroups: [example.com/v1]}}`,
			want:   "at '/audit/ownerGroups/0'",
		},
		"an addition of the cluster that is not in spec": {
			values: `{audit: {clusterAdditions: [metadata.labels.a]}}`,
			want:   "at '/audit/clusterAdditions/0'",
		},
		"more decisions in the log than there are": {
			values: `{policies: {decisionLog: {sample: 100}}}`,
			want:   "at '/policies/decisionLog/sample'",
		},
		"no manager in the cluster and none outside": {
			values: `{manager: {enabled: false}}`,
			want:   "manager.enabled is false, so the API server has nothing to call: set webhooks.url",
		},
		"a Secret of no name": {
			values: `{certificates: {provider: secret}}`,
			want:   "certificates.provider is secret: set certificates.secret.name",
		},
		"a Secret without an authority": {
			values: `{certificates: {provider: secret, secret: {name: stencil-tls}}}`,
			want:   "certificates.provider is secret: set certificates.secret.caBundle",
		},
		"a ServiceAccount of no name that exists already": {
			values: `{serviceAccount: {create: false}}`,
			want:   "serviceAccount.create is false: set serviceAccount.name",
		},
		"a ServiceMonitor of metrics that are not served": {
			values: `{manager: {metrics: {enabled: false, serviceMonitor: {enabled: true}}}}`,
			want:   "manager.metrics.serviceMonitor.enabled needs manager.metrics.enabled",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, ok := helm(t, tc.values, templateArguments(t, "stencil")...)
			if ok {
				t.Fatalf("accepted:\n%s", stdout)
			}
			if !strings.Contains(stderr, tc.want) {
				t.Errorf("refused with\n%s\nwhich does not contain\n%s", stderr, tc.want)
			}
		})
	}
}

func TestOldKubernetesIsRefused(t *testing.T) {
	_, stderr, ok := helm(t, "", "template", "stencil", chartFolder(t), "--kube-version", "1.29.9")
	if ok || !strings.Contains(stderr, "chart requires kubeVersion: >=1.30.0-0") {
		t.Errorf("accepted, or refused for another reason: %s", stderr)
	}
}
