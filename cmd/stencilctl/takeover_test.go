package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
)

const (
	kubeVirtAt     = " /apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
	templatesNamed = "virtualmachinetemplates.template.kubevirt.io"
	requestsNamed  = "virtualmachinetemplaterequests.template.kubevirt.io"
	denied         = "ValidatingAdmissionPolicy 'stencil-definitions' with binding 'stencil-definitions' denied request: all templates are deleted with it"
	// settledOff is a KubeVirt that has done all that its object says, without templates.
	settledOff = `{"metadata": {"namespace": "kubevirt", "name": "kubevirt", "generation": 3}, "spec": {"configuration": {"virtTemplateDeployment": {"enabled": false}}},
		"status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.9.0", "observedGeneration": 3, "observedDeploymentID": "a", "targetDeploymentID": "a",
			"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}, {"type": "Degraded", "status": "False"}]}}`
	// stuckOn is one whose virt-operator fails to create definitions that are no longer its own.
	stuckOn = `{"metadata": {"namespace": "kubevirt", "name": "kubevirt", "generation": 2}, "spec": {},
		"status": {"phase": "Deployed", "observedKubeVirtVersion": "v1.9.0", "conditions": [{"type": "Synchronized", "status": "False", "message": "unable to create crd: already exists"}]}}`
	unaware = `{"metadata": {"namespace": "kubevirt", "name": "kubevirt"}, "spec": {}, "status": {"observedKubeVirtVersion": "v1.9.0"}}`
)

// guardAt begins the requests that read the policy against the deletion of the definitions.
const guardAt = "GET /apis/admissionregistration.k8s.io/v1/validatingadmission"

// TestTakeover takes the steps against prepared responses. The real virt-operator takes part in test/e2e/takeover.
func TestTakeover(t *testing.T) {
	t.Chdir("testdata")
	withUID := func(owner, uid string) string {
		return strings.Replace(owner, `{"metadata": {`, `{"metadata": {"uid": "`+uid+`", `, 1)
	}
	template := `{"items": [{"metadata": {"namespace": "shop", "name": "web", "uid": "t-1"}, "spec": {"virtualMachine": {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}}}]}`
	cluster := func(owner string, more ...map[string][]string) map[string][]string {
		answers := kubeVirtOf("v1.9.0", "")
		maps.Copy(answers, withDefinitions(withUID(owner, "d-1"), true, 0))
		answers["GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplates"] = []string{template}
		for _, name := range []string{templatesNamed, requestsNamed} {
			answers["DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+name] = []string{respondWithError(403, "Forbidden", denied)}
		}
		for _, kind := range []string{"policies", "policybindings"} {
			answers[guardAt+kind+"/stencil-definitions"] = []string{`{"metadata": {"name": "stencil-definitions"}}`}
		}
		for _, each := range more {
			maps.Copy(answers, each)
		}
		return answers
	}
	for name, tc := range map[string]struct {
		line    string
		saved   string
		answers map[string][]string
	}{
		"takeover, dry run": {line: "install takeover --dry-run", answers: cluster(ofOperator, map[string][]string{
			"GET" + kubeVirtAt: {unaware}, guardAt + "policies/stencil-definitions": {respondWithError(404, "NotFound", "none")}})},
		"takeover, dry run, a policy that does not hold": {line: "install takeover --dry-run", answers: cluster(ofOperator, map[string][]string{
			"GET" + kubeVirtAt: {unaware}, "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + templatesNamed: {`{}`}})},
		"takeover, a template that is rejected": {line: "install takeover --dry-run", answers: cluster(ofHelm, map[string][]string{
			"GET" + kubeVirtAt: {settledOff}, "GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplates": {`{"items": [{"metadata": {"namespace": "shop", "name": "web", "uid": "t-1"}, "spec": {}}]}`}})},
		"takeover, already": {line: "install takeover", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{"GET" + kubeVirtAt: {settledOff}})},
		"takeover, goes on": {line: "install takeover", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{
			"GET" + kubeVirtAt: {stuckOn, stuckOn, stuckOn, settledOff}, "PATCH" + kubeVirtAt: {settledOff}})},
		"takeover, virt-operator does not run": {line: "install takeover --step-timeout 1ms", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{"GET" + kubeVirtAt: {unaware}})},
		"takeover, a template is gone": {line: "install takeover", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{
			"GET" + kubeVirtAt: {settledOff}, "GET /apis/template.kubevirt.io/v1beta1/virtualmachinetemplates": {strings.Replace(template, "t-1", "t-2", 1)}})},
		"takeover, a definition is being deleted": {line: "install takeover", saved: "takeover.yaml", answers: cluster(strings.Replace(ofOperator, `{"metadata": {`, `{"metadata": {"deletionTimestamp": "2026-11-25T10:00:00Z", `, 1))},
		"takeover, an APIService is another": {line: "install takeover", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{
			"GET" + kubeVirtAt: {settledOff}, servicesAt + "v1alpha1.subresources.template.kubevirt.io": {withUID(ofHelm, "s-9")},
			servicesAt + "v1beta1.subresources.template.kubevirt.io": {withUID(ofHelm, "s-9")}})},
		"takeover, no KubeVirt":  {line: "install takeover", answers: map[string][]string{"GET /apis/kubevirt.io/v1/kubevirts": {`{"items": []}`}}},
		"takeover, another file": {line: "install takeover --dry-run", saved: "values.yaml", answers: cluster(ofHelm, map[string][]string{"GET" + kubeVirtAt: {settledOff}})},
		"takeover, no release":   {line: "install takeover --release stencil"},
		"takeover, forbidden":    {line: "install takeover", saved: "takeover.yaml", answers: cluster(ofOperator, map[string][]string{"DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + requestsNamed: {respondWithError(403, "Forbidden", "ada cannot delete it")}})},
		"release, dry run":       {line: "install release --dry-run", answers: cluster(ofHelm, map[string][]string{"GET" + kubeVirtAt: {settledOff}, "GET /apis/apps/v1/namespaces/stencil-system/deployments": {`{"items": []}`}})},
		"release, installed":     {line: "install release", answers: cluster(ofHelm, map[string][]string{"GET /apis/apps/v1/namespaces/stencil-system/deployments": {`{"items": [{"metadata": {"name": "stencil-manager"}}]}`}})},
		"release, virt-operator does not run": {line: "install release --step-timeout 1ms", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{
			"GET /apis/apps/v1/namespaces/stencil-system/deployments": {`{"items": []}`}, "GET" + kubeVirtAt: {unaware}})},
		"release, the gate is off": {line: "install release", saved: "takeover.yaml", answers: cluster(ofHelm, map[string][]string{
			"GET /apis/apps/v1/namespaces/stencil-system/deployments": {`{"items": []}`},
			"GET" + kubeVirtAt: {`{"metadata": {}, "spec": {"configuration": {"developerConfiguration": {"disabledFeatureGates": ["Template"]}}}, "status": {"observedKubeVirtVersion": "v1.9.0"}}`}})},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "saved.yaml")
			if tc.saved != "" {
				testfile.Write(t, path, string(testfile.Read(t, filepath.Join("install", tc.saved))))
			}
			got := runInCluster(t, tc.line+" --file "+path, tc.answers)
			compare(t, "install "+name, strings.ReplaceAll(got, path, "FILE"))
		})
	}
}
