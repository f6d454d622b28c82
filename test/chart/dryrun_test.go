package chart

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

// The API server validates every object that the chart can render: it rejects unknown fields, wrong types and CEL that does not compile.
func TestAPIServerAcceptsEveryVariation(t *testing.T) {
	plane := shared.Plane(t)
	knowCertManager(t, plane)
	if err := install.Chart(t.Context(), plane, install.Options{}); err != nil {
		t.Fatal(err)
	}
	// The namespace and the definitions remain: the other objects need them in a dry run.
	if err := install.Uninstall(t.Context(), plane, install.Options{}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"the defaults":                   `{}`,
		"a manager outside the cluster":  `{manager: {enabled: false}, webhooks: {url: "https://localhost:9443/stencil"}}`,
		"certificates from cert-manager": `{certificates: {provider: cert-manager}}`,
		"a corporate issuer":             `{certificates: {provider: cert-manager, certManager: {issuerRef: {name: corporate, kind: ClusterIssuer, group: cert-manager.io}}}}`,
		"a certificate that exists":      secretValues,
		"everything set": `
fullnameOverride: vmt
commonLabels: {team: virt}
exemptUsers: ["o'brien \"bob\" <b>"]
serviceAccount: {name: robot, annotations: {a: b}}
manager:
  replicas: 3
  image: {repository: mirror.example/stencil, tag: v2, digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", pullPolicy: Always}
  imagePullSecrets: [{name: mirror}]
  logLevel: 4
  extraArgs: [--kube-api-qps=50]
  tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}
  topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]
  priorityClassName: system-cluster-critical
  podAnnotations: {a: b}
  podLabels: {team: virt}
  podDisruptionBudget: {maxUnavailable: 50%}
  shutdown: {delaySeconds: 0, timeoutSeconds: 1}
  metrics: {port: 9090}
  pprof: {enabled: true}
audit: {clusterAdditions: ["spec.template.spec.tolerations"]}
networkPolicy:
  enabled: true
  webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}]
  metrics: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
webhooks:
  timeoutSeconds: 30
  clientCA: {configMap: callers, names: [kube-apiserver]}
  namespaceSelector: {matchExpressions: [{key: virt, operator: Exists}]}
  objectSelector: {matchLabels: {a: b}}
`,
	}
	for name, values := range cases {
		t.Run(name, func(t *testing.T) {
			manifest, stderr, ok := helm(t, values, templateArguments(t, "stencil")...)
			if !ok {
				t.Fatal(stderr)
			}
			result := kubectl(t, plane, nil, manifest, "apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-")
			if result.Code != 0 {
				t.Fatal(result.Stderr)
			}
			// Deprecated fields, and selectors that Kubernetes advises against, cause warnings.
			if strings.Contains(result.Stderr, "Warning") {
				t.Error(result.Stderr)
			}
			if want, got := len(decode(t, manifest)), strings.Count(result.Stdout, "serverside-applied (server dry run)"); got != want {
				t.Errorf("%d of %d objects were evaluated:\n%s", got, want, result.Stdout)
			}
		})
	}
}
