package chart

import (
	"testing"

	"github.com/vmstencil/stencil/test/install"
)

const revisionAccount = "system:serviceaccount:" + install.Namespace + ":stencil-revisions"

func TestRevisions(t *testing.T) {
	const account = " {.spec.variables[?(@.name==\"revisionUser\")].expression}"
	runRenderCases(t, map[string]renderCase{
		"reports only by default": {
			want: map[string]any{
				"ValidatingAdmissionPolicy/stencil-manager-revisions" + account:    `""`,
				"ValidatingAdmissionPolicy/stencil-stored-instancetypes" + account: `""`,
			},
			absent: []string{"ServiceAccount/stencil-revisions", "ClusterRole/stencil-revisions", "ClusterRoleBinding/stencil-revisions"},
		},
		"replaces": {
			values: `{revisions: {write: true}}`,
			want: map[string]any{
				"ValidatingAdmissionPolicy/stencil-manager-revisions" + account:                  `"` + revisionAccount + `"`,
				"ValidatingAdmissionPolicy/stencil-stored-instancetypes" + account:               `"` + revisionAccount + `"`,
				"ServiceAccount/stencil-revisions {.automountServiceAccountToken}":               false,
				"ClusterRoleBinding/stencil-revisions {.roleRef.name}":                           "stencil-revisions",
				"ClusterRoleBinding/stencil-revisions {.subjects}":                               []any{map[string]any{"kind": "ServiceAccount", "name": "stencil-revisions", "namespace": install.Namespace}},
				deployment + " {" + container + ".args}":                                         items{"--revision-account=" + revisionAccount},
				"Role/stencil-manager {.rules[?(@.verbs[0]==\"impersonate\")].resourceNames[*]}": []string{"stencil-disks", "stencil-revisions", "stencil-images", "stencil-objects"},
			},
		},
	})
}

// The account as which the manager replaces stored instance types.
//
//suite:long
func TestTheAccountOfRevisionsWritesRevisionsOnly(t *testing.T) {
	options := install.Options{Values: map[string]any{"revisions": map[string]any{"write": true}}}
	plane := installed(t, options)
	manager, err := options.ManagerUser(plane)
	if err != nil {
		t.Fatal(err)
	}
	accountMay(t, plane, manager, "stencil-revisions", map[string][]string{"default": rightsTo(map[string]string{
		"resourcequotas":                                          "list",
		"apps/controllerrevisions":                                "create patch delete",
		"kubevirt.io/virtualmachines/finalizers":                  "update",
		"snapshot.kubevirt.io/virtualmachinesnapshots/finalizers": "update",
	})})
}
