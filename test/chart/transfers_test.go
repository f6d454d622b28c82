package chart

import (
	"slices"
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

const transferAccount = "system:serviceaccount:" + install.Namespace + ":stencil-transfers"

func TestTransfers(t *testing.T) {
	const (
		digest  = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
		policy  = "ValidatingAdmissionPolicy/stencil-manager-transfers"
		account = policy + " {.spec.variables[?(@.name==\"transferUser\")].expression}"
		domain  = policy + " {.spec.variables[?(@.name==\"transferDomain\")].expression}"
		image   = policy + " {.spec.variables[?(@.name==\"moverImage\")].expression}"
	)
	runRenderCases(t, map[string]renderCase{
		"off by default": {
			want:   map[string]any{account: `""`},
			absent: []string{"ServiceAccount/stencil-transfers", "ClusterRole/stencil-transfers", "ClusterRoleBinding/stencil-transfers"},
		},
		"on": {
			values: `{transfers: {enabled: true, allowedNetworks: [10.1.0.0/16], imagePullSecrets: [pull], image: {digest: "` + digest + `"}}, imageRegistry: mirror.example.com/s}`,
			want: map[string]any{
				account: `"` + transferAccount + `"`,
				domain:  `""`,
				"ClusterRole/stencil-transfers {.rules[?(@.resources[0]==\"ingresses\")].verbs}": nil,
				image: `"mirror.example.com/s/stencil-mover@` + digest + `"`,
				"ServiceAccount/stencil-transfers {.automountServiceAccountToken}": false,
				"ClusterRoleBinding/stencil-transfers {.subjects}":                 []any{map[string]any{"kind": "ServiceAccount", "name": "stencil-transfers", "namespace": install.Namespace}},
				deployment + " {" + container + ".args}": items{
					"--transfer-account=" + transferAccount, "--transfer-key-secret=stencil-transfer-key", "--transfer-image=mirror.example.com/s/stencil-mover@" + digest,
					"--transfer-pull-policy=IfNotPresent", "--transfer-pull-secrets=pull", "--transfer-cpu=2", "--transfer-memory=192Mi", "--transfer-max-size=4Ti", "--transfer-limit=8", "--transfer-limit-per-namespace=2", "--transfer-examine-captures=true", "--transfer-networks=10.1.0.0/16",
				},
				"Role/stencil-manager {.rules[?(@.verbs[0]==\"impersonate\")].resourceNames[*]}": []string{"stencil-disks", "stencil-images", "stencil-objects", "stencil-transfers"},
			},
		},
		"from outside of the cluster": {
			values: `{transfers: {enabled: true, ingress: {domain: exports.example.com, className: inner, tlsSecret: wildcard, annotations: {"nginx.ingress.kubernetes.io/ssl-passthrough": "true", a/b: "c,d"}}}}`,
			want: map[string]any{
				domain: `"exports.example.com"`,
				deployment + " {" + container + ".args}": items{
					"--transfer-ingress-domain=exports.example.com", "--transfer-ingress-class=inner", "--transfer-ingress-tls-secret=wildcard",
					`--transfer-ingress-annotations={"a/b":"c,d","nginx.ingress.kubernetes.io/ssl-passthrough":"true"}`,
				},
				"ClusterRole/stencil-transfers {.rules[?(@.resources[0]==\"ingresses\")].verbs}": []any{"get", "create", "delete"},
			},
		},
		"without examinations": {
			values: `{transfers: {enabled: true, examineCaptures: false}}`,
			want:   map[string]any{deployment + " {" + container + ".args}": items{"--transfer-examine-captures=false"}},
		},
		"not where KubeVirt has the templates": {
			values: `{transfers: {enabled: true}, templateAPI: External, apiserver: {enabled: false}, objects: {resources: []}}`,
			absent: []string{"ServiceAccount/stencil-transfers", policy, "CustomResourceDefinition/virtualmachinetemplateimports.template.kubevirt.io"},
		},
	})
}

// The account as which the manager imports and exports templates.
//
//suite:long
func TestTheAccountOfTransfersMayDoWhatTheyNeed(t *testing.T) {
	options := install.Options{Values: map[string]any{"transfers": map[string]any{
		"enabled": true, "sourceNamespaces": []any{"default"}, "ingress": map[string]any{"domain": "exports.example.com"},
	}}}
	plane := installed(t, options)
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	everywhere := rightsTo(map[string]string{
		"persistentvolumeclaims":                       "get list create patch delete",
		"secrets":                                      "create delete",
		"services":                                     "get create delete",
		"networking.k8s.io/networkpolicies":            "get create delete",
		"networking.k8s.io/ingresses":                  "get create delete",
		"batch/jobs":                                   "get create delete",
		"pods":                                         "list",
		"cdi.kubevirt.io/datavolumes":                  "get list create delete",
		"cdi.kubevirt.io/storageprofiles":              "get",
		"cdi.kubevirt.io/cdiconfigs":                   "get",
		"storage.k8s.io/storageclasses":                "list",
		"template.kubevirt.io/virtualmachinetemplates": "get create patch delete",
	})
	listed := slices.Concat(everywhere, rightsTo(map[string]string{"cdi.kubevirt.io/datavolumes/source": "create"}))
	slices.Sort(listed)
	accountMay(t, plane, manager, "stencil-transfers", map[string][]string{"default": listed, "kube-public": everywhere})
}
