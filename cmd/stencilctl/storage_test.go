package main

import (
	"fmt"
	"maps"
	"testing"
)

func TestInstallMigrateStorage(t *testing.T) {
	t.Chdir("testdata")
	const (
		templates  = "virtualmachinetemplates"
		requests   = "virtualmachinetemplaterequests"
		group      = ".template.kubevirt.io"
		listAt     = "GET /apis/template.kubevirt.io/v1beta1/"
		first      = "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/fedora"
		second     = "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/ubuntu"
		conflicted = "the object has been modified"
	)
	definition := func(plural, resourceVersion, stored string) string {
		return fmt.Sprintf(`{"metadata": {"name": %q, "resourceVersion": %q}, "spec": {"group": "template.kubevirt.io", "names": {"plural": %q},
			"versions": [{"name": "v1alpha1", "served": true, "storage": false}, {"name": "v1beta1", "served": true, "storage": true}]}, "status": {"storedVersions": [%s]}}`,
			plural+group, resourceVersion, plural, stored)
	}
	object := func(name, resourceVersion string) string {
		return fmt.Sprintf(`{"metadata": {"namespace": "golden", "name": %q, "resourceVersion": %q}}`, name, resourceVersion)
	}
	const both, current = `"v1alpha1", "v1beta1"`, `"v1beta1"`
	statusAt := "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + templates + group + "/status"
	base := map[string][]string{
		definitionsAt + templates + group: {definition(templates, "7", both)},
		definitionsAt + requests + group:  {definition(requests, "8", current)},
		listAt + templates:                {`{"items": [` + object("fedora", "1") + "," + object("ubuntu", "2") + `]}`},
		"PATCH " + first:                  {plain}, "PATCH " + second: {plain},
		statusAt: {plain},
	}
	for name, tc := range map[string]struct {
		flags   string
		answers map[string][]string
	}{
		"to do":           {"", nil},
		"dry run":         {" --dry-run", nil},
		"all is done":     {"", map[string][]string{definitionsAt + templates + group: {definition(templates, "7", current)}}},
		"no definitions":  {"", map[string][]string{definitionsAt + templates + group: nil, definitionsAt + requests + group: nil}},
		"one definition":  {"", map[string][]string{definitionsAt + requests + group: nil}},
		"a conflict":      {"", map[string][]string{"PATCH " + first: {respondWithError(409, "Conflict", conflicted), plain}, "GET " + first: {object("fedora", "3")}}},
		"conflicts":       {"", map[string][]string{"PATCH " + first: {respondWithError(409, "Conflict", conflicted)}, "GET " + first: {object("fedora", "3")}}},
		"deleted":         {"", map[string][]string{"PATCH " + first: nil, "PATCH " + second: {respondWithError(409, "Conflict", conflicted)}}},
		"denied":          {"", map[string][]string{"PATCH " + second: {respondWithError(403, "Forbidden", "the policy denies it")}}},
		"no list":         {"", map[string][]string{listAt + templates: {respondWithError(403, "Forbidden", "templates is forbidden")}}},
		"no status":       {"", map[string][]string{statusAt: {respondWithError(403, "Forbidden", "customresourcedefinitions/status is forbidden")}}},
		"another writer":  {"", map[string][]string{statusAt: {respondWithError(409, "Conflict", conflicted), plain}, definitionsAt + templates + group: {definition(templates, "7", both), definition(templates, "9", both)}}},
		"a writer always": {"", map[string][]string{statusAt: {respondWithError(409, "Conflict", conflicted)}}},
		"no storage":      {"", map[string][]string{definitionsAt + templates + group: {`{"metadata": {"resourceVersion": "1"}, "spec": {}}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := maps.Clone(base)
			maps.Copy(answers, tc.answers)
			compare(t, "install migrate-storage, "+name, runInCluster(t, "install migrate-storage"+tc.flags, answers))
		})
	}
}
