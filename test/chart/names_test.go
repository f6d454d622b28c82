package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

func TestNames(t *testing.T) {
	runRenderCases(t, map[string]renderCase{
		"a release that is not called stencil": {
			release: "templates",
			present: []string{
				"Deployment/templates-stencil-manager", "Service/templates-stencil-webhook", "ClusterRole/templates-stencil-template-user",
				"MutatingWebhookConfiguration/a-templates-stencil-render", "ValidatingWebhookConfiguration/templates-stencil-validate",
				"ValidatingWebhookConfiguration/templates-stencil-policies", "ClusterRole/templates-stencil-policy-admin", "ClusterRole/templates-stencil-policy-exception-admin", "ClusterRole/templates-stencil-policy-view",
				"ClusterRole/templates-stencil-revision-migration-admin", "ClusterRole/templates-stencil-revision-migration-view",
				"ValidatingAdmissionPolicy/templates-stencil-template-reference", "ValidatingAdmissionPolicy/templates-stencil-governed-machines",
				"ValidatingAdmissionPolicy/templates-stencil-approved-templates", "ValidatingAdmissionPolicy/templates-stencil-undecided-namespaces",
				"ClusterRole/templates-stencil-template-approver", "ClusterRole/templates-stencil-template-source",
			},
			want: map[string]any{
				"Deployment/templates-stencil-manager {" + container + ".args}":                                                           items{"--certificate-authority-secret=templates-stencil-webhook-ca", "--webhook-configurations=mutating/a-templates-stencil-render,validating/templates-stencil-validate,validating/templates-stencil-policies,mutating/zz-templates-stencil-preview", "--policy-webhooks=templates-stencil-policies", "--policy-webhooks-address=stencil-system/templates-stencil-webhook", "--leader-election-id=templates-stencil-manager"},
				"Role/templates-stencil-manager {.rules[?(@.resources[0]==\"secrets\")].resourceNames[0]}":                                []string{"templates-stencil-object-keys", "templates-stencil-webhook-ca"},
				"ClusterRole/templates-stencil-manager {.rules[?(@.resources[0]==\"mutatingwebhookconfigurations\")].resourceNames[0]}":   "a-templates-stencil-render",
				"ClusterRole/templates-stencil-manager {.rules[?(@.resources[0]==\"validatingwebhookconfigurations\")].resourceNames[0]}": "templates-stencil-validate",
				"ValidatingAdmissionPolicyBinding/templates-stencil-template-reference {.spec.policyName}":                                "templates-stencil-template-reference",
			},
		},
		"a release whose name contains stencil": {
			release: "my-stencil",
			present: []string{"Deployment/my-stencil-manager", "MutatingWebhookConfiguration/a-my-stencil-render"},
		},
		"another name of the chart": {
			values:  `{nameOverride: blueprint}`,
			present: []string{"Deployment/stencil-blueprint-manager"},
			want: map[string]any{
				"Deployment/stencil-blueprint-manager {.spec.selector.matchLabels.app\\.kubernetes\\.io/name}": "blueprint",
			},
		},
		"another prefix of all names": {
			values:  `{fullnameOverride: vmt}`,
			present: []string{"Deployment/vmt-manager", "MutatingWebhookConfiguration/a-vmt-render", "ClusterRole/vmt-edit"},
		},
		"a long release name leaves room for every suffix": {
			release: strings.Repeat("x", 53),
			present: []string{"Service/" + strings.Repeat("x", 40) + "-metrics"},
		},
		"no definitions, which somebody else owns": {
			values: `{crds: {enabled: false}}`,
			absent: []string{
				"CustomResourceDefinition/virtualmachinetemplates.template.kubevirt.io",
				"CustomResourceDefinition/virtualmachinetemplaterequests.template.kubevirt.io",
				"CustomResourceDefinition/templateapprovals.stencil.kubevirt.io",
			},
		},
		"definitions stay when the release goes": {
			want: map[string]any{
				"CustomResourceDefinition/virtualmachinetemplates.template.kubevirt.io {.metadata.annotations.helm\\.sh/resource-policy}":        "keep",
				"CustomResourceDefinition/virtualmachinetemplaterequests.template.kubevirt.io {.metadata.annotations.helm\\.sh/resource-policy}": "keep",
				"CustomResourceDefinition/templateapprovals.stencil.kubevirt.io {.metadata.annotations.helm\\.sh/resource-policy}":               "keep",
			},
		},
		"labels of one's own do not replace the chart's": {
			values: `{commonLabels: {team: virt, app.kubernetes.io/name: other}}`,
			want: map[string]any{
				deployment + " {.metadata.labels.team}":                                                                      "virt",
				deployment + " {.metadata.labels.app\\.kubernetes\\.io/name}":                                                "stencil",
				deployment + " {.spec.selector.matchLabels}":                                                                 managerSelector,
				"CustomResourceDefinition/virtualmachinetemplates.template.kubevirt.io {.metadata.labels.team}":              "virt",
				"ValidatingAdmissionPolicy/stencil-template-reference {.metadata.labels.team}":                               "virt",
				"ValidatingAdmissionPolicyBinding/stencil-template-reference {.metadata.labels.team}":                        "virt",
				"MutatingWebhookConfiguration/a-stencil-render {.metadata.labels.team}":                                      "virt",
				"ClusterRole/stencil-template-user {.metadata.labels.team}":                                                  "virt",
				"CustomResourceDefinition/virtualmachinetemplates.template.kubevirt.io {.metadata.labels.helm\\.sh/chart}":   "stencil-0.1.0",
				"ValidatingAdmissionPolicy/stencil-template-reference {.spec.matchConditions[0].name}":                       "has-or-had-template-ref",
				"ValidatingAdmissionPolicyBinding/stencil-template-reference {.spec.validationActions}":                      []string{"Deny"},
				"ValidatingAdmissionPolicy/stencil-template-reference {.spec.matchConstraints.resourceRules[0].apiVersions}": []string{"v1", "v1alpha3"},
			},
		},
	})
}

// Mutating webhooks are called in the order of the names of their configurations.
func TestRenderingSortsFirst(t *testing.T) {
	for _, release := range []string{"stencil", "templates", "zzz"} {
		rendered := render(t, release, "")
		var configurations []string
		for _, object := range rendered {
			if object.GetKind() == "MutatingWebhookConfiguration" {
				configurations = append(configurations, object.GetName())
			}
		}
		if len(configurations) != 2 {
			t.Fatalf("release %s has mutating configurations %v, want one to render and one for previews", release, configurations)
		}
		all := append(neighbours(), configurations...)
		sort.Strings(all)
		if !strings.HasSuffix(all[0], "-render") || !strings.HasSuffix(all[len(all)-1], "-preview") {
			t.Errorf("release %s: called in the order %v", release, all)
		}
	}
}

// neighbours are mutating configurations of other projects.
func neighbours() []string {
	return []string{"virt-api-mutator", "cdi-api-datavolume-mutate", "kubemacpool-mutator", "cert-manager-webhook", "z-quota"}
}

// Only previews come after the defaults, which they include.
func TestDefaultingSortsLast(t *testing.T) {
	for _, release := range []string{"stencil", "a", "zzz"} {
		all := neighbours()
		for _, object := range render(t, release, "{defaulting: {enabled: true}}") {
			if object.GetKind() == "MutatingWebhookConfiguration" {
				all = append(all, object.GetName())
			}
		}
		sort.Strings(all)
		last := all[len(all)-2:]
		if !strings.HasSuffix(last[0], "-defaults") || !strings.HasSuffix(last[1], "-preview") || !strings.HasSuffix(all[0], "-render") {
			t.Errorf("release %s: called in the order %v", release, all)
		}
	}
}

// Tests and the demo start the manager outside the cluster, with flags from the package install, which must equal those of the chart.
func TestFlagsOfAManagerBesideTheCluster(t *testing.T) {
	for _, tc := range []struct {
		release    string
		defaulting bool
		objects    []any
		api        string
	}{
		{"stencil", false, []any{"secrets", "configmaps", "services"}, "Own"}, {"stencil", false, []any{"networkpolicies.networking.k8s.io"}, "Own"},
		{"stencil", false, []any{}, "External"}, {"templates", false, []any{"secrets"}, "Own"}, {"templates", true, []any{"secrets"}, "Own"},
	} {
		release := tc.release
		t.Run(fmt.Sprintf("%s, defaulting %v, objects %v", release, tc.defaulting, tc.objects), func(t *testing.T) {
			options := install.Options{Release: release, ManagerURL: "https://localhost:9443", Values: map[string]any{
				"defaulting": map[string]any{"enabled": tc.defaulting}, "objects": map[string]any{"resources": tc.objects}, "templateAPI": tc.api,
			}}
			objects, err := json.Marshal(tc.objects)
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr, ok := helm(t, "", "install", release, chartFolder(t), "--namespace", install.Namespace, "--dry-run=client",
				"--set", "apiserver.enabled=false", "--set", "manager.enabled=false", "--set", "webhooks.url="+options.ManagerURL, "--set", fmt.Sprintf("defaulting.enabled=%v", tc.defaulting),
				"--set-json", "objects.resources="+string(objects), "--set", "templateAPI="+tc.api)
			if !ok {
				t.Fatal(stderr)
			}
			_, notes, _ := strings.Cut(stdout, "NOTES:")
			for _, flag := range options.ManagerArgs() {
				if !strings.Contains(notes, flag+"\n") {
					t.Errorf("the notes of the chart do not ask for %s:\n%s", flag, notes)
				}
			}
			if strings.Contains(notes, "--object-") != (len(tc.objects) > 0) {
				t.Errorf("the notes of the chart ask for flags of objects, or not:\n%s", notes)
			}
		})
	}
}

func TestEveryObjectIsLabelledAndInTheReleaseNamespace(t *testing.T) {
	const everything = `
manager: {metrics: {serviceMonitor: {enabled: true}}, pprof: {enabled: true}}
certificates: {provider: cert-manager}
`
	rendered := render(t, "stencil", everything)
	clusterScoped := map[string]bool{
		"APIService": true, "ClusterRole": true, "ClusterRoleBinding": true, "CustomResourceDefinition": true, "MutatingWebhookConfiguration": true,
		"ValidatingWebhookConfiguration": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	}
	for _, key := range slices.Sorted(maps.Keys(rendered)) {
		object := rendered[key]
		for label, want := range map[string]string{
			"app.kubernetes.io/name":       "stencil",
			"app.kubernetes.io/instance":   "stencil",
			"app.kubernetes.io/part-of":    "stencil",
			"app.kubernetes.io/version":    "0.1.0",
			"app.kubernetes.io/managed-by": "Helm",
			"helm.sh/chart":                "stencil-0.1.0",
		} {
			if got := object.GetLabels()[label]; got != want {
				t.Errorf("%s: label %s is %q, want %q", key, label, got, want)
			}
		}
		want := "stencil-system"
		if clusterScoped[object.GetKind()] {
			want = ""
		}
		if key == "RoleBinding/stencil-apiserver-authentication-reader" {
			// The Role that it binds is Kubernetes' own.
			want = "kube-system"
		}
		if got := object.GetNamespace(); got != want {
			t.Errorf("%s: namespace is %q, want %q", key, got, want)
		}
	}
}
