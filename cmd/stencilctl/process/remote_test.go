package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/process"
	"github.com/vmstencil/stencil/template"
)

// recordedRequest is a request that the cluster received.
type recordedRequest struct {
	Method, URI string
	Body        map[string]any
}

// answered is the response of the cluster.
type answered struct {
	code    int
	body    string
	warning string
}

// clusterOf returns a cluster that answers requests by method and path, and records them.
func clusterOf(t *testing.T, answers map[string]answered) (url string, requests *[]recordedRequest) {
	t.Helper()
	requests = &[]recordedRequest{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := recordedRequest{Method: r.Method, URI: r.URL.RequestURI()}
		raw, err := io.ReadAll(r.Body)
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, &one.Body)
		}
		if err != nil {
			t.Error(err)
		}
		*requests = append(*requests, one)
		answer, found := answers[r.Method+" "+r.URL.Path]
		if !found {
			answer = answered{code: 404, body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "the server could not find the requested resource", "code": 404}`}
		}
		w.Header().Set("Content-Type", "application/json")
		if answer.warning != "" {
			w.Header().Set("Warning", fmt.Sprintf("299 - %q", answer.warning))
		}
		w.WriteHeader(answer.code)
		fmt.Fprint(w, answer.body)
	}))
	t.Cleanup(server.Close)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	return server.URL, requests
}

const (
	subresources = "/apis/subresources.template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/"
	processed    = `{"kind": "ProcessedVirtualMachineTemplate", "message": "hello", "templateRef": {"namespace": "golden", "name": "web"},
		"virtualMachine": {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web-1", "annotations": {"big": "1"}}, "spec": {"n": 9007199254740993}}}`
	stored = `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"namespace": "golden", "name": "web"},
		"spec": {"message": "from here", "parameters": [{"name": "NAME", "required": true}, {"name": "SECRET", "sensitive": true, "value": "horse"}],
		"virtualMachine": {"metadata": {"name": "${NAME}"}, "spec": {"runStrategy": "Halted"}}}}`
)

const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

func TestProcessInTheCluster(t *testing.T) {
	var object v1beta1.VirtualMachineTemplate
	if err := json.Unmarshal([]byte(stored), &object); err != nil {
		t.Fatal(err)
	}
	compiled, err := template.Compile(&object)
	if err != nil {
		t.Fatal(err)
	}
	digest := compiled.Digest()
	review := recordedRequest{Method: "POST", URI: reviews + "?fieldValidation=Strict", Body: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": "use", "group": "template.kubevirt.io", "version": "v1beta1", "resource": "virtualmachinetemplates", "namespace": "golden", "name": "web",
		}},
	}}
	const vm = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  annotations:\n    big: \"1\"\n  name: web-1\nspec:\n  \"n\": 9007199254740993\n"
	for _, tc := range []struct {
		name      string
		line      []string
		answers   map[string]answered
		wantCode  int
		wantOut   string
		wantErr   string
		wantAsked []recordedRequest
	}{
		{
			name:    "values are sent, the message and warnings go to standard error",
			line:    []string{"golden/web", "-p", "NAME=web-1", "-p", "SIZE=1.10"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: processed, warning: "parameter SIZE is declared and never referred to"}},
			wantOut: vm, wantErr: "Warning: parameter SIZE is declared and never referred to\nhello\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/process", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions",
				"parameters": map[string]any{"NAME": "web-1", "SIZE": "1.10"}, "targetNamespace": "default",
			}}},
		},
		{
			name:    "created in another namespace",
			line:    []string{"web", "-n", "golden", "--create", "--target-namespace", "shop", "-o", "name"},
			answers: map[string]answered{"POST " + subresources + "web/create": {code: 200, body: processed}},
			wantOut: "virtualmachine.kubevirt.io/web-1\n", wantErr: "hello\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/create", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions", "targetNamespace": "shop",
			}}},
		},
		{
			name:    "in the namespace of -n, of a template of another namespace",
			line:    []string{"golden/web", "-n", "shop"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: processed}},
			wantOut: strings.Replace(vm, "  name: web-1\n", "  name: web-1\n  namespace: shop\n", 1), wantErr: "hello\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/process", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions", "targetNamespace": "shop",
			}}},
		},
		{
			name:    "--target-namespace wins",
			line:    []string{"golden/web", "-n", "shop", "--target-namespace", "bank", "--explain", "-o", "json"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: processed}},
			wantOut: "{\n  \"allowed\": true,\n  \"decisions\": []\n}\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/process", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions", "targetNamespace": "bank", "explain": true,
			}}},
		},
		{
			name:    "a template of the namespace of -n, with the VirtualMachine beside it",
			line:    []string{"web", "-n", "golden", "--create", "-o", "name"},
			answers: map[string]answered{"POST " + subresources + "web/create": {code: 200, body: processed}},
			wantOut: "virtualmachine.kubevirt.io/web-1\n", wantErr: "hello\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/create", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions",
			}}},
		},
		{
			name:     "parameters that put it into another namespace than -n",
			line:     []string{"golden/web", "-n", "shop"},
			answers:  map[string]answered{"POST " + subresources + "web/process": {code: 200, body: `{"virtualMachine": {"metadata": {"name": "web-1", "namespace": "bank"}}}`}},
			wantCode: cli.ExitUsage,
			wantErr:  "error: -n shop: the parameters put the VirtualMachine into namespace bank\n",
		},
		{
			name: "explained, with denials",
			line: []string{"golden/web", "-p", "NAME=web-1", "--target-namespace", "shop", "--explain"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: strings.Replace(processed, `"message": "hello"`, `"message": "hello", "decisions": [
				{"decision": "deny", "kind": "VirtualMachinePolicy", "policy": "sizes", "message": "too\nlarge", "field": "spec.instancetype", "fix": "take u1.small"},
				{"decision": "deny", "message": "virtualmachines.kubevirt.io \"web-1\" already exists"},
				{"decision": "warn", "kind": "Rules", "policy": "template golden/web", "message": "memory: small", "field": "spec.template"},
				{"decision": "allow", "kind": "TemplateApproval", "policy": "team"}, {"decision": "allow", "kind": "TemplateApproval", "message": "the approvals of the namespace exempt you"}]`, 1)}},
			wantCode: cli.ExitFindings,
			wantOut: "DECISION   BY                           FIELD               MESSAGE\n" +
				"deny       VirtualMachinePolicy/sizes   spec.instancetype   too large; fix: take u1.small\n" +
				"deny       admission                    <none>              virtualmachines.kubevirt.io \"web-1\" already exists\n" +
				"warn       template golden/web          spec.template       memory: small\n" +
				"allow      TemplateApproval/team        <none>              <none>\n" +
				"allow      TemplateApproval             <none>              the approvals of the namespace exempt you\n",
			wantErr: "error: something was found\n",
			wantAsked: []recordedRequest{{Method: "POST", URI: subresources + "web/process", Body: map[string]any{
				"apiVersion": "subresources.template.kubevirt.io/v1beta1", "kind": "ProcessOptions",
				"parameters": map[string]any{"NAME": "web-1"}, "targetNamespace": "shop", "explain": true,
			}}},
		},
		{
			name:    "explained for programs, where nothing judges it",
			line:    []string{"golden/web", "--explain", "-o", "json"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: processed}},
			wantOut: "{\n  \"allowed\": true,\n  \"decisions\": []\n}\n",
		},
		{
			name:    "explained for people, where nothing judges it",
			line:    []string{"golden/web", "--explain"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 200, body: processed}},
			wantOut: "no approval, policy or other admission evaluates this VirtualMachine: it would be created\n",
		},
		{name: "a file is not explained", line: []string{"-f", "web.yaml", "--explain"}, wantCode: cli.ExitUsage,
			wantErr: "error: --explain needs a template that is stored in the cluster: for a manifest, use stencilctl explain\n"},
		{name: "what is created is not explained", line: []string{"golden/web", "--create", "--explain"}, wantCode: cli.ExitUsage,
			wantErr: "error: --explain creates nothing, and prints decisions: leave out --create and --print-params\n"},
		{name: "decisions have no names", line: []string{"golden/web", "--explain", "-o", "name"}, wantCode: cli.ExitUsage,
			wantErr: "error: --explain has no names to print: the format is table, json or yaml\n"},
		{
			name: "refused, with causes",
			line: []string{"golden/web"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 422, body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
				"message": "VirtualMachineTemplate.template.kubevirt.io \"web\" is invalid: [parameters[NAME]: Required value: the template has no value for it, parameters[X]: Invalid value: the template has no such parameter]",
				"details": {"causes": [{"field": "parameters[NAME]", "message": "Required value: the template has no value for it"}, {"field": "parameters[X]", "message": "Invalid value: the template has no such parameter"}]}}`}},
			wantCode: cli.ExitCluster,
			wantErr: "error: processing template golden/web: VirtualMachineTemplate.template.kubevirt.io \"web\" is invalid\n" +
				"  parameters[NAME]: Required value: the template has no value for it\n  parameters[X]: Invalid value: the template has no such parameter\n",
		},
		{
			name:     "the cluster has no such API",
			line:     []string{"golden/web"},
			wantCode: cli.ExitCluster,
			wantErr:  "error: processing template golden/web: the server could not find the requested resource; it may not serve subresources.template.kubevirt.io/v1beta1: --local renders here\n",
		},
		{
			name: "the template is not there",
			line: []string{"golden/web"},
			answers: map[string]answered{"POST " + subresources + "web/process": {code: 404,
				body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "virtualmachinetemplates.template.kubevirt.io \"web\" not found"}`}},
			wantCode: cli.ExitCluster,
			wantErr:  "error: processing template golden/web: virtualmachinetemplates.template.kubevirt.io \"web\" not found\n",
		},
		{
			name:     "an answer without a VirtualMachine",
			line:     []string{"golden/web"},
			answers:  map[string]answered{"POST " + subresources + "web/process": {code: 200, body: `{}`}},
			wantCode: cli.ExitCluster,
			wantErr:  "error: processing template golden/web: the answer holds no VirtualMachine\n",
		},
		{
			name:    "read and rendered here",
			line:    []string{"golden/web", "--local", "-p", "NAME=web-1", "-o", "name"},
			answers: map[string]answered{"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 200, body: stored}},
			wantOut: "virtualmachine.kubevirt.io/web-1\n", wantErr: "from here\n",
		},
		{
			name: "rendered and created with the rights of the person",
			line: []string{"golden/web", "--local", "-n", "shop", "--create", "-p", "NAME=web-1", "-o", "name"},
			answers: map[string]answered{
				"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 200, body: stored},
				"POST /apis/kubevirt.io/v1/namespaces/shop/virtualmachines":                            {code: 201, body: `{"metadata": {"name": "web-1"}}`},
				"POST " + reviews: {code: 201, body: `{"status": {"allowed": false}}`},
			},
			wantOut: "virtualmachine.kubevirt.io/web-1\n",
			wantErr: "Note: the VirtualMachine does not refer to a template, because you may not use golden/web, which takes verb use on it\nfrom here\n",
			wantAsked: []recordedRequest{
				{Method: "GET", URI: "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web"},
				review,
				{Method: "POST", URI: "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines?fieldValidation=Strict", Body: map[string]any{
					"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
					"metadata": map[string]any{"name": "web-1", "namespace": "shop"}, "spec": map[string]any{"runStrategy": "Halted"},
				}},
			},
		},
		{
			name: "created with a reference to a template that the user may use",
			line: []string{"golden/web", "--local", "-n", "shop", "--create", "-p", "NAME=web-1", "-p", "SECRET=staple", "-o", "name"},
			answers: map[string]answered{
				"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 200, body: stored},
				"POST /apis/kubevirt.io/v1/namespaces/shop/virtualmachines":                            {code: 201, body: `{"metadata": {"name": "web-1"}}`},
				"POST " + reviews: {code: 201, body: `{"status": {"allowed": true}}`},
			},
			wantOut: "virtualmachine.kubevirt.io/web-1\n", wantErr: "Warning: parameter SECRET is declared and never referred to\nfrom here\n",
			wantAsked: []recordedRequest{
				{Method: "GET", URI: "/apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web"},
				review,
				{Method: "POST", URI: "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines?fieldValidation=Strict", Body: map[string]any{
					"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
					"metadata": map[string]any{"name": "web-1", "namespace": "shop", "annotations": map[string]any{
						"template.kubevirt.io/template-ref": "golden/web", "parameter.template.kubevirt.io/NAME": "web-1", "template.kubevirt.io/processed": digest,
					}},
					"spec": map[string]any{"runStrategy": "Halted"},
				}},
			},
		},
		{
			name: "the permission cannot be checked",
			line: []string{"golden/web", "--local", "-p", "NAME=web-1"},
			answers: map[string]answered{
				"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 200, body: stored},
				"POST " + reviews: {code: 201, body: `[]`},
			},
			wantCode: cli.ExitCluster,
			wantErr:  "error: checking the permission to use template golden/web: json: cannot unmarshal array into Go value of type map[string]interface {}\n",
		},
		{
			name:     "a template that is not there",
			line:     []string{"golden/web", "--local"},
			wantCode: cli.ExitCluster,
			wantErr:  "error: template golden/web does not exist: namespace golden does not exist\n",
		},
		{
			name: "a template that may not be read",
			line: []string{"golden/web", "--print-params"},
			answers: map[string]answered{"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 403,
				body: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "ada cannot get it"}`}},
			wantCode: cli.ExitCluster,
			wantErr:  "error: reading template golden/web: ada cannot get it\n",
		},
		{
			name:    "parameters of a template of the cluster",
			line:    []string{"golden/web", "--print-params"},
			answers: map[string]answered{"GET /apis/template.kubevirt.io/v1beta1/namespaces/golden/virtualmachinetemplates/web": {code: 200, body: stored}},
			wantOut: "NAME     REQUIRED   DEFAULT       CONSTRAINT   DESCRIPTION\nNAME     yes        <none>        <none>       \nSECRET   no         (sensitive)   <none>       \n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, requests := clusterOf(t, tc.answers)
			code, out, errors := run(t, url, tc.line...)
			if code != tc.wantCode {
				t.Errorf("exit code %d, want %d: %s", code, tc.wantCode, errors)
			}
			if diff := cmp.Diff(tc.wantOut, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantErr, errors); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantAsked, *requests); tc.wantAsked != nil && diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// run runs process against a cluster.
func run(t *testing.T, url string, arguments ...string) (code int, out, errors string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := process.NewProcess(cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append(arguments, "--server", url))
	err := command.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintf(&stderr, "error: %v\n", err)
	}
	return cli.ExitCode(err), stdout.String(), stderr.String()
}
