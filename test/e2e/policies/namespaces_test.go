package policies_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/install"
)

// labelling permits all requests that change the labels of namespaces.
var labelling = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"get", "update", "patch"},
}

// relabelled denies a change of a label that some approval selects by. outdated denies the same change by authorized users while the label that was
// computed from the previous labels stays.
var (
	relabelled = denial{"namespace-coverage", "TemplateApprovals select namespaces by a label that this request changes: keep the labels that their " +
		"namespaceSelectors name, or have them changed by a user who may update templateapprovals.stencil.kubevirt.io"}
	outdated = denial{"namespace-coverage", "TemplateApprovals select namespaces by a label that this request changes: remove label " +
		"stencil.kubevirt.io/governed in the same request, as Stencil's webhook does while its manager runs"}
)

func protected(what string) denial {
	return denial{"governed-label", what + " of a Namespace is written by Stencil and follows from the TemplateApprovals: " +
		"leave it as it is stored, or have it changed by a user who may update templateapprovals.stencil.kubevirt.io"}
}

var protectedLabel, protectedAnnotation = protected("label " + governedLabel), protected("annotation " + approvalsAnnotation)

// managing permits to update one approval, or all of them.
func managing(approvals ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"stencil.kubevirt.io"}, Resources: []string{"templateapprovals"}, Verbs: []string{"update"}, ResourceNames: approvals,
	}
}

func TestRelabellingANamespaceIsNoEscape(t *testing.T) {
	labeller, one := newOwner(t, "labeller", labelling), newOwner(t, "labeller-one", labelling, managing("labels"))
	approver := newApprover(t)
	space := namespace(t, "env=prod", "team=a", "zone=x", "region=eu")
	free := namespace(t, "team=a")
	listed := namespace(t, "env=prod")
	// 317 characters and a value of 63, more than a key of the index has.
	long := strings.Repeat(strings.Repeat("p", 49)+".", 5) + "com/" + strings.Repeat("k", 63)
	approve(t, "labels", object{"namespaces": []any{listed}, "namespaceSelector": object{
		"matchLabels": object{"env": "prod"}, "matchExpressions": []any{
			object{"key": "legacy", "operator": "DoesNotExist"},
			object{"key": "region", "operator": "NotIn", "values": []any{"us", "mars"}},
			object{"key": "colour", "operator": "NotIn", "values": []any{"red"}},
		},
	}})
	approve(t, "long", object{"namespaceSelector": object{"matchLabels": object{long: strings.Repeat("v", 63)}}})

	label := func(as *controlplane.User, namespace string, changes ...string) controlplane.Result {
		return dry(t, as, "").label(namespaces, namespace, changes...)
	}
	// The API server observes the index a moment after the namespaces.
	eventually(t, "the API server has read the index", func() string { return relabelled.complaint(label(labeller, free, long+"="+strings.Repeat("v", 63))) })
	const undecide = governedLabel + "-"
	cases := map[string]struct {
		as        *controlplane.User // labeller when nil
		namespace string             // space when empty
		changes   []string
		want      denial
	}{
		"the label is removed":                                            {changes: []string{"env-"}, want: relabelled},
		"the label gets another value":                                    {changes: []string{"env=dev"}, want: relabelled},
		"the label is emptied":                                            {changes: []string{"env="}, want: relabelled},
		"a label is added that the approval does not want":                {changes: []string{"legacy=true"}, want: relabelled},
		"a label gets a value that the approval does not want":            {changes: []string{"region=us"}, want: relabelled},
		"a label is added with one":                                       {changes: []string{"colour=red"}, want: relabelled},
		"a label is added with a value that no approval mentions":         {changes: []string{"colour=blue"}},
		"a label gets a value that no approval mentions":                  {changes: []string{"region=asia"}},
		"the label is removed, and others are added":                      {changes: []string{"env-", "team=b", "x=y"}, want: relabelled},
		"the label is added, and that of Stencil removed":                 {namespace: free, changes: []string{"env=prod", undecide}, want: relabelled},
		"it is removed by who may update this approval alone":             {as: one, changes: []string{"env-"}, want: relabelled},
		"it is removed by who may update all":                             {as: approver, changes: []string{"env-"}, want: outdated},
		"it is removed by who may update all, with that":                  {as: approver, changes: []string{"env-", undecide}},
		"it is removed by the administrator":                              {as: shared.Plane(t).Admin(), changes: []string{"env-"}, want: outdated},
		"it is removed by the administrator, with that":                   {as: shared.Plane(t).Admin(), changes: []string{"env-", undecide}},
		"other labels change":                                             {changes: []string{"team=b", "zone-", "x=y"}},
		"other labels change, and the namespace becomes undecided":        {namespace: free, changes: []string{"team=b", undecide}},
		"other labels change, and a governed namespace becomes undecided": {changes: []string{"team=b", undecide}, want: protectedLabel},
		"the label gets the value it has":                                 {changes: []string{"env=prod"}},
		"a namespace that is listed by name loses the label":              {namespace: listed, changes: []string{"env-"}, want: relabelled},
		"a namespace outside gets the label":                              {namespace: free, changes: []string{"env=prod"}, want: relabelled},
		"a namespace outside gets it from who may":                        {as: approver, namespace: free, changes: []string{"env=prod", undecide}},
		"a namespace outside gets the label and one that excludes":        {namespace: free, changes: []string{"env=prod", "legacy=true"}, want: relabelled},
		"a namespace outside gets one that excludes":                      {namespace: free, changes: []string{"legacy=true"}, want: relabelled},
		"a namespace outside gets another value":                          {namespace: free, changes: []string{"env=dev"}},
		"kube-system gets the label":                                      {namespace: "kube-system", changes: []string{"env=prod"}},
		"Stencil's own namespace gets the label":                          {namespace: "stencil-system", changes: []string{"env=prod"}},
	}
	t.Run("each", func(t *testing.T) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				as, namespace := tc.as, tc.namespace
				if as == nil {
					as = labeller
				}
				if namespace == "" {
					namespace = space
				}
				tc.want.check(t, label(as, namespace, tc.changes...))
			})
		}
	})
	other := acting(t, nil, "").get(namespaces, space)
	labels := other.GetLabels()
	labels["env"] = "dev"
	other.SetLabels(labels)
	escaped := encode(other.Object)
	for name, request := range map[string]func(as requests) controlplane.Result{
		"by a JSON patch": func(as requests) controlplane.Result {
			return as.patchJSON(namespaces, space, `[{"op": "remove", "path": "/metadata/labels/env"}]`)
		},
		"by a merge patch of several labels": func(as requests) controlplane.Result { return as.label(namespaces, space, "env-", "team-") },
		"by replacing it":                    func(as requests) controlplane.Result { return as.replace(escaped) },
		"by server-side apply": func(as requests) controlplane.Result {
			return as.apply(encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": space, "labels": object{"env": "dev"}}}))
		},
		"by way of status": func(as requests) controlplane.Result {
			return as.patch(namespaces, space, `{"metadata": {"labels": {"env": "dev"}}}`, "status")
		},
		"by way of finalize": func(as requests) controlplane.Result { return as.replace(escaped, "finalize") },
	} {
		t.Run("the label is removed "+name, func(t *testing.T) {
			relabelled.check(t, request(acting(t, labeller, "")))
			if got := acting(t, nil, "").field(namespaces, space, "metadata", "labels", "env"); got != "prod" {
				t.Errorf("the label is now %q", got)
			}
		})
	}
	t.Run("whatever the approval does", func(t *testing.T) {
		for _, enforcement := range []string{"Warn", "Audit"} {
			enforce(t, "labels", enforcement)
			eventually(t, "the approval refuses nothing", func() string { return denial{}.complaint(probe(t, space)) })
			relabelled.check(t, label(labeller, space, "env-"))
		}
		enforce(t, "labels", "Deny")
		eventually(t, "the approval denies", func() string { return needsTemplate("labels").complaint(probe(t, space)) })
	})
	t.Run("a laxer approval is no way out of a stricter one", func(t *testing.T) {
		approve(t, "lax", object{"namespaceSelector": object{"matchLabels": object{"playground": "true"}}})
		eventually(t, "the API server has read the index", func() string { return relabelled.complaint(label(labeller, space, "playground=true")) })
	})
	t.Run("a selector of everything leaves no way out, and labels are free", func(t *testing.T) {
		approve(t, "all", object{"namespaceSelector": object{}})
		denial{}.check(t, label(labeller, space, "team-"))
	})
	t.Run("a namespace is deleted with its labels", func(t *testing.T) {
		denial{}.check(t, dry(t, nil, "").delete(namespaces, space))
	})
}

// managersLabel denies the manager all labels but its own.
var managersLabel = denial{"manager-namespaces", "Stencil's manager changes no label of a Namespace but stencil.kubevirt.io/governed: change others as another user"}

// The policies trust what Stencil writes to namespaces, so no other user may change it. All users may remove the label where it is false: that allows
// nothing.
func TestWhatStencilWritesToNamespacesIsKept(t *testing.T) {
	labeller := newOwner(t, "labeller", labelling, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"}})
	approver := newApprover(t)
	harness.Grant(t, shared.Plane(t), approver, "", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create"},
	})
	one := newOwner(t, "labeller-one", labelling, managing("keeps"))
	manager, err := install.Options{}.ManagerUser(shared.Plane(t))
	if err != nil {
		t.Fatal(err)
	}
	space, free := namespace(t), namespace(t)
	approve(t, "keeps", object{"namespaces": []any{space}})
	patch := func(as *controlplane.User, namespace, metadata string, subresources ...string) controlplane.Result {
		return dry(t, as, "").patch(namespaces, namespace, `{"metadata": `+metadata+`}`, subresources...)
	}
	const (
		label      = `"stencil.kubevirt.io/governed"`
		annotation = `"stencil.kubevirt.io/approvals"`
	)
	for name, tc := range map[string]struct {
		namespace, metadata string
		want                denial
	}{
		"the label is changed":                        {space, `{"labels": {` + label + `: "false"}}`, protectedLabel},
		"the label is emptied":                        {space, `{"labels": {` + label + `: ""}}`, protectedLabel},
		"the label gets a value that nobody writes":   {free, `{"labels": {` + label + `: "maybe"}}`, protectedLabel},
		"the label of a namespace outside is changed": {free, `{"labels": {` + label + `: "true"}}`, protectedLabel},
		"the annotation is changed":                   {space, `{"annotations": {` + annotation + `: "1;keeps;;golden/*,silver/*"}}`, protectedAnnotation},
		"the annotation is emptied":                   {space, `{"annotations": {` + annotation + `: ""}}`, protectedAnnotation},
		"the annotation is added":                     {free, `{"annotations": {` + annotation + `: "1;keeps;;golden/*"}}`, protectedAnnotation},
		"the label is removed":                        {space, `{"labels": {` + label + `: null}}`, protectedLabel},
		"the annotation is removed":                   {space, `{"annotations": {` + annotation + `: null}}`, protectedAnnotation},
		"all labels are removed":                      {space, `{"labels": null}`, protectedLabel},
		"all annotations are removed":                 {space, `{"annotations": null}`, protectedAnnotation},
		"both are removed":                            {space, `{"labels": {` + label + `: null}, "annotations": {` + annotation + `: null}}`, protectedLabel},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.check(t, patch(labeller, tc.namespace, tc.metadata))
			tc.want.check(t, patch(labeller, tc.namespace, tc.metadata, "status"))
			tc.want.check(t, patch(one, tc.namespace, tc.metadata))
			denial{}.check(t, patch(approver, tc.namespace, tc.metadata))
			denial{}.check(t, patch(manager, tc.namespace, tc.metadata))
			denial{}.check(t, patch(nil, tc.namespace, tc.metadata))
		})
	}
	for name, tc := range map[string]struct{ namespace, metadata string }{
		"the label of a namespace outside is removed":    {free, `{"labels": {` + label + `: null}}`},
		"all labels of a namespace outside are removed":  {free, `{"labels": null}`},
		"all annotations of one outside are removed":     {free, `{"annotations": null}`},
		"other labels change":                            {space, `{"labels": {"team": "a"}, "annotations": {"note": "mine"}}`},
		"the label is sent again":                        {space, `{"labels": {` + label + `: "true"}}`},
		"the label of a namespace outside is sent again": {free, `{"labels": {` + label + `: "false"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			denial{}.check(t, patch(labeller, tc.namespace, tc.metadata))
			denial{}.check(t, patch(labeller, tc.namespace, tc.metadata, "status"))
		})
	}
	t.Run("the label is changed by way of finalize", func(t *testing.T) {
		changed := acting(t, nil, "").get(namespaces, space)
		labels := changed.GetLabels()
		labels[governedLabel] = "false"
		changed.SetLabels(labels)
		protectedLabel.check(t, acting(t, labeller, "").replace(encode(changed.Object), "finalize"))
	})
	t.Run("a namespace is created", func(t *testing.T) {
		create := func(as *controlplane.User, labels, annotations object) controlplane.Result {
			manifest := encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "brought", "labels": labels, "annotations": annotations}})
			return dry(t, as, "").create(manifest)
		}
		for _, value := range []string{"false", "true", "", "maybe"} {
			protectedLabel.check(t, create(labeller, object{governedLabel: value}, nil))
			denial{}.check(t, create(approver, object{governedLabel: value}, nil))
		}
		protectedAnnotation.check(t, create(labeller, nil, object{approvalsAnnotation: "1;;;golden/*"}))
		denial{}.check(t, create(approver, nil, object{approvalsAnnotation: "1;;;golden/*"}))
		denial{}.check(t, create(labeller, object{"team": "a"}, object{"note": "mine"}))
	})
	t.Run("what is removed is written again", func(t *testing.T) {
		before := acting(t, nil, "").get(namespaces, space).GetAnnotations()[approvalsAnnotation]
		denial{}.check(t, acting(t, approver, "").patch(namespaces, space,
			`{"metadata": {"labels": {`+label+`: null}, "annotations": {`+annotation+`: null}}}`))
		eventually(t, "label and annotation are as before", func() string {
			now := acting(t, nil, "").get(namespaces, space)
			if got, after := now.GetLabels()[governedLabel], now.GetAnnotations()[approvalsAnnotation]; got != "true" || after != before {
				return "label " + got + ", annotation " + after
			}
			return needsTemplate("keeps").complaint(probe(t, space))
		})
	})
	t.Run("the manager does not move a namespace out of an approval either", func(t *testing.T) {
		space := namespace(t, "env=prod")
		approve(t, "strict", object{"namespaceSelector": object{"matchLabels": object{"env": "prod"}}})
		// Two policies deny it, and the API server reports one of them.
		for _, change := range []string{`{"labels": {"env": null}}`, `{"labels": {"env": null, ` + label + `: null}}`} {
			result := patch(manager, space, change)
			if one, other := relabelled.complaint(result), managersLabel.complaint(result); one != "" && other != "" {
				t.Error(other)
			}
		}
		managersLabel.check(t, patch(manager, space, `{"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}`))
	})
}

// The policies trust the approvals in the ConfigMap.
func TestTheIndexIsKept(t *testing.T) {
	const name = "stencil-approval-index"
	editing := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	editor, approver := newOwner(t, "editor", editing), newOwner(t, "approving-editor", editing, managing())
	protectedIndex := denial{"approval-index", "ConfigMap stencil-approval-index is written by Stencil and follows from the TemplateApprovals: leave it, or have it changed by " +
		"a user who may update templateapprovals.stencil.kubevirt.io"}
	space := namespace(t)
	index := func(name string) string {
		return encode(object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"a": "b"}})
	}
	mustPass(t, acting(t, nil, space).create(index(name)))
	for what, request := range map[string]func(as requests) controlplane.Result{
		"it is patched": func(as requests) controlplane.Result {
			return as.patch(configMaps, name, `{"data": {"all": null, "x": "y"}}`)
		},
		"it is replaced": func(as requests) controlplane.Result { return as.replace(index(name)) },
		"it is applied":  func(as requests) controlplane.Result { return as.apply(index(name)) },
		"it is labelled": func(as requests) controlplane.Result { return as.label(configMaps, name, "a=b") },
		"it is deleted":  func(as requests) controlplane.Result { return as.delete(configMaps, name) },
		"it is deleted with others": func(as requests) controlplane.Result {
			return answered(as.to(configMaps).DeleteCollection(lasting(as.t), metav1.DeleteOptions{DryRun: as.dryRun}, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
		},
	} {
		t.Run(what, func(t *testing.T) {
			protectedIndex.check(t, request(dry(t, editor, install.Namespace)))
			denial{}.check(t, request(dry(t, editor, space)))
			denial{}.check(t, request(dry(t, approver, install.Namespace)))
			denial{}.check(t, request(dry(t, nil, install.Namespace)))
		})
	}
	t.Run("others are free", func(t *testing.T) {
		denial{}.check(t, dry(t, editor, install.Namespace).create(index("mine")))
	})
	t.Run("what the administrator changes is written again", func(t *testing.T) {
		admin := acting(t, nil, install.Namespace)
		mustPass(t, admin.patch(configMaps, name, `{"data": {"x": "y"}}`))
		mustPass(t, admin.delete(configMaps, name))
		approve(t, "indexed", object{"namespaces": []any{space}})
		eventually(t, "the index is as it was, with the approval", func() string {
			if !admin.exists(configMaps, name) {
				return "there is none"
			}
			data, _, err := unstructured.NestedStringMap(admin.get(configMaps, name).Object, "data")
			indexed := strings.Contains(data["n"], ","+space+",")
			if _, changed := data["x"]; err != nil || !indexed || changed {
				return fmt.Sprintf("it has %v", data)
			}
			return ""
		})
	})
	t.Run("nobody but users who may update approvals creates it", func(t *testing.T) {
		withoutManager(t)
		mustPass(t, acting(t, nil, install.Namespace).delete(configMaps, name))
		protectedIndex.check(t, dry(t, editor, install.Namespace).create(index(name)))
		denial{}.check(t, dry(t, approver, install.Namespace).create(index(name)))
	})
}

// newApprover may change labels of namespaces, and update every approval.
func newApprover(t *testing.T) *controlplane.User {
	t.Helper()
	approver := newOwner(t, "approver", labelling)
	harness.Bind(t, shared.Plane(t), approver, "", "stencil-template-approver")
	return approver
}
