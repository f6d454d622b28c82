package chart

import "testing"

const (
	renderWebhook   = "MutatingWebhookConfiguration/a-stencil-render"
	validateWebhook = "ValidatingWebhookConfiguration/stencil-validate"
	policiesWebhook = "ValidatingWebhookConfiguration/stencil-policies"
)

func TestWebhooks(t *testing.T) {
	service := func(path string) map[string]any {
		return map[string]any{"service": map[string]any{
			"name": "stencil-webhook", "namespace": "stencil-system", "path": path, "port": 443,
		}}
	}
	governed := map[string]any{"matchExpressions": []any{map[string]any{
		"key": "stencil.kubevirt.io/governed", "operator": "In", "values": []string{"true", "warn"},
	}}}
	mayBeGoverned := map[string]any{"matchExpressions": []any{map[string]any{
		"key": "stencil.kubevirt.io/governed", "operator": "NotIn", "values": []string{"false", "audit"},
	}}}
	vmRule := func(operations ...string) []any {
		return []any{map[string]any{
			"apiGroups": []string{"kubevirt.io"}, "apiVersions": []string{"v1", "v1alpha3"},
			"operations": operations, "resources": []string{"virtualmachines"}, "scope": "Namespaced",
		}}
	}
	runRenderCases(t, map[string]renderCase{
		"rendering fails closed, is called once, and for VirtualMachines of every version": {
			want: map[string]any{
				renderWebhook + " {.webhooks[*].name}":                    []string{"render.template.kubevirt.io", "governed.template.kubevirt.io", "namespace.stencil.kubevirt.io", "virtualmachinetemplate.lending.template.kubevirt.io", "virtualmachinetemplate.writers.template.kubevirt.io", "requests.writers.template.kubevirt.io"},
				renderWebhook + " {.webhooks[0].clientConfig}":            service("/mutate-virtualmachine-render"),
				renderWebhook + " {.webhooks[0].failurePolicy}":           "Fail",
				renderWebhook + " {.webhooks[0].matchPolicy}":             "Equivalent",
				renderWebhook + " {.webhooks[0].reinvocationPolicy}":      "Never",
				renderWebhook + " {.webhooks[0].sideEffects}":             "None",
				renderWebhook + " {.webhooks[0].timeoutSeconds}":          10,
				renderWebhook + " {.webhooks[0].admissionReviewVersions}": []string{"v1"},
				renderWebhook + " {.webhooks[0].namespaceSelector}":       nil,
				renderWebhook + " {.webhooks[0].objectSelector}":          nil,
				renderWebhook + " {.webhooks[0].rules}":                   vmRule("CREATE", "UPDATE"),
				renderWebhook + " {.webhooks[0].matchConditions[*].name}": []string{
					"has-template-ref", "create-or-rendered-change", "create-or-not-exempt",
				},
			},
		},
		"who writes what is recorded, and no import or export is created without": {
			values: `{transfers: {enabled: true}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[4].name}":                    "virtualmachinetemplate.writers.template.kubevirt.io",
				renderWebhook + " {.webhooks[4].clientConfig}":            service("/mutate-written-by"),
				renderWebhook + " {.webhooks[4].failurePolicy}":           "Ignore",
				renderWebhook + " {.webhooks[4].rules[0].operations}":     []string{"CREATE", "UPDATE"},
				renderWebhook + " {.webhooks[4].matchConditions[*].name}": "specification-is-written",
				renderWebhook + " {.webhooks[5].name}":                    "requests.writers.template.kubevirt.io",
				renderWebhook + " {.webhooks[5].clientConfig}":            service("/mutate-written-by"),
				renderWebhook + " {.webhooks[5].failurePolicy}":           "Ignore",
				renderWebhook + " {.webhooks[5].rules[0].operations}":     []string{"CREATE"},
				renderWebhook + " {.webhooks[5].rules[0].resources}":      []string{"virtualmachinetemplaterequests"},
				renderWebhook + " {.webhooks[6].name}":                    "transfers.writers.template.kubevirt.io",
				renderWebhook + " {.webhooks[6].clientConfig}":            service("/mutate-written-by"),
				renderWebhook + " {.webhooks[6].failurePolicy}":           "Fail",
				renderWebhook + " {.webhooks[6].rules[0].operations}":     []string{"CREATE"},
				renderWebhook + " {.webhooks[6].rules[0].resources}":      []string{"virtualmachinetemplateimports", "virtualmachinetemplateexports"},
			},
		},
		"templates are judged in both versions, not their status": {
			want: map[string]any{
				validateWebhook + " {.webhooks[*].name}": []string{
					"virtualmachinetemplate.validate.template.kubevirt.io", "virtualmachine.validate.template.kubevirt.io",
					"ruledvirtualmachine.validate.template.kubevirt.io",
					"templateapproval.validate.stencil.kubevirt.io", "virtualmachinepolicy.validate.stencil.kubevirt.io", "virtualmachinetemplaterequest.validate.template.kubevirt.io",
					"virtualmachineinstance.validate.template.kubevirt.io",
				},
				validateWebhook + " {.webhooks[0].clientConfig}":            service("/validate-virtualmachinetemplate"),
				validateWebhook + " {.webhooks[0].failurePolicy}":           "Fail",
				validateWebhook + " {.webhooks[0].matchPolicy}":             "Equivalent",
				validateWebhook + " {.webhooks[0].sideEffects}":             "None",
				validateWebhook + " {.webhooks[0].timeoutSeconds}":          10,
				validateWebhook + " {.webhooks[0].admissionReviewVersions}": []string{"v1"},
				validateWebhook + " {.webhooks[0].rules}": []any{map[string]any{
					"apiGroups": []string{"template.kubevirt.io"}, "apiVersions": []string{"v1alpha1", "v1beta1"},
					"operations": []string{"CREATE", "UPDATE"}, "resources": []string{"virtualmachinetemplates"}, "scope": "Namespaced",
				}},
			},
		},
		"every webhook fails closed but those that say in better words what a policy refuses, and the one for approvals": {
			want: map[string]any{
				renderWebhook + " {.webhooks[*].failurePolicy}":    []string{"Fail", "Ignore", "Ignore", "Ignore", "Ignore", "Ignore"},
				renderWebhook + " {.webhooks[*].matchPolicy}":      []string{"Equivalent", "Equivalent", "Equivalent", "Equivalent", "Equivalent", "Equivalent"},
				renderWebhook + " {.webhooks[*].sideEffects}":      []string{"None", "None", "None", "None", "None", "None"},
				renderWebhook + " {.webhooks[*].timeoutSeconds}":   []int{10, 10, 2, 2, 2, 10},
				validateWebhook + " {.webhooks[*].failurePolicy}":  []string{"Fail", "Fail", "Fail", "Ignore", "Fail", "Fail", "Fail"},
				validateWebhook + " {.webhooks[*].matchPolicy}":    []string{"Equivalent", "Equivalent", "Equivalent", "Equivalent", "Equivalent", "Equivalent", "Equivalent"},
				validateWebhook + " {.webhooks[*].sideEffects}":    []string{"None", "None", "None", "None", "None", "None", "None"},
				validateWebhook + " {.webhooks[*].timeoutSeconds}": []int{10, 10, 10, 2, 10, 10, 10},
			},
		},
		"machines without a template are sent to rendering where an approval asks for one": {
			want: map[string]any{
				renderWebhook + " {.webhooks[1].clientConfig}":            service("/mutate-virtualmachine-render"),
				renderWebhook + " {.webhooks[1].reinvocationPolicy}":      "Never",
				renderWebhook + " {.webhooks[1].namespaceSelector}":       governed,
				renderWebhook + " {.webhooks[1].objectSelector}":          nil,
				renderWebhook + " {.webhooks[1].rules}":                   vmRule("CREATE", "UPDATE"),
				renderWebhook + " {.webhooks[1].matchConditions[*].name}": []string{"has-no-template-ref", "create-or-spec-change", "not-exempt"},
			},
		},
		"a change of a decided namespace's labels is sent, and no request waits long for an answer": {
			values: `{webhooks: {timeoutSeconds: 20}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[2].clientConfig}":      service("/mutate-namespace"),
				renderWebhook + " {.webhooks[2].timeoutSeconds}":    2,
				renderWebhook + " {.webhooks[2].namespaceSelector}": nil,
				renderWebhook + " {.webhooks[2].objectSelector}":    nil,
				renderWebhook + " {.webhooks[2].rules}": []any{map[string]any{
					"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"UPDATE"}, "resources": []string{"namespaces"}, "scope": "Cluster",
				}},
				renderWebhook + " {.webhooks[2].matchConditions[*].name}": "decided-and-labels-change",
			},
		},
		"new templates that name disks are labelled, if a manager runs": {
			want: map[string]any{
				renderWebhook + " {.webhooks[3].clientConfig}":   service("/mutate-virtualmachinetemplate"),
				renderWebhook + " {.webhooks[3].failurePolicy}":  "Ignore",
				renderWebhook + " {.webhooks[3].timeoutSeconds}": 2,
				renderWebhook + " {.webhooks[3].rules}": []any{map[string]any{
					"apiGroups": []string{"template.kubevirt.io"}, "apiVersions": []string{"v1alpha1", "v1beta1"},
					"operations": []string{"CREATE"}, "resources": []string{"virtualmachinetemplates"}, "scope": "Namespaced",
				}},
				renderWebhook + " {.webhooks[3].matchConditions[*].name}": "has-disks-and-no-label",
			},
		},
		"templates lend by default only where values say so": {
			values: `{diskAccess: {lendByDefault: false}}`,
			want:   map[string]any{renderWebhook + " {.webhooks[*].name}": []string{"render.template.kubevirt.io", "governed.template.kubevirt.io", "namespace.stencil.kubevirt.io", "virtualmachinetemplate.writers.template.kubevirt.io", "requests.writers.template.kubevirt.io"}},
		},
		"no disks are lent, and no templates labelled": {
			values: `{diskAccess: {mode: None}}`,
			want:   map[string]any{renderWebhook + " {.webhooks[*].name}": []string{"render.template.kubevirt.io", "governed.template.kubevirt.io", "namespace.stencil.kubevirt.io", "virtualmachinetemplate.writers.template.kubevirt.io", "requests.writers.template.kubevirt.io"}},
		},
		"what claims a template is judged where an approval may look": {
			want: map[string]any{
				validateWebhook + " {.webhooks[1].clientConfig}":            service("/validate-virtualmachine"),
				validateWebhook + " {.webhooks[1].namespaceSelector}":       mayBeGoverned,
				validateWebhook + " {.webhooks[1].objectSelector}":          nil,
				validateWebhook + " {.webhooks[1].rules}":                   vmRule("CREATE", "UPDATE"),
				validateWebhook + " {.webhooks[1].matchConditions[*].name}": []string{"has-template-ref", "has-no-rules", "create-or-relevant-change", "create-or-not-exempt"},
			},
		},
		"what has rules is judged in every namespace": {
			want: map[string]any{
				validateWebhook + " {.webhooks[2].clientConfig}":            service("/validate-virtualmachine"),
				validateWebhook + " {.webhooks[2].namespaceSelector}":       nil,
				validateWebhook + " {.webhooks[2].objectSelector}":          nil,
				validateWebhook + " {.webhooks[2].rules}":                   vmRule("CREATE", "UPDATE"),
				validateWebhook + " {.webhooks[2].matchConditions[*].name}": []string{"has-rules", "create-or-not-exempt"},
			},
		},
		"instances are evaluated where an approval denies, also for KubeVirt": {
			want: map[string]any{
				validateWebhook + " {.webhooks[6].clientConfig}":      service("/validate-virtualmachineinstance"),
				validateWebhook + " {.webhooks[6].namespaceSelector}": map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				validateWebhook + " {.webhooks[6].objectSelector}":    nil,
				validateWebhook + " {.webhooks[6].rules}": []any{map[string]any{
					"apiGroups": []string{"kubevirt.io"}, "apiVersions": []string{"v1", "v1alpha3"},
					"operations": []string{"CREATE"}, "resources": []string{"virtualmachineinstances"}, "scope": "Namespaced",
				}},
				validateWebhook + " {.webhooks[6].matchConditions[*].name}": []string{"of-a-virtual-machine", "has-claims"},
			},
		},
		"approvals are judged": {
			want: map[string]any{
				validateWebhook + " {.webhooks[3].clientConfig}":   service("/validate-templateapproval"),
				validateWebhook + " {.webhooks[3].failurePolicy}":  "Ignore",
				validateWebhook + " {.webhooks[3].timeoutSeconds}": 2,
				validateWebhook + " {.webhooks[3].rules}": []any{map[string]any{
					"apiGroups": []string{"stencil.kubevirt.io"}, "apiVersions": []string{"v1alpha1"},
					"operations": []string{"CREATE", "UPDATE"}, "resources": []string{"templateapprovals"}, "scope": "Cluster",
				}},
				validateWebhook + " {.webhooks[3].matchConditions[*].name}": "create-or-spec-change",
			},
		},
		"requests for templates are judged in both versions, when they are created": {
			want: map[string]any{
				validateWebhook + " {.webhooks[5].clientConfig}":      service("/validate-virtualmachinetemplaterequest"),
				validateWebhook + " {.webhooks[5].namespaceSelector}": nil,
				validateWebhook + " {.webhooks[5].objectSelector}":    nil,
				validateWebhook + " {.webhooks[5].matchConditions}":   nil,
				validateWebhook + " {.webhooks[5].rules}": []any{map[string]any{
					"apiGroups": []string{"template.kubevirt.io"}, "apiVersions": []string{"v1alpha1", "v1beta1"},
					"operations": []string{"CREATE"}, "resources": []string{"virtualmachinetemplaterequests"}, "scope": "Namespaced",
				}},
			},
		},
		"policies are judged before they are stored": {
			want: map[string]any{
				validateWebhook + " {.webhooks[4].clientConfig}":      service("/validate-virtualmachinepolicy"),
				validateWebhook + " {.webhooks[4].namespaceSelector}": nil,
				validateWebhook + " {.webhooks[4].rules}": []any{map[string]any{
					"apiGroups": []string{"stencil.kubevirt.io"}, "apiVersions": []string{"v1alpha1"},
					"operations": []string{"CREATE", "UPDATE"}, "resources": []string{"virtualmachinepolicies"}, "scope": "Cluster",
				}},
				validateWebhook + " {.webhooks[4].matchConditions[*].name}": "create-or-spec-change",
			},
		},
		"the webhooks that policies need are left to the manager": {
			want: map[string]any{
				policiesWebhook + " {.webhooks}":             nil,
				policiesWebhook + " {.metadata.annotations}": nil,
			},
		},
		"cert-manager is told to fill them in": {
			values: `{certificates: {provider: cert-manager}}`,
			want: map[string]any{
				policiesWebhook + " {.webhooks}":             nil,
				policiesWebhook + " {.metadata.annotations}": map[string]any{"cert-manager.io/inject-ca-from": "stencil-system/stencil-webhook"},
				deployment + " {" + container + ".args}": items{
					"--policy-webhooks=stencil-policies", "--policy-webhooks-trust=stencil-validate", "--policy-webhooks-address=stencil-system/stencil-webhook",
				},
			},
		},
		"a URL takes the place of the Service, and stands in the certificate": {
			values: `{webhooks: {url: "https://stencil.example.com:9443"}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].clientConfig}":   map[string]any{"url": "https://stencil.example.com:9443/mutate-virtualmachine-render"},
				validateWebhook + " {.webhooks[0].clientConfig}": map[string]any{"url": "https://stencil.example.com:9443/validate-virtualmachinetemplate"},
				deployment + " {" + container + ".args}":         items{"--certificate-dns-names=stencil-webhook.stencil-system.svc,stencil-webhook.stencil-system.svc.cluster.local,stencil.example.com", "--policy-webhooks-address=https://stencil.example.com:9443"},
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
				deployment + " {" + container + ".args}":           items{"--policy-webhooks-timeout=5s"},
				renderWebhook + " {.webhooks[0].timeoutSeconds}":   5,
				validateWebhook + " {.webhooks[0].timeoutSeconds}": 5,
			},
		},
		"some namespaces and objects only, which is for rendering and not for judging": {
			values: `
webhooks:
  namespaceSelector: {matchExpressions: [{key: virt, operator: Exists}]}
  objectSelector: {matchLabels: {stencil: "true"}}
`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].namespaceSelector.matchExpressions[0].key}":   "virt",
				renderWebhook + " {.webhooks[0].objectSelector.matchLabels.stencil}":          "true",
				validateWebhook + " {.webhooks[0].namespaceSelector.matchExpressions[0].key}": "virt",
				validateWebhook + " {.webhooks[0].objectSelector.matchLabels.stencil}":        "true",
				renderWebhook + " {.webhooks[1].namespaceSelector}":                           governed,
				renderWebhook + " {.webhooks[1].objectSelector}":                              nil,
				validateWebhook + " {.webhooks[1].namespaceSelector}":                         nil,
				validateWebhook + " {.webhooks[1].objectSelector}":                            nil,
				validateWebhook + " {.webhooks[2].namespaceSelector}":                         nil,
				validateWebhook + " {.webhooks[3].objectSelector}":                            nil,
			},
		},
		"other users are exempt, whatever characters their names have": {
			values: `{exemptUsers: ["system:serviceaccount:virt:operator", handler, "system:serviceaccount:kube-system:gc", "system:kube-o'brien \"bob\" <b>", "o'brien@example.com", "a:b"], objects: {resources: []}}`,
			want: map[string]any{
				renderWebhook + " {.webhooks[0].matchConditions[2].expression}": `request.operation == 'CREATE' || !(` + exemptRequests + `)`,
				// Changes that virt-api makes for a user are evaluated, and not rendered.
				validateWebhook + " {.webhooks[1].matchConditions[3].expression}": `request.operation == 'CREATE' || !(` + exemptRequests + `) || ` +
					`request.userInfo.username.endsWith(':kubevirt-apiserver') && object.?spec.?template != oldObject.?spec.?template`,
				renderWebhook + " {.webhooks[1].matchConditions[2].expression}": `!(` + exemptRequests + `)`,
				exemptIn("governed-machines"):                                   exemptByName,
				exemptIn("entry-points"):                                        exemptByName,
				exemptIn("undecided-namespaces"):                                exemptByName,
				setting("governed-machines", "exemptAccounts"):                  exemptAccounts,
				setting("template-use", "exemptAccounts"):                       exemptAccounts,
				"ClusterRoleBinding/stencil-exempt-users {.subjects}":           nil,
				"ClusterRole/stencil-exempt-users {.rules}": []any{map[string]any{
					"apiGroups": []any{"stencil.kubevirt.io"}, "resources": []any{"templateapprovals"}, "verbs": []any{"bypass"},
				}},
			},
		},
		"the manager asks in dry runs, and its account for objects changes what holds VMs back": {
			values: `{exemptUsers: [handler], readiness: {dryRun: true}}`,
			want: map[string]any{
				exemptIn("governed-machines"):                  `["system:serviceaccount:stencil-system:stencil-manager","system:serviceaccount:stencil-system:stencil-objects"]`,
				setting("governed-machines", "exemptAccounts"): `["handler"]`,
			},
		},
		"nobody is exempt": {
			values: `{exemptUsers: [], objects: {resources: []}}`,
			absent: []string{"ClusterRole/stencil-exempt-users", "ClusterRoleBinding/stencil-exempt-users"},
			want: map[string]any{
				renderWebhook + " {.webhooks[0].matchConditions[*].name}":   []string{"has-template-ref", "create-or-rendered-change"},
				renderWebhook + " {.webhooks[1].matchConditions[*].name}":   []string{"has-no-template-ref", "create-or-spec-change"},
				validateWebhook + " {.webhooks[2].matchConditions[*].name}": "has-rules",
				exemptIn("governed-machines"):                               "[]",
				setting("governed-machines", "exemptAccounts"):              "[]",
			},
		},
	})
}

// What the names of a case above mean: who is exempt by name, and who with the permission too; others than these are in neither.
const (
	exemptByName   = `["system:serviceaccount:kube-system:gc","system:kube-o'brien \"bob\" \u003cb\u003e"]`
	exemptAccounts = `["system:serviceaccount:virt:operator","handler"]`
	exemptRequests = "request.userInfo.username in " + exemptByName + " || request.userInfo.username.startsWith('system:serviceaccount:') && " +
		"(request.userInfo.username in " + exemptAccounts + " || request.userInfo.username.split(':')[3] in " + exemptAccounts + ") && " +
		"authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('bypass').allowed() && !authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('any-verb').allowed()"
)

// exemptIn is the place of the exempt users in a policy.
func exemptIn(policy string) string { return setting(policy, "exemptUsers") }

// setting is the place of a setting in a policy.
func setting(policy, name string) string {
	return "ValidatingAdmissionPolicy/stencil-" + policy + ` {.spec.variables[?(@.name=="` + name + `")].expression}`
}

// The settings of the release that the policies receive.
func TestSettingsOfThePolicies(t *testing.T) {
	closed := map[string]any{
		setting("undecided-namespaces", "stencilNamespace"): `"stencil-system"`,
		setting("namespace-coverage", "stencilNamespace"):   `"stencil-system"`,
		setting("approval-index", "stencilNamespace"):       `"stencil-system"`,
		setting("approval-index", "managerUser"):            `"system:serviceaccount:stencil-system:stencil-manager"`,
		setting("governed-label", "managerUser"):            `"system:serviceaccount:stencil-system:stencil-manager"`,
		setting("entry-points", "openEntryPoints"):          "[]",
		setting("hotplug", "openEntryPoints"):               "[]",
		setting("migrations", "openEntryPoints"):            "[]",
		setting("undecided-namespaces", "openEntryPoints"):  "[]",
	}
	runRenderCases(t, map[string]renderCase{
		"everything is closed": {want: closed},
		"a ServiceAccount of another name": {
			values: `{serviceAccount: {create: false, name: robot}}`,
			want: map[string]any{
				setting("governed-label", "managerUser"): `"system:serviceaccount:stencil-system:robot"`,
				setting("approval-index", "managerUser"): `"system:serviceaccount:stencil-system:robot"`,
			},
		},
		"what the manager may write": {
			values: `{serviceAccount: {create: false, name: robot}}`,
			want: map[string]any{
				setting("manager-namespaces", "managerUser"):     `"system:serviceaccount:stencil-system:robot"`,
				setting("manager-captures", "managerUser"):       `"system:serviceaccount:stencil-system:robot"`,
				setting("manager-captures", "uninstallUser"):     `"system:serviceaccount:stencil-system:stencil-uninstall"`,
				setting("manager-webhooks", "managerUser"):       `"system:serviceaccount:stencil-system:robot"`,
				setting("manager-webhooks", "ownPolicyWebhooks"): `"stencil-policies"`,
				setting("manager-webhooks", "ownAddresses"):      `["service stencil-system/stencil-webhook/validate-policies"]`,
			},
		},
		"webhooks outside the cluster": {
			values: `{webhooks: {url: "https://stencil.example.com:9443/"}}`,
			want: map[string]any{
				setting("manager-webhooks", "ownAddresses"): `["url https://stencil.example.com:9443/validate-policies"]`,
			},
		},
		"some entry points are open": {
			values: `{entryPoints: {clone: Open, hotplug: Open, restore: Closed}}`,
			want: map[string]any{
				setting("entry-points", "openEntryPoints"):         `["clone","hotplug"]`,
				setting("hotplug", "openEntryPoints"):              `["clone","hotplug"]`,
				setting("migrations", "openEntryPoints"):           `["clone","hotplug"]`,
				setting("undecided-namespaces", "openEntryPoints"): `["clone","hotplug"]`,
			},
		},
		"keys of running machines": {
			values: `{writableInstanceKeys: [example.com/, team]}`,
			want: map[string]any{
				setting("running-machines", "writableKeys"): `["example.com/","team"]`,
				setting("migrations", "writableKeys"):       `["example.com/","team"]`,
			},
		},
		"no keys of running machines": {
			values: `{writableInstanceKeys: []}`,
			want:   map[string]any{setting("running-machines", "writableKeys"): "[]"},
		},
		"the other policies are bound, and read nothing": {
			want: map[string]any{
				"ValidatingAdmissionPolicyBinding/stencil-governed-machines {.spec}": map[string]any{"policyName": "stencil-governed-machines", "validationActions": []string{"Deny"}},
				"ValidatingAdmissionPolicyBinding/stencil-template-use {.spec}":      map[string]any{"policyName": "stencil-template-use", "validationActions": []string{"Deny"}},
			},
		},
		"policies on namespaces have no selector, and those on what is in them have one": {
			want: map[string]any{
				selectorOf("governed-label"):       nil,
				selectorOf("namespace-coverage"):   nil,
				selectorOf("governed-machines"):    map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("approved-templates"):   map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("entry-points"):         map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("hotplug"):              map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("running-machines"):     map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("migrations"):           map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("disk-provenance"):      map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("stored-instancetypes"): map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("launcher-pods"):        map[string]any{"matchLabels": map[string]any{"stencil.kubevirt.io/governed": "true"}},
				selectorOf("undecided-namespaces"): map[string]any{"matchExpressions": []any{map[string]any{
					"key": "stencil.kubevirt.io/governed", "operator": "NotIn", "values": []string{"true", "warn", "audit", "false"},
				}}},
			},
		},
	})
}

// selectorOf is the place of the namespaces that a policy is about.
func selectorOf(policy string) string {
	return "ValidatingAdmissionPolicy/stencil-" + policy + " {.spec.matchConstraints.namespaceSelector}"
}
