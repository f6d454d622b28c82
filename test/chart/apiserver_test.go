package chart

import (
	"maps"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

const previewWebhook = "MutatingWebhookConfiguration/zz-stencil-preview"

const apiserverContainer = "Deployment/stencil-apiserver {.spec.template.spec.containers[0]"

func TestTheAggregatedAPIServer(t *testing.T) {
	v1beta1, v1alpha1 := "APIService/v1beta1.subresources.template.kubevirt.io", "APIService/v1alpha1.subresources.template.kubevirt.io"
	all := []string{v1beta1, v1alpha1, "Deployment/stencil-apiserver", "Service/stencil-apiserver", "ServiceAccount/stencil-apiserver", "PodDisruptionBudget/stencil-apiserver",
		"ClusterRole/stencil-apiserver", "Role/stencil-apiserver", "ClusterRoleBinding/stencil-apiserver", "RoleBinding/stencil-apiserver", "RoleBinding/stencil-apiserver-authentication-reader",
		"ClusterRole/stencil-template-process", "ClusterRole/stencil-template-create", "ClusterRole/stencil-available-templates"}
	const user = "system:serviceaccount:stencil-system:stencil-apiserver"
	runRenderCases(t, map[string]renderCase{
		"by default": {
			present: append(all, previewWebhook),
			absent:  []string{"NetworkPolicy/stencil-apiserver", "ServiceMonitor/stencil-apiserver"},
			want: map[string]any{
				previewWebhook + " {.webhooks[0].failurePolicy}": "Fail",
				previewWebhook + " {.webhooks[0].matchConditions[0].expression}": `request.?dryRun.orValue(false) && request.userInfo.?username.orValue('') == "` + user +
					`" && request.userInfo.?extra[?'delegation.template.kubevirt.io/preview'].hasValue()`,
				v1beta1 + " {.spec.service}":                             map[string]any{"name": "stencil-apiserver", "namespace": "stencil-system", "port": 443},
				v1beta1 + " {.spec.caBundle}":                            nil,
				v1beta1 + " {.spec.versionPriority}":                     20,
				v1alpha1 + " {.spec.versionPriority}":                    10,
				v1alpha1 + " {.metadata.annotations}":                    nil,
				"Deployment/stencil-apiserver {.spec.replicas}":          2,
				apiserverContainer + ".args}":                            items{"--user=" + user, "--certificate-authority-secret=stencil-webhook-ca", "--certificate-source=authority"},
				apiserverContainer + ".volumeMounts}":                    nil,
				apiserverContainer + ".image}":                           "ghcr.io/vmstencil/stencil-apiserver:0.1.0",
				deployment + " {.spec.template.spec.containers[0].args}": items{"--apiserver-user=" + user, "--api-services=apiservice/v1beta1.subresources.template.kubevirt.io,apiservice/v1alpha1.subresources.template.kubevirt.io"},
				setting("delegated-machines", "apiserverUser"):           `"` + user + `"`,
				setting("approved-templates", "apiserverUser"):           `"` + user + `"`,
				setting("governed-machines", "apiserverUser"):            `"` + user + `"`,
				"Role/stencil-apiserver {.rules[0].resourceNames}":       []string{"stencil-apiserver"},
			},
		},
		"without it nobody is believed": {
			values: `{apiserver: {enabled: false}}`,
			absent: append(all, previewWebhook),
			want:   map[string]any{setting("delegated-machines", "apiserverUser"): `""`, setting("approved-templates", "apiserverUser"): `""`},
		},
		"outside the cluster": {
			values: `{apiserver: {external: {host: api.example.com, port: 9444}}}`,
			absent: []string{"Deployment/stencil-apiserver", "PodDisruptionBudget/stencil-apiserver"},
			want: map[string]any{
				"Service/stencil-apiserver {.spec.type}":         "ExternalName",
				"Service/stencil-apiserver {.spec.externalName}": "api.example.com",
				"Service/stencil-apiserver {.spec.selector}":     nil,
				v1beta1 + " {.spec.service.port}":                9444,
			},
		},
		"reached by API servers alone, and by those who read metrics": {
			values: `{networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}], metrics: [{podSelector: {matchLabels: {app: prometheus}}}]}}`,
			want: map[string]any{
				"NetworkPolicy/stencil-apiserver {.spec.podSelector.matchLabels.app\\.kubernetes\\.io/component}": "apiserver",
				"NetworkPolicy/stencil-apiserver {.spec.ingress}": []any{map[string]any{
					"from": []any{
						map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/28"}},
						map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": "prometheus"}}},
					},
					"ports": []any{map[string]any{"port": "https", "protocol": "TCP"}},
				}},
			},
		},
		"outside the cluster there is nothing to reach or to watch": {
			values: `{apiserver: {serviceMonitor: {enabled: true}, external: {host: api.example.com}}, networkPolicy: {enabled: true, webhooks: [{ipBlock: {cidr: 192.0.2.0/28}}]}}`,
			absent: []string{"NetworkPolicy/stencil-apiserver", "ServiceMonitor/stencil-apiserver"},
		},
		"with certificates of cert-manager": {
			values:  `{certificates: {provider: cert-manager}}`,
			present: []string{"Certificate/stencil-apiserver"},
			want: map[string]any{
				v1alpha1 + " {.metadata.annotations.cert-manager\\.io/inject-ca-from}":             "stencil-system/stencil-apiserver",
				"Certificate/stencil-apiserver {.spec.dnsNames}":                                   []string{"stencil-apiserver.stencil-system.svc", "stencil-apiserver.stencil-system.svc.cluster.local"},
				"Certificate/stencil-apiserver {.spec.secretName}":                                 "stencil-apiserver-tls",
				"Deployment/stencil-apiserver {.spec.template.spec.volumes[0].secret.secretName}":  "stencil-apiserver-tls",
				apiserverContainer + ".args}":                                                      items{"--certificate-source=files"},
				"ClusterRole/stencil-apiserver {.rules[?(@.resources[0]==\"apiservices\")].verbs}": nil,
			},
		},
		"with a certificate of one's own": {
			values: `{certificates: {provider: secret, secret: {name: mine, caBundle: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"}}}`,
			want: map[string]any{
				v1beta1 + " {.spec.caBundle}": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0=",
				"Deployment/stencil-apiserver {.spec.template.spec.volumes[0].secret.secretName}": "mine",
			},
		},
	})
}

// Tests start it outside the cluster, with flags from the package install, which must equal those of the chart.
func TestFlagsOfAnAPIServerBesideTheCluster(t *testing.T) {
	options := install.Options{Release: "templates", APIServerAddress: "localhost:9444"}
	stdout, stderr, ok := helm(t, "", "install", options.Release, chartFolder(t), "--namespace", install.Namespace, "--dry-run=client", "--set", "apiserver.external.host=localhost,apiserver.external.port=9444")
	if !ok {
		t.Fatal(stderr)
	}
	_, notes, _ := strings.Cut(stdout, "NOTES:")
	for _, flag := range options.APIServerArgs() {
		if !strings.Contains(notes, flag+"\n") {
			t.Errorf("the notes of the chart do not ask for %s:\n%s", flag, notes)
		}
	}
}

//suite:long
func TestTheAPIServerMayDoWhatIsListedAndNothingElse(t *testing.T) {
	t.Run("by default", func(t *testing.T) { compareAPIServerRights(t, nil, nil) })
	t.Run("with defaults and MAC addresses", func(t *testing.T) {
		compareAPIServerRights(t, map[string]any{"enabled": true, "mac": "generate"}, map[string]string{
			"namespaces": "get list watch", "kubevirt.io/kubevirts": "list watch", "kubevirt.io/virtualmachines": "create list watch",
			"admissionregistration.k8s.io/mutatingwebhookconfigurations kubemacpool-mutator": "list watch",
		})
	})
}

// compareAPIServerRights compares the rights of the server with those that it always has and more, for values of defaulting.
func compareAPIServerRights(t *testing.T, defaulting map[string]any, more map[string]string) {
	t.Helper()
	options := install.Options{APIServerAddress: "localhost:1"}
	if defaulting != nil {
		options.Values = map[string]any{"defaulting": defaulting}
	}
	plane := installed(t, options)
	user, err := options.APIServerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	withoutRole := harness.User(t, plane, "nobody-in-particular", gen.Group(user.Groups...))
	space := namespace(t, plane)
	others := map[string]bool{}
	for _, right := range rightsOf(t, withoutRole, space) {
		others[right] = true
	}
	var own []string
	for _, right := range rightsOf(t, user, space) {
		if !others[right] {
			own = append(own, right)
		}
	}
	all := map[string]string{
		"apiregistration.k8s.io/apiservices v1alpha1.subresources.template.kubevirt.io": "get list watch",
		"apiregistration.k8s.io/apiservices v1beta1.subresources.template.kubevirt.io":  "get list watch",
		"authentication.k8s.io/tokenreviews":                                            "create",
		"authentication.k8s.io/userextras/delegation.template.kubevirt.io/extra":        "impersonate",
		"authentication.k8s.io/userextras/delegation.template.kubevirt.io/group":        "impersonate",
		"authentication.k8s.io/userextras/delegation.template.kubevirt.io/preview":      "impersonate",
		"authentication.k8s.io/userextras/delegation.template.kubevirt.io/uid":          "impersonate",
		"authentication.k8s.io/userextras/delegation.template.kubevirt.io/user":         "impersonate",
		"authorization.k8s.io/subjectaccessreviews":                                     "create",
		"instancetype.kubevirt.io/virtualmachineclusterinstancetypes":                   "list watch",
		"instancetype.kubevirt.io/virtualmachineclusterpreferences":                     "list watch",
		"instancetype.kubevirt.io/virtualmachineinstancetypes":                          "list watch",
		"instancetype.kubevirt.io/virtualmachinepreferences":                            "list watch",
		"kubevirt.io/virtualmachines":                                                   "create",
		"namespaces":                                                                    "list watch",
		"stencil.kubevirt.io/templateapprovals":                                         "list watch",
		"template.kubevirt.io/virtualmachinetemplates":                                  "get list watch use",
	}
	maps.Copy(all, more)
	want := rightsTo(all)
	if diff := gocmp.Diff(want, own); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}
