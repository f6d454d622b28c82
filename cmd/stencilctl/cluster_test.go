package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

const (
	vmAt          = "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines"
	dataSourcesAt = "/apis/cdi.kubevirt.io/v1beta1/namespaces/golden/datasources"
	templateAt    = "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web"
	requestsAt    = "/apis/template.kubevirt.io/v1beta1/namespaces/shop/virtualmachinetemplaterequests"
	approvalAt    = "/apis/stencil.kubevirt.io/v1alpha1/templateapprovals"
	reviewsAt     = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	created       = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web/create"
	rendered      = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web/process"
)

const (
	may    = `{"status": {"allowed": true}}`
	mayNot = `{"status": {"allowed": false}}`
)

// respondWithError returns a Status of the API server that rejects a request.
func respondWithError(code int, reason, message string, causes ...string) string {
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
	var list []any
	for _, cause := range causes {
		field, text, _ := strings.Cut(cause, ": ")
		list = append(list, map[string]any{"field": field, "message": text})
	}
	status["details"] = map[string]any{"causes": list}
	raw, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// request returns a VirtualMachineTemplateRequest with conditions, each TYPE STATUS REASON.
func request(template string, conditions ...string) string {
	var list []any
	for _, condition := range conditions {
		words := strings.Fields(condition)
		list = append(list, map[string]any{"type": words[0], "status": words[1], "reason": words[2], "message": "told"})
	}
	status := map[string]any{"conditions": list}
	if template != "" {
		status["templateRef"] = map[string]any{"name": template}
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "web-1-abcde"}, "status": status})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// noNamespace is the response of stencil-apiserver about a namespace that does not exist.
func noNamespace(message string) string {
	return `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound", "details": {"name": "missing", "kind": "namespaces"}, "message": "` + message + `"}`
}

const team = `{"apiVersion": "stencil.kubevirt.io/v1alpha1", "kind": "TemplateApproval", "metadata": {"name": "team-a", "resourceVersion": "7"},
	"spec": {"future": 9007199254740993, "namespaces": ["team-a"], "templates": [{"namespace": "golden", "name": "web"}], "parameters": [{"name": "SIZE", "allowed": ["small"]}], "enforcement": "Warn"}}`

// pinned is a VirtualMachine with defaults, unpinned the same one without.
const (
	pinned = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web-1", "resourceVersion": "7", "annotations":
		{"defaults.template.kubevirt.io/applied": "{\"libvirt\":\"11.3.0\",\"machine\":\"pc-q35-9.2\",\"alias\":\"q35\",\"addresses\":{\"disks/root\":\"0000:07:00.0\"}}"}},
		"spec": {"runStrategy": "Halted", "future": 9007199254740993, "template": {"spec": {"domain": {"machine": {"type": "pc-q35-9.2"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio", "pciAddress": "0000:07:00.0"}}]}}}}}}`
	unpinned = `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web-1", "resourceVersion": "8", "annotations":
		{"defaults.template.kubevirt.io/skip": "true", "defaults.template.kubevirt.io/applied": "{\"libvirt\":\"11.3.0\",\"unpinned\":true}"}},
		"spec": {"runStrategy": "Halted", "future": 9007199254740993, "template": {"spec": {"domain": {"machine": {"type": "q35"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}}}}}`
)

// tuned returns a VM from a template that has so many cores.
func tuned(cores string) string {
	return `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web-1", "resourceVersion": "7", "annotations":
		{"template.kubevirt.io/template-ref": "golden/web", "template.kubevirt.io/rendered": "{\"namespace\":\"golden\",\"name\":\"web\"}"}},
		"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"cpu": {"cores": ` + cores + `}, "devices": {"disks": [{"name": "root", "bootOrder": ` + cores + `}]}}}}}}`
}

// copyingTemplate returns a template whose VMs copy a claim.
func copyingTemplate(generation int, version string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "golden", "name": "web", "generation": %d, "resourceVersion": %q, "labels": {"read": %q}}, "spec": {"parameters": [{"name": "NAME"}], "virtualMachine": {"spec": {
		"dataVolumeTemplates": [{"metadata": {"name": "${NAME}-root"}, "spec": {"storage": {}, "source": {"pvc": {"namespace": "golden", "name": "fedora"}}}}],
		"template": {"spec": {"volumes": [{"name": "root", "dataVolume": {"name": "${NAME}-root"}}]}}}}}}`, generation, version, version)
}

// withObjects returns a VirtualMachine of templateWithObjects.
func withObjects(metadata string) string {
	if !strings.Contains(metadata, "annotations") {
		metadata += `, "annotations": {"template.kubevirt.io/template-ref": "golden/web"}`
	}
	return `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web-1", ` + metadata + `}, "spec": {}}`
}

const (
	templateWithObjects = `{"spec": {"parameters": [{"name": "NAME"}, {"name": "PASSWORD", "generate": "expression", "from": "[a-f]{8}"}], "virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {}},
		"objects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "${NAME}-access"}, "stringData": {"password": "${PASSWORD}"}},
			{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "${NAME}"}, "spec": {"ports": [{"port": 80}]}},
			{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "${NAME}-gone"}, "spec": {"ports": [{"port": 80}]}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${NAME}-more"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${NAME}-seen"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c-${PASSWORD}"}},
			{"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "${NAME}"}}]}}`
	coreResources = `{"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}, {"name": "services/status", "kind": "Service", "namespaced": true},
		{"name": "services", "kind": "Service", "namespaced": true}, {"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]}`
)

// clustered are commands with the responses of the cluster, by method and path: one response
// after the other, the last one repeatedly. FILE stands for a file of testdata.
var clustered = map[string]struct {
	line    string
	answers map[string][]string
}{
	"diff":              {line: "diff web-1 -n shop", answers: map[string][]string{"GET " + vmAt + "/web-1": {"FILE machines/web-1.yaml"}, "GET " + templateAt: {"FILE templates/web.yaml"}}},
	"diff, as JSON":     {line: "diff -f machines/web-1.yaml -o json", answers: map[string][]string{"GET " + templateAt: {"FILE templates/web.yaml"}}},
	"diff, no machine":  {line: "diff web-1 -n shop"},
	"diff, no template": {line: "diff -f machines/web-1.yaml"},
	"diff, rendered from another": {line: "diff web-1 -n shop", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {`{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"namespace": "shop", "name": "web-1", "annotations": {"template.kubevirt.io/rendered": "{\"namespace\": \"golden\", \"name\": \"web\", \"digest\": \"sha256:0\"}"}}}`},
		"GET " + templateAt:      {`{"spec": {"virtualMachine": {"spec": {}}}}`},
	}},
	"diff, other objects": {line: "diff web-1 -n shop", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {withObjects(`"uid": "u-1"`)}, "GET " + templateAt: {templateWithObjects}, "GET /api/v1": {coreResources}, "GET /apis/example.com/v2": {respondWithError(404, "NotFound", "there is none")},
		"GET /api/v1/namespaces/shop/secrets/web-1-access":  {`{"metadata": {"name": "web-1-access", "labels": {"objects.template.kubevirt.io/owner": "u-1"}}, "data": {"password": "aHVudGVyMg=="}}`},
		"GET /api/v1/namespaces/shop/services/web-1":        {`{"metadata": {"name": "web-1", "labels": {"objects.template.kubevirt.io/owner": "u-1"}}, "spec": {"ports": [{"port": 81}]}}`},
		"GET /api/v1/namespaces/shop/configmaps/web-1-more": {`{"metadata": {"labels": {"objects.template.kubevirt.io/owner": "u-2"}}}`},
		"GET /api/v1/namespaces/shop/configmaps/web-1-seen": {respondWithError(403, "Forbidden", "ada cannot get it")},
	}},
	"diff, other objects as YAML": {line: "diff web-1 -n shop -o yaml", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {withObjects(`"uid": "u-1"`)}, "GET " + templateAt: {`{"spec": {"parameters": [{"name": "NAME"}], "virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {}},
			"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${NAME}-seen"}}]}}`}, "GET /api/v1": {coreResources},
		"GET /api/v1/namespaces/shop/configmaps/web-1-seen": {respondWithError(403, "Forbidden", "ada cannot get it")},
	}},
	"diff, other objects pending": {line: "diff web-1 -n shop", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {withObjects(`"uid": "u-1", "annotations": {"objects.template.kubevirt.io/pending": "x", "template.kubevirt.io/template-ref": "golden/web"}`)}, "GET " + templateAt: {templateWithObjects},
	}},
	"diff, an object cannot be read": {line: "diff web-1 -n shop", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {withObjects(`"uid": "u-1"`)}, "GET " + templateAt: {templateWithObjects}, "GET /api/v1": {respondWithError(500, "InternalError", "it is broken")},
	}},

	"convert stored, its status is written meanwhile": {line: "convert --sources --stored web -n golden", answers: map[string][]string{
		"GET " + templateAt: {copyingTemplate(1, "7"), copyingTemplate(1, "8")}, "PUT " + templateAt: {respondWithError(409, "Conflict", "the object has been modified"), copyingTemplate(1, "9")},
		"POST " + dataSourcesAt: {`{}`},
	}},
	"convert stored, its spec is changed meanwhile": {line: "convert --sources --stored web -n golden", answers: map[string][]string{
		"GET " + templateAt: {copyingTemplate(1, "7"), copyingTemplate(2, "8")}, "PUT " + templateAt: {respondWithError(409, "Conflict", "the object has been modified")},
		"POST " + dataSourcesAt: {`{}`},
	}},
	"convert stored, always written": {line: "convert --sources --stored web -n golden", answers: map[string][]string{
		"GET " + templateAt: {copyingTemplate(1, "7")}, "PUT " + templateAt: {respondWithError(409, "Conflict", "the object has been modified")}, "POST " + dataSourcesAt: {`{}`},
	}},

	"approve":          {line: "approve team-b --template golden/web,golden/* -n team-b --override spec.runStrategy --allow SIZE=small,large", answers: map[string][]string{"POST " + approvalAt: {`{"metadata": {"name": "team-b"}}`}}},
	"approve, as YAML": {line: "approve team-b --template golden/web -n team-b --dry-run=client -o yaml"},
	"approve, more": {line: "approve team-a --template golden/db --template golden/web --namespace team-a,team-c --allow SIZE=large", answers: map[string][]string{
		"GET " + approvalAt + "/team-a": {team}, "PUT " + approvalAt + "/team-a": {team},
	}},
	"approve, any value": {line: "approve team-a --any-value SIZE,SSH_KEY --allow SIZE=large", answers: map[string][]string{
		"GET " + approvalAt + "/team-a": {team}, "PUT " + approvalAt + "/team-a": {team}}},
	"approve, nothing new": {line: "approve team-a --template golden/web --allow SIZE=small --enforcement Warn", answers: map[string][]string{"GET " + approvalAt + "/team-a": {team}}},
	"approve, changed meanwhile": {line: "approve team-a -n team-b --dry-run=server", answers: map[string][]string{
		"GET " + approvalAt + "/team-a": {team},
		"PUT " + approvalAt + "/team-a": {respondWithError(409, "Conflict", "the object has been modified"), team},
	}},
	"approve, always changed": {line: "approve team-a -n team-b -o name", answers: map[string][]string{
		"GET " + approvalAt + "/team-a": {team}, "PUT " + approvalAt + "/team-a": {respondWithError(409, "Conflict", "the object has been modified")},
	}},
	"approve, forbidden":         {line: "approve team-a -n team-b", answers: map[string][]string{"GET " + approvalAt + "/team-a": {respondWithError(403, "Forbidden", "ada cannot get it")}}},
	"approve, nothing":           {line: "approve team-a"},
	"approve, no template":       {line: "approve team-b -n team-b"},
	"approve, no namespace":      {line: "approve team-b --template golden/web"},
	"approve, a template's name": {line: "approve team-b --template web -n team-b"},
	"approve, no values":         {line: "approve team-b --allow SIZE"},
	"approve, not valid":         {line: "approve team-b --template golden/web -n team-b,kube-system --override spec.** --enforcement Never"},

	"unpin": {line: "defaults unpin web-1 db-1 -n shop --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {pinned}, "PUT " + vmAt + "/web-1": {pinned},
	}},
	"unpin, a dry run": {line: "defaults unpin -l os=fedora -n shop", answers: map[string][]string{
		"GET " + vmAt: {`{"items": [` + pinned + `, {"metadata": {"namespace": "shop", "name": "bare"}, "spec": {}}, {"metadata": {"namespace": "shop", "name": "busy"}, "status": {"created": true}}]}`}, "PUT " + vmAt + "/web-1": {pinned},
	}},
	"unpin, refused": {line: "defaults unpin web-1 -n shop --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {pinned}, "PUT " + vmAt + "/web-1": {respondWithError(403, "Forbidden", "it is not approved here", "spec.template.spec.domain.machine.type: the approval does not list it among its overrides")},
	}},
	"unpin, changed meanwhile": {line: "defaults unpin web-1 -n shop --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {pinned}, "PUT " + vmAt + "/web-1": {respondWithError(409, "Conflict", "the object has been modified")},
	}},
	"repin": {line: "defaults repin web-1 -n shop --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {pinned}, "PUT " + vmAt + "/web-1": {unpinned, pinned},
	}},
	"repin, the defaulter is away": {line: "defaults repin web-1 -n shop --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {unpinned}, "PUT " + vmAt + "/web-1": {`{"metadata": {"namespace": "shop", "name": "web-1", "annotations": {"defaults.template.kubevirt.io/failed": "the defaulter does not answer"}}}`},
	}},
	"repin, nothing selected": {line: "defaults repin -n shop"},

	"explain a machine, allowed": {line: "explain -f machines/web-1.yaml", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + vmAt: {`{}`},
	}},
	"explain a machine, refused by a webhook": {line: "explain -f machines/short.yaml -n shop", answers: map[string][]string{
		"POST " + reviewsAt: {may, mayNot}, "GET " + templateAt: {"FILE templates/web.yaml"},
		"POST " + vmAt: {respondWithError(422, "Invalid", `admission webhook "render.template.kubevirt.io" denied the request: VirtualMachine "web-2" is invalid: parameters[CORES]: Invalid value: "many": must be an integer`,
			`parameters[CORES]: Invalid value: "many": must be an integer`)},
	}},
	"explain a machine, as JSON": {line: "explain -f machines/short.yaml -n shop -o json", answers: map[string][]string{
		"POST " + reviewsAt: {respondWithError(403, "Forbidden", "no reviews for you")}, "GET " + templateAt: {respondWithError(403, "Forbidden", "ada cannot get it")},
		"POST " + vmAt: {respondWithError(403, "Forbidden", `virtualmachines.kubevirt.io "web-2" is forbidden: ValidatingAdmissionPolicy 'stencil-template-use' with binding 'stencil-template-use' denied request: no`)},
	}},
	"explain a machine, no such template": {line: "explain -f machines/short.yaml -n shop", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "POST " + vmAt: {respondWithError(404, "NotFound", `admission webhook "render.template.kubevirt.io" denied the request: no template`)},
	}},
	"explain a machine, somebody else's policy": {line: "explain -f objects/good.yaml -n shop", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "POST " + vmAt: {respondWithError(403, "Forbidden", `x is forbidden: ValidatingAdmissionPolicy 'quota' denied request: too many`)},
	}},
	"explain a machine, a webhook is down": {line: "explain -f objects/good.yaml -n shop", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "POST " + vmAt: {respondWithError(500, "InternalError", `Internal error occurred: failed calling webhook "render.template.kubevirt.io": failed to call webhook: connection refused`)},
	}},
	"explain a machine, it is there already": {line: "explain -f objects/good.yaml -n shop", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "POST " + vmAt: {respondWithError(409, "AlreadyExists", `virtualmachines.kubevirt.io "good" already exists`)},
	}},
	"explain a machine, a generated name": {line: "explain -f machines/generated.yaml -n green", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "POST " + strings.Replace(vmAt, "shop", "green", 1): {`{}`},
	}},
	"explain a change, no namespace": {line: "explain web-1 -n missing -p CORES=4"},
	"templates, no namespace": {line: "templates -n missing", answers: map[string][]string{
		"GET /apis/subresources.template.kubevirt.io/v1beta1/namespaces/missing/availabletemplates": {noNamespace(`namespace \"missing\" does not exist`)},
	}},
	"templates, of a namespace that the user may not see": {line: "templates -n missing", answers: map[string][]string{
		"GET /apis/subresources.template.kubevirt.io/v1beta1/namespaces/missing/availabletemplates": {noNamespace(`namespace \"missing\" does not exist, or you may not see it`)},
	}},
	"schema, no namespace": {line: "schema golden/web -n missing", answers: map[string][]string{
		"GET /apis/subresources.template.kubevirt.io/v1beta1/namespaces/missing/availabletemplates/golden.web": {noNamespace(`namespace \"missing\" does not exist`)},
	}},
	"process, the template has no namespace": {line: "process missing/web -n shop --local"},
	"image list, no namespace": {line: "image list -n missing", answers: map[string][]string{
		"GET /apis/stencil.kubevirt.io/v1alpha1/namespaces/missing/goldenimages": {`{"items": []}`},
	}},
	"image list, of a namespace that the user may not see": {line: "image list -n missing", answers: map[string][]string{
		"GET /apis/stencil.kubevirt.io/v1alpha1/namespaces/missing/goldenimages": {`{"items": []}`},
		"GET /api/v1/namespaces/missing":                                         {respondWithError(403, "Forbidden", "ada cannot get it")},
	}},
	"repin, no namespace": {line: "defaults repin --all -n missing", answers: map[string][]string{
		"GET " + strings.Replace(vmAt, "shop", "missing", 1): {`{"items": []}`},
	}},
	"explain a machine, a file without -f": {line: "explain machines/web-1.yaml", answers: map[string][]string{
		"POST " + reviewsAt: {may}, "GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + vmAt: {`{}`},
	}},
	"capture, by the old name of a flag": {line: "capture web-1 -n shop --dry-run=client -o yaml --instancetype Keep"},
	"explain a machine, nothing":         {line: "explain"},
	"explain a machine, no machine":      {line: "explain -f templates/web.yaml"},
	"explain a change": {line: "explain web-1 -n shop -p CORES=4 -p ZONE-", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {tuned("2")}, "POST " + reviewsAt: {may}, "PATCH " + vmAt + "/web-1": {tuned("4")},
	}},
	"explain a change, as JSON": {line: "explain web-1 -n shop -p CORES=4 -o json", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {tuned("2")}, "POST " + reviewsAt: {may}, "PATCH " + vmAt + "/web-1": {tuned("4")},
	}},
	"explain a change, nothing depends on it": {line: "explain web-1 -n shop -p CORES=2", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {tuned("2")}, "POST " + reviewsAt: {may}, "PATCH " + vmAt + "/web-1": {tuned("2")},
	}},
	"explain a change, denied": {line: "explain web-1 -n shop -p CORES=64", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {tuned("2")}, "POST " + reviewsAt: {may, mayNot},
		"PATCH " + vmAt + "/web-1": {respondWithError(403, "Forbidden", `admission webhook "render.template.kubevirt.io" denied the request: user "ada" may not use template golden/web`)},
	}},
	"explain a change, of another namespace": {line: "explain shop/web-1 -p CORES=2", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {tuned("2")}, "POST " + reviewsAt: {may}, "PATCH " + vmAt + "/web-1": {tuned("2")},
	}},
	"explain a change, of two namespaces": {line: "explain shop/web-1 -n golden -p CORES=2"},
	"unpin, of another namespace": {line: "defaults unpin shop/web-1 --confirm", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {pinned}, "PUT " + vmAt + "/web-1": {pinned},
	}},
	"image, of two namespaces":              {line: "image pin golden/fedora sha256:1 -n shop"},
	"explain a change, no VM":               {line: "explain web-1 -n shop -p CORES=4"},
	"explain a change, not from a template": {line: "explain web-1 -n shop -p CORES=4", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned}}},
	"explain a change, no parameter":        {line: "explain web-1 -n shop"},
	"explain a change, malformed":           {line: "explain web-1 -n shop -p CORES"},
	"explain a change, of a file":           {line: "explain -f machines/web-1.yaml -p CORES=4"},

	"capture": {line: "capture web-1 -n shop --name web --labels os=fedora --ttl 1h", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned}, "POST " + requestsAt: {request("")}}},
	"capture, waiting": {line: "capture other/web-1 -n shop --wait --poll-interval 1ms", answers: map[string][]string{"GET " + strings.Replace(vmAt, "shop", "other", 1) + "/web-1": {pinned},
		"POST " + requestsAt: {request("")},
		"GET " + requestsAt + "/web-1-abcde": {request(""), request("", "Progressing True Reconciling"), request("", "Progressing True Reconciling"),
			request("", "Progressing True Waiting", "Ready False Waiting"), request("web", "Progressing False Reconciled", "Ready True Reconciled")},
	}},
	"capture, failing": {line: "capture web-1 -n shop --wait --poll-interval 1ms", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned},
		"POST " + requestsAt: {request("")}, "GET " + requestsAt + "/web-1-abcde": {request("", "Progressing False Failed", "Ready False Failed")},
	}},
	"capture, too late": {line: "capture web-1 -n shop --wait --timeout 2s --poll-interval 1h", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned},
		"POST " + requestsAt: {request("")}, "GET " + requestsAt + "/web-1-abcde": {request("", "Progressing True Reconciling")},
	}},
	"capture, deleted": {line: "capture web-1 -n shop --wait", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned}, "POST " + requestsAt: {request("")}}},
	"capture, refused": {line: "capture web-1 -n shop", answers: map[string][]string{"GET " + vmAt + "/web-1": {pinned}, "POST " + requestsAt: {respondWithError(403, "Forbidden", "ada cannot create it")}}},
	"version": {line: "version", answers: map[string][]string{
		"GET /version":                   {`{"gitVersion": "v1.34.1"}`},
		"GET /apis/template.kubevirt.io": {`{"versions": [{"groupVersion": "template.kubevirt.io/v1beta1"}, {"groupVersion": "template.kubevirt.io/v1alpha1"}]}`},
	}},
	"version, as JSON":                {line: "version -o json", answers: map[string][]string{"GET /version": {`{"gitVersion": "v1.34.1"}`}}},
	"version, without the cluster":    {line: "version --client -o json"},
	"capture, no VM":                  {line: "capture web-1 -n shop --wait"},
	"capture, no VM and no namespace": {line: "capture missing/web-1 -n shop --wait"},
	"capture, of a VM that the user may not get": {line: "capture web-1 -n shop", answers: map[string][]string{
		"GET " + vmAt + "/web-1": {respondWithError(403, "Forbidden", "ada cannot get it")}, "POST " + requestsAt: {request("")},
	}},
	"capture, of a server that fails":  {line: "capture web-1 -n shop", answers: map[string][]string{"GET " + vmAt + "/web-1": {respondWithError(400, "BadRequest", "etcd is away")}}},
	"capture, a dry run":               {line: "capture web-1 -n shop --dry-run=client -o yaml"},
	"capture, with all it may ask for": {line: "capture web-1 -n shop --dry-run=client -o yaml --instancetype-mode Keep --run-strategy Keep --secrets Parameterize --secretize --keep-layout --parameterize INSTANCETYPE,SSH_KEY --limit 2h"},
	"capture, with objects": {line: "capture web-1 -n shop --include Services,Secrets", answers: map[string][]string{
		"POST " + requestsAt: {request("")},
		"GET " + vmAt + "/web-1": {`{"metadata": {"name": "web-1"}, "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"volumes": [
			{"cloudInitNoCloud": {"secretRef": {"name": "login"}, "networkDataSecretRef": {"name": "login"}}}, {"secret": {"secretName": "gone"}}, {"configMap": {"name": "login"}}]}}}}`},
		"GET /api/v1/namespaces/shop/services": {`{"items": [{"metadata": {"name": "web", "uid": "u", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "spec": {"selector": {"app": "web"}}, "status": {}},
			{"metadata": {"name": "pods"}, "spec": {"selector": {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "web-1"}}}, {"metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}}}, {"metadata": {"name": "external"}, "spec": {}}]}`},
		"GET /api/v1/namespaces/shop/secrets/login": {`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "data": {"userdata": "eA=="}, "type": "Opaque"}`},
	}},
	"capture, with a Secret that the user may not read": {line: "capture web-1 -n shop --include Secrets", answers: map[string][]string{
		"GET " + vmAt + "/web-1":                   {`{"metadata": {"name": "web-1"}, "spec": {"template": {"spec": {"accessCredentials": [{"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}}}]}}}}`},
		"GET /api/v1/namespaces/shop/secrets/keys": {respondWithError(403, "Forbidden", `secrets "keys" is forbidden: User "ada" cannot get resource "secrets"`)},
	}},
	"capture, with objects of no machine": {line: "capture web-1 -n shop --include Services"},
	"capture, no such objects":            {line: "capture web-1 --include Pods"},
	"capture, no such choice":             {line: "capture web-1 --secrets Hide"},
	"capture, no such parameter":          {line: "capture web-1 --parameterize COLOUR"},
	"capture, waiting for nothing":        {line: "capture web-1 -n shop --dry-run=server --wait"},
	"capture, no name":                    {line: "capture a/b/c"},
	"capture, no time":                    {line: "capture web-1 --timeout 0s"},
	"capture, a strategy":                 {line: "capture web-1 --dry-run=maybe"},
}

func TestCommandsInACluster(t *testing.T) {
	t.Chdir("testdata")
	for name, tc := range clustered {
		t.Run(name, func(t *testing.T) { compare(t, name, runInCluster(t, tc.line, tc.answers)) })
	}
}

// runInCluster runs a command line in a fake cluster, and returns what it prints and what it wrote.
func runInCluster(t *testing.T, line string, answers map[string][]string) string {
	t.Helper()
	c := &fakeCluster{test: t, answers: answers}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	var out, errors bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errors}
	arguments := append([]string{"stencilctl"}, strings.Fields(line)...)
	code := run(t.Context(), append(arguments, "--server", server.URL), streams)

	got := fmt.Sprintf("$ stencilctl %s\n%s", line, out.String())
	if errors.Len() > 0 {
		got += "--- standard error\n" + errors.String()
	}
	return got + fmt.Sprintf("--- exit code %d\n", code) + c.log.String()
}

// fakeCluster answers requests, and records those that write.
type fakeCluster struct {
	test    *testing.T
	mutex   sync.Mutex
	answers map[string][]string
	asked   map[string]int
	log     strings.Builder
	// refresh is the last value of the annotation of a GoldenImage. NOW stands for it in responses and in the log.
	refresh string
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if body, err := io.ReadAll(r.Body); err != nil {
		c.test.Error(err)
	} else if len(body) > 0 {
		if found := refreshAnnotation.FindSubmatch(body); found != nil {
			c.refresh = string(found[1])
			body = bytes.ReplaceAll(body, found[1], []byte("NOW"))
		}
		fmt.Fprintf(&c.log, "--- %s %s\n%s\n", r.Method, r.URL.RequestURI(), body)
	}
	key := r.Method + " " + r.URL.Path
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	answer := respondWithError(404, "NotFound", "not found")
	if name, is := strings.CutPrefix(key, "GET /api/v1/namespaces/"); is && !strings.Contains(name, "/") && name != "missing" {
		answer = fmt.Sprintf(`{"metadata": {"name": %q}}`, name)
	}
	if list := c.answers[key]; len(list) > 0 {
		answer = list[min(c.asked[key], len(list)-1)]
	}
	c.asked[key]++
	if file, isFile := strings.CutPrefix(answer, "FILE "); isFile {
		content, err := os.ReadFile(file)
		if err == nil {
			content, err = yaml.YAMLToJSON(content)
		}
		if err != nil {
			c.test.Error(err)
		}
		answer = string(content)
	}
	answer = strings.ReplaceAll(answer, "NOW", c.refresh)
	var status struct {
		Kind string `json:"kind"`
		Code int    `json:"code"`
	}
	if err := json.Unmarshal([]byte(answer), &status); err != nil {
		c.test.Errorf("%s: %v", key, err)
	}
	w.Header().Set("Content-Type", "application/json")
	if key == "POST "+vmAt {
		w.Header().Set("Warning", `299 - "it is only a test"`)
	}
	if status.Kind == "Status" {
		w.WriteHeader(status.Code)
	}
	fmt.Fprint(w, answer)
}

// compare is golden without what differs in each run.
func compare(t *testing.T, name, got string) {
	t.Helper()
	golden(t, name, scrub(got))
}

// golden compares the output of a command with a golden file, or writes that file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", "ESC")
	file := filepath.Join("golden", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)+".txt")
	if *update {
		testfile.Write(t, file, got)
	}
	want := testfile.Read(t, file)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got), write it with -update:\n%s", diff)
	}
}
