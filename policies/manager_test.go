package policies_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/vmstencil/stencil/internal/fixture"
)

const (
	managerName = "system:serviceaccount:stencil-system:stencil-manager"
	hookName    = "system:serviceaccount:stencil-system:stencil-uninstall"
)

// parsed decodes YAML into the form of objects in the API server.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(fixture.JSON(t, text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// written is one write request of the manager, or of another service account.
type written struct {
	name string
	// before is empty for a creation, after for a deletion.
	before, after string
	as            string // the manager if empty
	dryRun        bool
	want          string
}

func (w written) run(t *testing.T, policy evaluated, of *kindOf, resource string) {
	t.Helper()
	denial, _ := policy.decide(t, w.request(t, of, resource))
	if denial != w.want {
		t.Errorf("got  %s\nwant %s", denial, w.want)
	}
}

func (w written) request(t *testing.T, of *kindOf, resource string) request {
	t.Helper()
	name, operation := w.as, admission.Update
	if name == "" {
		name = managerName
	}
	switch {
	case w.before == "":
		operation = admission.Create
	case w.after == "":
		operation = admission.Delete
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	if of != nil {
		kind = of.kind
	}
	object, oldObject := parsed(t, w.after), parsed(t, w.before)
	for _, each := range []map[string]any{object, oldObject} {
		if each != nil {
			each["apiVersion"], each["kind"] = kind.GroupVersion().String(), kind.Kind
		}
	}
	r := request{operation: operation, user: &user.DefaultInfo{Name: name}, name: "a", resource: resource, of: of, object: object, oldObject: oldObject, dryRun: w.dryRun}
	if namespace, found, _ := unstructured.NestedString(object, "metadata", "namespace"); found {
		r.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	}
	return r
}

// changed returns a text in which the first of each pair is replaced by the second. It fails if nothing is.
func changed(t *testing.T, in string, pairs ...string) string {
	t.Helper()
	out := strings.NewReplacer(pairs...).Replace(in)
	if out == in {
		t.Fatalf("nothing is replaced by %v", pairs)
	}
	return out
}

func TestWhatTheManagerChangesOfNamespaces(t *testing.T) {
	const (
		otherLabel      = "Stencil's manager changes no label of a Namespace but stencil.kubevirt.io/governed: change others as another user"
		otherAnnotation = "Stencil's manager changes no annotation of a Namespace but stencil.kubevirt.io/approvals: change others as another user"
		otherField      = "Stencil's manager changes neither spec, status, finalizers nor ownerReferences of a Namespace: change them as another user"
		plain           = "metadata: {name: a, labels: {team: x}, annotations: {note: some}}\nspec: {finalizers: [kubernetes]}\nstatus: {phase: Active}"
	)
	policy := evaluate(t, "manager-namespaces", nil)
	for _, tc := range []written{
		{name: "its label and its annotation", before: plain,
			after: `{metadata: {name: a, labels: {team: x, stencil.kubevirt.io/governed: "true"}, annotations: {note: some, stencil.kubevirt.io/approvals: "1"}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`},
		{name: "both for the first time", before: "metadata: {name: a}", after: `metadata: {name: a, labels: {stencil.kubevirt.io/governed: "false"}, annotations: {stencil.kubevirt.io/approvals: "1"}}`},
		{name: "it removes them", before: `metadata: {name: a, labels: {stencil.kubevirt.io/governed: "true"}, annotations: {stencil.kubevirt.io/approvals: "1"}}`, after: "metadata: {name: a}"},
		{name: "a label of Pod Security", before: plain,
			after: `{metadata: {name: a, labels: {team: x, pod-security.kubernetes.io/enforce: privileged}, annotations: {note: some}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, want: otherLabel},
		{name: "the value of a label", before: plain, after: `{metadata: {name: a, labels: {team: z}, annotations: {note: some}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, want: otherLabel},
		{name: "a label less", before: plain, after: `{metadata: {name: a, annotations: {note: some}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, want: otherLabel},
		{name: "an annotation", before: plain, after: `{metadata: {name: a, labels: {team: x}, annotations: {note: z}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, want: otherAnnotation},
		{name: "an annotation less", before: plain, after: `{metadata: {name: a, labels: {team: x}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, want: otherAnnotation},
		{name: "spec", before: plain, after: `{metadata: {name: a, labels: {team: x}, annotations: {note: some}}, spec: {}, status: {phase: Active}}`, want: otherField},
		{name: "status", before: plain, after: `{metadata: {name: a, labels: {team: x}, annotations: {note: some}}, spec: {finalizers: [kubernetes]}, status: {phase: Terminating}}`, want: otherField},
		{name: "a finalizer", before: "metadata: {name: a}", after: "metadata: {name: a, finalizers: [example.com/a]}", want: otherField},
		{name: "an owner", before: "metadata: {name: a}", after: "metadata: {name: a, ownerReferences: [{uid: b}]}", want: otherField},
		{name: "another service account", as: "system:serviceaccount:team-a:stencil-manager", before: plain, after: "metadata: {name: a}"},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, policy, nil, "namespaces") })
	}
}

func TestWhatTheManagerWritesForCaptures(t *testing.T) {
	const (
		created = "Stencil's manager creates this for a VirtualMachineTemplateRequest only, with its UID in label template.kubevirt.io/RequestUID and with " +
			"no other owner: create it as another user"
		deleted = "Stencil's manager deletes only what it has created for a VirtualMachineTemplateRequest that still owns it: delete it as another user"
		copied  = "Stencil's manager creates DataVolumes as copies of VolumeSnapshots only, in spec.source.snapshot: create it as another user"
		changed = "Stencil's manager changes only ownerReferences and finalizers of what exists: change spec, labels and annotations as another user"

		owner = "{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplateRequest, name: r, uid: u-1}"
		label = "labels: {template.kubevirt.io/RequestUID: u-1}"
		made  = "{metadata: {name: a, " + label + ", ownerReferences: [" + owner + "]}, spec: {x: 1}}"
	)
	templates := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplate"}, "virtualmachinetemplates"}
	requests := &kindOf{schema.GroupVersionKind{Group: "template.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineTemplateRequest"}, "virtualmachinetemplaterequests"}
	disks := &kindOf{schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, "datavolumes"}
	snapshots := &kindOf{schema.GroupVersionKind{Group: "snapshot.kubevirt.io", Version: "v1beta1", Kind: "VirtualMachineSnapshot"}, "virtualmachinesnapshots"}
	policy := evaluate(t, "manager-captures", nil)
	for _, tc := range []struct {
		of *kindOf
		written
	}{
		{templates, written{name: "a template for a request", after: made}},
		{templates, written{name: "a template without a request", after: "{metadata: {name: a}, spec: {x: 1}}", want: created}},
		{templates, written{name: "a template with the label alone", after: "{metadata: {name: a, " + label + "}, spec: {x: 1}}", want: created}},
		{templates, written{name: "a template with an empty label", after: `{metadata: {name: a, labels: {template.kubevirt.io/RequestUID: ""}, ownerReferences: [{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplateRequest, uid: ""}]}}`, want: created}},
		{templates, written{name: "a template with another request's UID", after: "{metadata: {name: a, labels: {template.kubevirt.io/RequestUID: u-2}, ownerReferences: [" + owner + "]}, spec: {x: 1}}", want: created}},
		{templates, written{name: "a template of an owner of another kind", after: "{metadata: {name: a, " + label + ", ownerReferences: [{apiVersion: v1, kind: Namespace, name: some, uid: u-1}]}, spec: {x: 1}}", want: created}},
		// The garbage collector does not delete an object with one existing owner.
		{templates, written{name: "a template with one more owner", after: "{metadata: {name: a, " + label + ", ownerReferences: [" + owner + ", {apiVersion: v1, kind: ConfigMap, name: c, uid: u-3}]}, spec: {x: 1}}", want: created}},
		{templates, written{name: "a template loses its owner", before: made, after: "{metadata: {name: a, " + label + "}, spec: {x: 1}}"}},
		{templates, written{name: "a template gets a finalizer", before: made, after: "{metadata: {name: a, " + label + ", finalizers: [f], ownerReferences: [" + owner + "]}, spec: {x: 1}}"}},
		{templates, written{name: "a template gets another spec", before: made, after: "{metadata: {name: a, " + label + ", ownerReferences: [" + owner + "]}, spec: {x: 2}}", want: changed}},
		{templates, written{name: "a template gets a label that approvals select", before: "metadata: {name: a}", after: "metadata: {name: a, labels: {tier: gold}}", want: changed}},
		{templates, written{name: "a template gets an annotation", before: "metadata: {name: a}", after: "metadata: {name: a, annotations: {validations: '[]'}}", want: changed}},
		{templates, written{name: "a template of its request is deleted", before: made}},
		{templates, written{name: "a template that was handed over is deleted", before: "{metadata: {name: a, " + label + "}, spec: {x: 1}}", want: deleted}},
		{templates, written{name: "a user's template is deleted", before: "{metadata: {name: a}, spec: {x: 1}}", want: deleted}},
		{requests, written{name: "a request gets a finalizer", before: "metadata: {name: a}", after: "metadata: {name: a, finalizers: [f]}"}},
		{requests, written{name: "a request gets another spec", before: "{metadata: {name: a}, spec: {x: 1}}", after: "{metadata: {name: a}, spec: {x: 2}}", want: changed}},
		{disks, written{name: "a disk for a request", after: strings.Replace(made, "{x: 1}", "{source: {snapshot: {name: s, namespace: n1}}}", 1)}},
		{disks, written{name: "a copy of anybody's disk for a request", after: strings.Replace(made, "{x: 1}", "{source: {pvc: {name: p, namespace: n1}}}", 1), want: copied}},
		{disks, written{name: "a disk for a request without a source", after: strings.Replace(made, "{x: 1}", "{storage: {}}", 1), want: copied}},
		{disks, written{name: "a disk without a request", after: "{metadata: {name: a}, spec: {x: 1}}", want: created}},
		{disks, written{name: "a disk is handed over", before: made, after: "{metadata: {name: a, " + label + ", ownerReferences: [{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, name: t, uid: u-9}]}, spec: {x: 1}}"}},
		{disks, written{name: "an annotation that CDI writes meanwhile", before: "metadata: {name: a}", after: "metadata: {name: a, annotations: {cdi.kubevirt.io/x: y}}"}},
		{disks, written{name: "a disk gets another source", before: "{metadata: {name: a}, spec: {source: {blank: {}}}}", after: "{metadata: {name: a}, spec: {source: {http: {url: x}}}}", want: changed}},
		{disks, written{name: "a user's disk is deleted", before: "{metadata: {name: a}, spec: {x: 1}}", want: deleted}},
		{disks, written{name: "a disk of its request is deleted", before: made}},
		{snapshots, written{name: "a snapshot in another namespace", after: "{metadata: {name: capture-u-1, " + label + "}, spec: {x: 1}}"}},
		{snapshots, written{name: "a snapshot beside its request", after: "{metadata: {name: capture-u-1, " + label + ", ownerReferences: [" + owner + "]}, spec: {x: 1}}"}},
		{snapshots, written{name: "a snapshot of another name", after: "{metadata: {name: mine, " + label + "}, spec: {x: 1}}", want: created}},
		{snapshots, written{name: "a snapshot without the label", after: "{metadata: {name: capture-}, spec: {x: 1}}", want: created}},
		{snapshots, written{name: "its snapshot is deleted", before: "{metadata: {name: capture-u-1, " + label + "}, spec: {x: 1}}"}},
		{snapshots, written{name: "a user's snapshot is deleted", before: "{metadata: {name: friday}, spec: {x: 1}}", want: deleted}},
		{templates, written{name: "the hook deletes a user's template", as: hookName, before: "{metadata: {name: a}, spec: {x: 1}}", want: deleted}},
		{templates, written{name: "the hook changes a template", as: hookName, before: made, after: "{metadata: {name: a, " + label + ", ownerReferences: [" + owner + "]}, spec: {x: 2}}", want: changed}},
		{snapshots, written{name: "the hook deletes the snapshot of a request", as: hookName, before: "{metadata: {name: capture-u-1, " + label + "}, spec: {x: 1}}"}},
		{snapshots, written{name: "the hook deletes a user's snapshot", as: hookName, before: "{metadata: {name: friday}, spec: {x: 1}}", want: deleted}},
		{templates, written{name: "another service account", as: "system:serviceaccount:ci:deployer", after: "{metadata: {name: a}, spec: {x: 1}}"}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, policy, tc.of, tc.of.resource) })
	}
}

func TestWhatTheManagerWritesToItsWebhooks(t *testing.T) {
	const (
		differing = "Stencil's manager writes webhooks only as the chart has them, but for caBundle: change the values of the chart; differing: "
		policies  = "Stencil's manager writes webhooks of policies for VirtualMachines, the other kinds that run machines, VirtualMachineTemplates, and their requests, imports and exports only, at " +
			"its own address"
	)
	policy := evaluate(t, "manager-webhooks", map[string]string{
		"ownWebhooks": `{"render/a": ["service ns/s/p", "failurePolicy Fail", "rule kubevirt.io v1,v1alpha3 virtualmachines CREATE,UPDATE Namespaced",
			"matchCondition m x == 1", "namespaceSelector k In true,warn", "objectSelector l = v"],
			"render/b": ["url https://x/p", "failurePolicy Ignore", "rule  v1 namespaces UPDATE Cluster"]}`,
		"ownPolicyWebhooks": "'policies'", "ownAddresses": "['service ns/s/validate-policies']",
	})
	configuration := func(name, webhooks string) string {
		return "{metadata: {name: " + name + "}, webhooks: [" + webhooks + "]}"
	}
	a := func(clientConfig, failure, rules, conditions, selectors string) string {
		return `{name: a, clientConfig: ` + clientConfig + `, failurePolicy: ` + failure + `, rules: [` + rules + `], matchConditions: [` + conditions + `], ` + selectors + `, timeoutSeconds: 10}`
	}
	const (
		service    = `{service: {namespace: ns, name: s, path: /p, port: 443}, caBundle: QQ==}`
		rules      = `{apiGroups: [kubevirt.io], apiVersions: [v1, v1alpha3], resources: [virtualmachines], operations: [CREATE, UPDATE], scope: Namespaced}`
		conditions = `{name: m, expression: "x == 1"}`
		selectors  = `namespaceSelector: {matchExpressions: [{key: k, operator: In, values: ["true", warn]}]}, objectSelector: {matchLabels: {l: v}}`
		b          = `{name: b, clientConfig: {url: "https://x/p"}, failurePolicy: Ignore, rules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [UPDATE], scope: Cluster}], namespaceSelector: {}, objectSelector: {}}`
	)
	whole := a(service, "Fail", rules, conditions, selectors)
	ours := func(name, rule, service string) string {
		return `{name: ` + name + `, clientConfig: {service: {namespace: ns, name: ` + service + `, path: /validate-policies}}, failurePolicy: Fail, rules: [` + rule + `]}`
	}
	stored := configuration("render", whole+", "+b)
	for _, tc := range []written{
		{name: "as the chart has them", after: stored},
		{name: "another caBundle", before: stored, after: configuration("render", a(`{service: {namespace: ns, name: s, path: /p}, caBundle: Qg==}`, "Fail", rules, conditions, selectors)+", "+b)},
		{name: "put back what somebody has changed", before: configuration("render", a(service, "Ignore", rules, "", "namespaceSelector: {}")), after: stored},
		{name: "another order of webhooks", before: stored, after: configuration("render", b+", "+whole)},
		{name: "one webhook less", before: stored, after: configuration("render", whole), want: differing + "render/b"},
		{name: "no webhooks", before: stored, after: "metadata: {name: render}", want: differing + "render/a, render/b"},
		{name: "one more webhook", before: stored, after: configuration("render", whole+", "+b+", {name: c, clientConfig: {url: 'https://evil'}, failurePolicy: Ignore, rules: []}"), want: differing + "render/c"},
		{name: "another failurePolicy", before: stored, after: configuration("render", a(service, "Ignore", rules, conditions, selectors)+", "+b), want: differing + "render/a"},
		{name: "another address", before: stored, after: configuration("render", a(`{url: "https://evil/p"}`, "Fail", rules, conditions, selectors)+", "+b), want: differing + "render/a"},
		{name: "another Service", before: stored, after: configuration("render", a(`{service: {namespace: evil, name: s, path: /p}}`, "Fail", rules, conditions, selectors)+", "+b), want: differing + "render/a"},
		{name: "Secrets too", before: stored, after: configuration("render", a(service, "Fail", rules+`, {apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE]}`, conditions, selectors)+", "+b), want: differing + "render/a"},
		{name: "one condition less", before: stored, after: configuration("render", a(service, "Fail", rules, "", selectors)+", "+b), want: differing + "render/a"},
		{name: "one condition less and a rule twice", before: stored, after: configuration("render", a(service, "Fail", rules+", "+rules, "", selectors)+", "+b), want: differing + "render/a"},
		{name: "a condition that never holds", before: stored, after: configuration("render", a(service, "Fail", rules, conditions+`, {name: never, expression: "false"}`, selectors)+", "+b), want: differing + "render/a"},
		{name: "another namespaceSelector", before: stored, after: configuration("render", a(service, "Fail", rules, conditions, `namespaceSelector: {matchExpressions: [{key: k, operator: Exists}]}, objectSelector: {matchLabels: {l: v}}`)+", "+b), want: differing + "render/a"},
		{name: "another objectSelector", before: stored, after: configuration("render", a(service, "Fail", rules, conditions, `namespaceSelector: {matchExpressions: [{key: k, operator: In, values: ["true", warn]}]}, objectSelector: {matchLabels: {l: w}}`)+", "+b), want: differing + "render/a"},
		{name: "a configuration that the chart does not have", after: configuration("other", b), want: differing + "other/b"},
		{name: "an empty one that the chart does not have", after: "metadata: {name: other}"},
		{name: "webhooks of policies", after: configuration("policies", ours("p", rules, "s")+", "+ours("q", `{apiGroups: [template.kubevirt.io], apiVersions: [v1beta1], resources: [virtualmachinetemplates], operations: [DELETE]}`, "s"))},
		{name: "webhooks of policies for other kinds that run machines", after: configuration("policies", ours("p", `{apiGroups: [kubevirt.io], apiVersions: [v1, v1alpha3], resources: [virtualmachineinstances], operations: [CREATE]}`, "s")+", "+ours("q", `{apiGroups: [pool.kubevirt.io], apiVersions: [v1alpha1, v1beta1], resources: [virtualmachinepools], operations: [UPDATE]}`, "s"))},
		{name: "webhooks of policies for pods", after: configuration("policies", ours("p", `{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}`, "s")), want: policies},
		{name: "webhooks of policies for everything", after: configuration("policies", ours("p", `{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"]}`, "s")), want: policies},
		{name: "webhooks of policies for subresources", after: configuration("policies", ours("p", `{apiGroups: [kubevirt.io], apiVersions: [v1], resources: [virtualmachines/status], operations: [UPDATE]}`, "s")), want: policies},
		{name: "webhooks of policies at another address", after: configuration("policies", ours("p", rules, "evil")), want: policies},
		{name: "another service account", as: "system:serviceaccount:cert-manager:cainjector", before: stored, after: configuration("render", b)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.run(t, policy, &kindOf{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}, "mutatingwebhookconfigurations"}, "")
		})
	}
	t.Run("more webhooks than can be compared", func(t *testing.T) {
		many := b
		for range 16 {
			many += ", " + b
		}
		written{before: stored, after: configuration("render", many), want: differing + "the number of webhooks"}.run(t, policy,
			&kindOf{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}, "mutatingwebhookconfigurations"}, "")
	})
}
