package policies_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/install"
)

// labelling is what it takes to change the labels of namespaces, in each of the ways there are.
var labelling = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, Verbs: []string{"get", "update", "patch"},
}

func leaves(approval string) refusal {
	return refusal{"namespace-coverage", "with these labels TemplateApproval " + approval + " would no longer cover the Namespace: " +
		"keep the labels that its namespaceSelector asks for, or have somebody change them who may update templateapprovals.stencil.kubevirt.io"}
}

func enters(approval string) refusal {
	return refusal{"namespace-coverage", "with these labels TemplateApproval " + approval + " would cover the Namespace, which it does not yet: " +
		"leave out the labels that its namespaceSelector asks for, or have somebody set them who may update templateapprovals.stencil.kubevirt.io"}
}

var keptLabel = refusal{"governed-label", "label stencil.kubevirt.io/governed of a Namespace is kept by Stencil and follows from the TemplateApprovals: " +
	"leave it as it is stored, or have it changed by somebody who may update templateapprovals.stencil.kubevirt.io"}

// managing is the right to manage one approval, or all of them.
func managing(approvals ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"stencil.kubevirt.io"}, Resources: []string{"templateapprovals"}, Verbs: []string{"update"}, ResourceNames: approvals,
	}
}

func TestRelabellingANamespaceIsNoEscape(t *testing.T) {
	labeller, other, one := person(t, "labeller", labelling), person(t, "labeller-other", labelling, managing("another")), person(t, "labeller-one", labelling, managing("labels"))
	approver := person(t, "approver", labelling)
	if err := shared.Plane(t).Bind(t.Context(), approver, "", "stencil-template-approver"); err != nil {
		t.Fatal(err)
	}
	space := namespace(t, "env=prod", "team=a", "zone=x")
	free := namespace(t, "team=a")
	listed := namespace(t, "env=prod")
	approve(t, "labels", object{"namespaces": []any{listed}, "namespaceSelector": object{
		"matchLabels": object{"env": "prod"}, "matchExpressions": []any{object{"key": "legacy", "operator": "DoesNotExist"}},
	}})

	label := func(as *controlplane.User, namespace string, changes ...string) controlplane.Result {
		return kubectl(t, as, "", append([]string{"label", "namespace", namespace, "--overwrite", "--dry-run=server"}, changes...)...)
	}
	cases := map[string]struct {
		as        *controlplane.User // labeller when nil
		namespace string             // space when empty
		changes   []string
		want      refusal
	}{
		"the label is removed":                                      {changes: []string{"env-"}, want: leaves("labels")},
		"the label gets another value":                              {changes: []string{"env=dev"}, want: leaves("labels")},
		"the label is emptied":                                      {changes: []string{"env="}, want: leaves("labels")},
		"a label is added that the approval does not want":          {changes: []string{"legacy=true"}, want: leaves("labels")},
		"the label is removed, and others are added":                {changes: []string{"env-", "team=b", "x=y"}, want: leaves("labels")},
		"it is removed by who may update another approval":          {as: other, changes: []string{"env-"}, want: leaves("labels")},
		"it is removed by who may update this one":                  {as: one, changes: []string{"env-"}},
		"it is removed by who may update all":                       {as: approver, changes: []string{"env-"}},
		"it is removed by the administrator":                        {as: shared.Plane(t).Admin(), changes: []string{"env-"}},
		"other labels change":                                       {changes: []string{"team=b", "zone-", "x=y"}},
		"the label gets the value it has":                           {changes: []string{"env=prod"}},
		"a namespace that is listed by name loses the label":        {namespace: listed, changes: []string{"env-"}},
		"a namespace outside gets the label":                        {namespace: free, changes: []string{"env=prod"}, want: enters("labels")},
		"a namespace outside gets the label from who may update it": {as: one, namespace: free, changes: []string{"env=prod"}},
		"a namespace outside gets the label and one that excludes":  {namespace: free, changes: []string{"env=prod", "legacy=true"}},
		"a namespace outside gets another value":                    {namespace: free, changes: []string{"env=dev"}},
		"kube-system gets the label":                                {namespace: "kube-system", changes: []string{"env=prod"}},
		"Stencil's own namespace gets the label":                    {namespace: "stencil-system", changes: []string{"env=prod"}},
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
	stored := func(change func(string) string) string {
		return change(mustKubectl(t, "", "get", "namespace", space, "--output=json"))
	}
	escaped := stored(func(namespace string) string { return strings.Replace(namespace, `"env": "prod"`, `"env": "dev"`, 1) })
	for name, result := range map[string]func() controlplane.Result{
		"by a JSON patch": func() controlplane.Result {
			return kubectl(t, labeller, "", "patch", "namespace", space, "--type=json", "--patch", `[{"op": "remove", "path": "/metadata/labels/env"}]`)
		},
		"by a merge patch of all labels": func() controlplane.Result {
			return kubectl(t, labeller, "", "patch", "namespace", space, "--type=merge", "--patch", `{"metadata": {"labels": null}}`)
		},
		"by replacing it": func() controlplane.Result { return kubectl(t, labeller, escaped, "replace", "-f", "-") },
		"by server-side apply": func() controlplane.Result {
			return kubectl(t, labeller, encode(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": space, "labels": object{"env": "dev"}}}),
				"apply", "--server-side", "--force-conflicts", "-f", "-")
		},
		"by way of status": func() controlplane.Result {
			return kubectl(t, labeller, "", "patch", "namespace", space, "--subresource=status", "--type=merge", "--patch", `{"metadata": {"labels": {"env": "dev"}}}`)
		},
		"by way of finalize": func() controlplane.Result {
			return kubectl(t, labeller, escaped, "replace", "--raw", "/api/v1/namespaces/"+space+"/finalize", "-f", "-")
		},
	} {
		t.Run("the label is removed "+name, func(t *testing.T) {
			leaves("labels").check(t, result())
			if got := mustKubectl(t, "", "get", "namespace", space, "--output=jsonpath={.metadata.labels.env}"); got != "prod" {
				t.Errorf("the label is now %q", got)
			}
		})
	}
	t.Run("whatever the approval does", func(t *testing.T) {
		for _, enforcement := range []string{"Warn", "Audit"} {
			mustKubectl(t, "", "patch", "templateapproval", "labels", "--type=merge", "--patch", `{"spec": {"enforcement": "`+enforcement+`"}}`)
			eventually(t, func() string { return refusal{}.complaint(probe(t, space)) })
			leaves("labels").check(t, label(labeller, space, "env-"))
		}
		mustKubectl(t, "", "patch", "templateapproval", "labels", "--type=merge", "--patch", `{"spec": {"enforcement": "Deny"}}`)
		eventually(t, func() string { return needsTemplate("labels").complaint(probe(t, space)) })
	})
	t.Run("a laxer approval is no way out of a stricter one", func(t *testing.T) {
		approve(t, "lax", object{"namespaceSelector": object{"matchLabels": object{"playground": "true"}}})
		enters("lax").check(t, label(labeller, space, "playground=true"))
	})
	t.Run("a selector of everything leaves no way out, and labels are free", func(t *testing.T) {
		approve(t, "all", object{"namespaceSelector": object{}})
		refusal{}.check(t, label(labeller, space, "team-"))
	})
	t.Run("a namespace is deleted with its labels", func(t *testing.T) {
		refusal{}.check(t, kubectl(t, nil, "", "delete", "namespace", space, "--dry-run=server"))
	})
}

// The label that sends machines to the webhooks.
func TestTheGovernedLabelIsKept(t *testing.T) {
	labeller := person(t, "labeller", labelling)
	manager, err := install.Options{}.ManagerUser(shared.Plane(t))
	if err != nil {
		t.Fatal(err)
	}
	approver := person(t, "approver", labelling)
	if err := shared.Plane(t).Bind(t.Context(), approver, "", "stencil-template-approver"); err != nil {
		t.Fatal(err)
	}
	governed, free := namespace(t, "stencil.kubevirt.io/governed=true"), namespace(t)
	patch := func(as *controlplane.User, namespace, labels string, more ...string) controlplane.Result {
		return kubectl(t, as, "", append([]string{"patch", "namespace", namespace, "--dry-run=server", "--type=merge",
			"--patch", `{"metadata": {"labels": ` + labels + `}}`}, more...)...)
	}
	const key = `"stencil.kubevirt.io/governed"`
	for name, result := range map[string]func(as *controlplane.User) controlplane.Result{
		"it is removed": func(as *controlplane.User) controlplane.Result { return patch(as, governed, `{`+key+`: null}`) },
		"it is changed": func(as *controlplane.User) controlplane.Result { return patch(as, governed, `{`+key+`: "false"}`) },
		"all labels are removed": func(as *controlplane.User) controlplane.Result {
			return patch(as, governed, `null`)
		},
		"it is added": func(as *controlplane.User) controlplane.Result { return patch(as, free, `{`+key+`: "true"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			keptLabel.check(t, result(labeller))
			refusal{}.check(t, result(approver))
			refusal{}.check(t, result(manager))
			refusal{}.check(t, result(nil))
		})
	}
	t.Run("it is removed by way of status", func(t *testing.T) {
		keptLabel.check(t, patch(labeller, governed, `{`+key+`: null}`, "--subresource=status"))
	})
	t.Run("it is removed by way of finalize", func(t *testing.T) {
		without := strings.Replace(mustKubectl(t, "", "get", "namespace", governed, "--output=json"), `"stencil.kubevirt.io/governed": "true"`, `"a": "b"`, 1)
		keptLabel.check(t, kubectl(t, labeller, without, "replace", "--raw", "/api/v1/namespaces/"+governed+"/finalize", "-f", "-"))
	})
	t.Run("other labels are free", func(t *testing.T) {
		refusal{}.check(t, patch(labeller, governed, `{"team": "a"}`))
		refusal{}.check(t, patch(labeller, governed, `{"stencil.kubevirt.io/governed": "true"}`))
	})
	t.Run("the manager does not move a namespace out of an approval either", func(t *testing.T) {
		space := namespace(t, "env=prod")
		approve(t, "strict", object{"namespaceSelector": object{"matchLabels": object{"env": "prod"}}})
		leaves("strict").check(t, patch(manager, space, `{"env": null}`))
	})
}
