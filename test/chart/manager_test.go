package chart

import (
	"strings"
	"testing"
)

const (
	deployment = "Deployment/stencil-manager"
	pod        = ".spec.template.spec"
	container  = ".spec.template.spec.containers[0]"
)

func TestManager(t *testing.T) {
	runRenderCases(t, map[string]renderCase{
		"two replicas of the chart's own version that give way to each other": {
			want: map[string]any{
				deployment + " {.spec.replicas}": 2,
				deployment + " {.spec.strategy}": map[string]any{
					"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 1, "maxUnavailable": 0},
				},
				deployment + " {" + container + ".image}":           "ghcr.io/vmstencil/stencil-manager:0.1.0",
				deployment + " {" + container + ".imagePullPolicy}": "IfNotPresent",
				deployment + " {" + container + ".args}": []string{
					"--zap-log-level=info",
					"--webhook-bind-address=:9443",
					"--health-probe-bind-address=:8081",
					"--metrics-bind-address=:8080",
					"--shutdown-delay=10s",
					"--shutdown-timeout=30s",
					"--certificate-source=authority",
					"--certificate-authority-secret=stencil-webhook-ca",
					"--certificate-authority-duration=8760h",
					"--certificate-duration=24h",
					"--certificate-dns-names=stencil-webhook.stencil-system.svc,stencil-webhook.stencil-system.svc.cluster.local",
					"--webhook-configurations=mutating/a-stencil-render,validating/stencil-validate,validating/stencil-policies,mutating/zz-stencil-preview",
					"--api-services=apiservice/v1beta1.subresources.template.kubevirt.io,apiservice/v1alpha1.subresources.template.kubevirt.io",
					"--policy-webhooks=stencil-policies",
					"--policy-webhooks-trust=stencil-validate",
					"--policy-webhooks-address=stencil-system/stencil-webhook",
					"--policy-webhooks-timeout=10s",
					"--protected-objects=stencil-protected-objects",
					"--policy-library=stencil-policy-library",
					"--release=stencil-system/stencil",
					"--exempt-users=" + strings.Join([]string{
						"kubevirt-apiserver", "kubevirt-controller", "kubevirt-handler", "kubevirt-operator", "kubevirt-synchronization-controller", "cdi-sa",
						"system:serviceaccount:kube-system:generic-garbage-collector",
						"system:serviceaccount:kube-system:namespace-controller",
						"system:serviceaccount:stencil-system:stencil-objects",
					}, ","),
					"--exempt-binding=stencil-exempt-users",
					"--disk-account=system:serviceaccount:stencil-system:stencil-disks",
					"--image-account=system:serviceaccount:stencil-system:stencil-images",
					"--object-account=system:serviceaccount:stencil-system:stencil-objects",
					"--object-resources=secrets,configmaps,services",
					"--object-keys-secret=stencil-object-keys",
					"--apiserver-user=system:serviceaccount:stencil-system:stencil-apiserver",
					"--writable-instance-keys=" + strings.Join([]string{
						"kubectl.kubernetes.io/last-applied-configuration", "kubectl.kubernetes.io/restartedAt", "velero.io/", "k10.kasten.io/",
						"descheduler.alpha.kubernetes.io/evict", "descheduler.alpha.kubernetes.io/prefer-no-eviction", "descheduler.alpha.kubernetes.io/request-evict-only",
						"prometheus.io/", "monitoring.coreos.com/", "istio.io/dataplane-mode", "istio.io/use-waypoint", "app.kubernetes.io/",
					}, ","),
					"--leader-election-id=stencil-manager",
				},
				deployment + " {" + container + ".env[*].name}":                                       []string{"POD_NAMESPACE", "POD_NAME"},
				deployment + " {" + container + ".ports[*].name}":                                     []string{"webhook", "health", "metrics"},
				deployment + " {" + pod + ".terminationGracePeriodSeconds}":                           50,
				deployment + " {" + pod + ".serviceAccountName}":                                      "stencil-manager",
				deployment + " {" + pod + ".priorityClassName}":                                       nil,
				deployment + " {" + pod + ".nodeSelector}":                                            map[string]any{"kubernetes.io/os": "linux"},
				deployment + " {" + pod + ".topologySpreadConstraints[0].topologyKey}":                "topology.kubernetes.io/zone",
				"PodDisruptionBudget/stencil-manager {.spec.maxUnavailable}":                          1,
				"PodDisruptionBudget/stencil-manager {.spec.selector.matchLabels}":                    managerSelector,
				"Service/stencil-webhook {.spec.selector}":                                            managerSelector,
				"Service/stencil-webhook {.spec.ports[0].targetPort}":                                 "webhook",
				"Service/stencil-metrics {.spec.selector}":                                            managerSelector,
				"Service/stencil-metrics {.spec.ports[0].port}":                                       8080,
				"ServiceAccount/stencil-manager {.automountServiceAccountToken}":                      false,
				deployment + " {" + pod + ".automountServiceAccountToken}":                            true,
				deployment + " {" + pod + ".affinity.podAntiAffinity" + preferred + ".topologyKey}":   "kubernetes.io/hostname",
				deployment + " {" + pod + ".affinity.podAntiAffinity" + preferred + ".labelSelector}": map[string]any{"matchLabels": managerSelector},
			},
			absent: []string{"ServiceMonitor/stencil-manager"},
		},
		"the restricted profile of the pod security standards, and no limit on CPU": {
			want: map[string]any{
				deployment + " {" + pod + ".securityContext}": map[string]any{
					"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
				},
				deployment + " {" + container + ".securityContext}": map[string]any{
					"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
					"capabilities": map[string]any{"drop": []string{"ALL"}},
				},
				deployment + " {" + container + ".resources}": map[string]any{
					"requests": map[string]any{"cpu": "100m", "memory": "128Mi"},
					"limits":   map[string]any{"memory": "512Mi"},
				},
				deployment + " {" + pod + ".hostNetwork}": nil,
				deployment + " {" + pod + ".volumes}":     nil,
			},
		},
		"liveness waits for the start, readiness asks another question": {
			want: map[string]any{
				deployment + " {" + container + ".startupProbe.httpGet}":   map[string]any{"path": "/healthz", "port": "health"},
				deployment + " {" + container + ".livenessProbe.httpGet}":  map[string]any{"path": "/healthz", "port": "health"},
				deployment + " {" + container + ".readinessProbe.httpGet}": map[string]any{"path": "/readyz", "port": "health"},
			},
		},
		"another number of replicas": {
			values: `{manager: {replicas: 3}}`,
			want:   map[string]any{deployment + " {.spec.replicas}": 3},
		},
		"a single replica has no disruption budget": {
			values: `{manager: {replicas: 1}}`,
			absent: []string{"PodDisruptionBudget/stencil-manager"},
		},
		"no disruption budget": {
			values: `{manager: {podDisruptionBudget: {enabled: false}}}`,
			absent: []string{"PodDisruptionBudget/stencil-manager"},
		},
		"a disruption budget in per cent": {
			values: `{manager: {podDisruptionBudget: {maxUnavailable: 50%}}}`,
			want:   map[string]any{"PodDisruptionBudget/stencil-manager {.spec.maxUnavailable}": "50%"},
		},
		"another image": {
			values: `{manager: {image: {repository: mirror.example/stencil, tag: v2, pullPolicy: Always}, imagePullSecrets: [{name: mirror}]}}`,
			want: map[string]any{
				deployment + " {" + container + ".image}":           "mirror.example/stencil:v2",
				deployment + " {" + container + ".imagePullPolicy}": "Always",
				deployment + " {" + pod + ".imagePullSecrets}":      []any{map[string]any{"name": "mirror"}},
			},
		},
		"a digest wins over a tag": {
			values: `{manager: {image: {tag: v2, digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}`,
			want: map[string]any{
				deployment + " {" + container + ".image}": "ghcr.io/vmstencil/stencil-manager@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
			},
		},
		"a log level by name": {
			values: `{manager: {logLevel: debug}}`,
			want:   map[string]any{deployment + " {" + container + ".args}": items{"--zap-log-level=debug"}},
		},
		"a log level by number": {
			values: `{manager: {logLevel: 4}}`,
			want:   map[string]any{deployment + " {" + container + ".args}": items{"--zap-log-level=4"}},
		},
		"extra arguments come last, where they win": {
			values: `{manager: {extraArgs: [--kube-api-qps=50, --webhook-http2=true]}}`,
			want: map[string]any{
				deployment + " {" + container + ".args[-2:]}": []string{"--kube-api-qps=50", "--webhook-http2=true"},
			},
		},
		"resources, placement and metadata of the pods": {
			values: `
manager:
  resources: {limits: {memory: 1Gi}}
  nodeSelector: {node-role.kubernetes.io/control-plane: ""}
  tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}
  topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]
  priorityClassName: system-cluster-critical
  podAnnotations: {a: b}
  podLabels: {team: virt}
`,
			want: map[string]any{
				deployment + " {" + container + ".resources.limits}": map[string]any{"memory": "1Gi"},
				deployment + " {" + pod + ".nodeSelector}": map[string]any{
					"kubernetes.io/os": "linux", "node-role.kubernetes.io/control-plane": "",
				},
				deployment + " {" + pod + ".tolerations[0].key}":                            "node-role.kubernetes.io/control-plane",
				deployment + " {" + pod + ".affinity.podAntiAffinity}":                      nil,
				deployment + " {" + pod + ".topologySpreadConstraints[*].topologyKey}":      "rack",
				deployment + " {" + pod + ".priorityClassName}":                             "system-cluster-critical",
				deployment + " {.spec.template.metadata.annotations.a}":                     "b",
				deployment + " {.spec.template.metadata.labels.team}":                       "virt",
				deployment + " {.spec.template.metadata.labels.app\\.kubernetes\\.io/name}": "stencil",
			},
		},
		"labels of the pods cannot replace those they are selected by": {
			values: `{manager: {podLabels: {app.kubernetes.io/name: other}}}`,
			want:   map[string]any{deployment + " {.spec.template.metadata.labels.app\\.kubernetes\\.io/name}": "stencil"},
		},
		"the grace period covers serving on and draining": {
			values: `{manager: {shutdown: {delaySeconds: 20, timeoutSeconds: 60}}}`,
			want: map[string]any{
				deployment + " {" + pod + ".terminationGracePeriodSeconds}": 90,
				deployment + " {" + container + ".args}":                    items{"--shutdown-delay=20s", "--shutdown-timeout=60s"},
			},
		},
		"kinds of volume populators": {
			values: `{readiness: {populators: [{apiGroup: example.org, version: v1, kind: Milk, resource: milks}, {apiGroup: example.org, version: v1beta1, kind: Tea, resource: teas}]}}`,
			want: map[string]any{
				deployment + " {" + container + ".args}":                                                items{"--populators=Milk.v1.example.org/milks,Tea.v1beta1.example.org/teas"},
				"ClusterRole/stencil-manager {.rules[?(@.apiGroups[0]==\"example.org\")].resources[0]}": []string{"milks", "teas"},
				"ClusterRole/stencil-manager {.rules[?(@.resources[0]==\"milks\")].verbs}":              []string{"list", "watch"},
			},
		},
		"no metrics": {
			values: `{manager: {metrics: {enabled: false}}}`,
			want: map[string]any{
				deployment + " {" + container + ".args}":                          items{"--metrics-bind-address=0"},
				deployment + " {" + container + ".ports[?(@.name==\"metrics\")]}": nil,
			},
			absent: []string{"Service/stencil-metrics"},
		},
		"metrics on another port": {
			values: `{manager: {metrics: {port: 9090}}}`,
			want: map[string]any{
				deployment + " {" + container + ".args}":                                        items{"--metrics-bind-address=:9090"},
				deployment + " {" + container + ".ports[?(@.name==\"metrics\")].containerPort}": 9090,
				"Service/stencil-metrics {.spec.ports[0].port}":                                 9090,
			},
		},
		"profiles are served inside the pod only": {
			values: `{manager: {pprof: {enabled: true, port: 6061}}}`,
			want:   map[string]any{deployment + " {" + container + ".args}": items{"--pprof-bind-address=localhost:6061"}},
		},
		"a ServiceAccount that exists": {
			values: `{serviceAccount: {create: false, name: robot}}`,
			want: map[string]any{
				deployment + " {" + pod + ".serviceAccountName}":           "robot",
				"ClusterRoleBinding/stencil-manager {.subjects[0].name}":   "robot",
				"RoleBinding/stencil-manager {.subjects[0].name}":          "robot",
				"RoleBinding/stencil-manager {.subjects[0].namespace}":     "stencil-system",
				"RoleBinding/stencil-manager {.roleRef.name}":              "stencil-manager",
				"ClusterRoleBinding/stencil-manager {.subjects[0].kind}":   "ServiceAccount",
				"ClusterRoleBinding/stencil-manager {.metadata.namespace}": nil,
			},
			absent: []string{"ServiceAccount/robot", "ServiceAccount/stencil-manager"},
		},
		"a ServiceAccount of another name, with annotations": {
			values: `{serviceAccount: {name: robot, annotations: {a: b}}}`,
			want:   map[string]any{"ServiceAccount/robot {.metadata.annotations}": map[string]any{"a": "b"}},
		},
		"a manager outside the cluster keeps its rights, and nothing runs": {
			values: `{manager: {enabled: false, metrics: {serviceMonitor: {enabled: true}}}, webhooks: {url: "https://localhost:9443"}}`,
			present: []string{
				"ServiceAccount/stencil-manager", "Role/stencil-manager", "RoleBinding/stencil-manager",
				"ClusterRole/stencil-manager", "ClusterRoleBinding/stencil-manager",
			},
			absent: []string{
				deployment, "PodDisruptionBudget/stencil-manager", "Service/stencil-webhook", "Service/stencil-metrics",
				"ServiceMonitor/stencil-manager",
			},
		},
	})
}

const preferred = ".preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm"

var managerSelector = map[string]any{
	"app.kubernetes.io/name":      "stencil",
	"app.kubernetes.io/instance":  "stencil",
	"app.kubernetes.io/component": "manager",
}
