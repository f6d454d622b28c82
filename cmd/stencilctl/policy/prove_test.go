package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// sized is a template with a number and a highest number of cores.
const sized = `
apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata: {name: web-%d, namespace: golden}
spec:
  parameters: [{name: SIZE, value: u1.small, enum: [u1.small, u1.large]}, {name: CORES, type: int, value: "1", minimum: 1, maximum: %d}]
  virtualMachine:
    metadata: {name: web, annotations: {cores: "${CORES}"}}
    spec: {runStrategy: Halted, instancetype: {name: "${SIZE}"}, template: {spec: {domain: {devices: {}}}}}
`

const shopApproval = `
apiVersion: stencil.kubevirt.io/v1alpha1
kind: TemplateApproval
metadata: {name: shop}
spec:
  namespaces: [shop]
  templates: [{namespace: golden, selector: {}}]
  parameters: [{name: SIZE, anyValue: true}, {name: CORES, maximum: 2}]
`

// provenCluster calls requested for each request. It serves templates, approvals, namespace shop and the instance type u1.small, which has one CPU. No user may get u1.large.
func provenCluster(t *testing.T, templates []string, requested func(*http.Request), approvals ...string) *httptest.Server {
	t.Helper()
	list := func(texts ...string) string {
		var items []json.RawMessage
		for _, text := range texts {
			raw, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, raw)
		}
		raw, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	answers := map[string]string{
		"/apis/template.kubevirt.io/v1beta1/virtualmachinetemplates":                         list(templates...),
		"/apis/stencil.kubevirt.io/v1alpha1/templateapprovals":                               list(approvals...),
		"/api/v1/namespaces/shop":                                                            `{"metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"shop","stage":"test"}}}`,
		"/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes/u1.small": `{"metadata":{"name":"u1.small"},"spec":{"cpu":{"guest":1}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		requested(r)
		answer, found := answers[r.URL.Path]
		switch {
		case strings.HasSuffix(r.URL.Path, "u1.large"):
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`
		case !found:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"none"}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func runProve(ctx context.Context, streams cli.Streams, arguments ...string) error {
	command := newProve(streams)
	command.SetArgs(arguments)
	command.SetOut(streams.Out)
	command.SetErr(streams.Err)
	command.SilenceErrors, command.SilenceUsage = true, true
	return command.ExecuteContext(ctx)
}

func TestProveReadsTheCluster(t *testing.T) {
	cores := write(t, "cores.rego", "package cores\n\ndeny contains \"two cores\" if {\n\tinput.object.metadata.annotations.cores == \"2\"\n\tinput.namespace.labels.stage == \"test\"\n}\n")
	cpus := write(t, "cpus.rego", "package cpus\n\ndeny contains \"two CPUs\" if input.instancetype.spec.cpu.guest > 1\n")
	for name, tc := range map[string]struct {
		approvals []string
		policies  string
		arguments []string
		code      int
		want      string
		problems  string
	}{
		"with an approval": {
			approvals: []string{shopApproval}, policies: cores, code: cli.ExitFindings,
			want: `template golden/web-1, approval shop, namespace shop
  counterexample  cores: 4 combinations of values, 2 different VMs, 2 violate it
                  CORES=2 is approved and denied: two cores
                  it reads what was the same for all: labels of the namespace
  never           with CORES=2 every VM is denied
template golden/web-2, approval shop, namespace shop
  holds           cores: 2 combinations of values, 1 different VM
                  it reads what was the same for all: labels of the namespace
`,
		},
		"with other labels": {
			approvals: []string{shopApproval}, policies: cores, arguments: []string{"--namespace-labels", "stage=production", "--limit", "9"}, code: cli.ExitOK,
			want: `template golden/web-1, approval shop, namespace shop
  holds           cores: 4 combinations of values, 2 different VMs
                  it reads what was the same for all: labels of the namespace
template golden/web-2, approval shop, namespace shop
  holds           cores: 2 combinations of values, 1 different VM
                  it reads what was the same for all: labels of the namespace
`,
		},
		"without approvals and permissions": {
			policies: cpus, arguments: []string{"-n", "kitchen"}, code: cli.ExitUndecided,
			want: `template golden/web-1, namespace kitchen
  not decided     cpus: 8 combinations of values, 2 different VMs
                  spec.instancetype: Not found: "VirtualMachineClusterInstancetype u1.large": no
template golden/web-2, namespace kitchen
  not decided     cpus: 2 combinations of values, 2 different VMs
                  spec.instancetype: Not found: "VirtualMachineClusterInstancetype u1.large": no
`,
			problems: "not read: labels of namespace kitchen: it does not exist\n",
		},
		"with an approval that is not valid": {
			approvals: []string{strings.Replace(shopApproval, "maximum: 2", "pattern: '['", 1)}, policies: cores, code: cli.ExitOK,
			want:     "not approved: golden/web-1, golden/web-2\n",
			problems: "note: compiling TemplateApproval \"shop\": spec.parameters[1].pattern: Invalid value: \"[\": must be a regular expression in RE2 syntax: error parsing regexp: missing closing ]: `[`\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := provenCluster(t, []string{fmt.Sprintf(sized, 1, 4), fmt.Sprintf(sized, 2, 1)}, func(*http.Request) {}, tc.approvals...)
			var out, problems bytes.Buffer
			err := runProve(t.Context(), cli.Streams{Out: &out, Err: &problems}, append([]string{"-p", tc.policies, "--kubeconfig", os.DevNull, "--server", server.URL}, tc.arguments...)...)
			if code := cli.ExitCode(err); code != tc.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			if out.String() != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), tc.want)
			}
			if problems.String() != tc.problems {
				t.Errorf("standard error:\n%s\nwant:\n%s", problems.String(), tc.problems)
			}
		})
	}
}

func TestProveReportsWhatTheClusterDenies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`)
	}))
	defer server.Close()
	err := runProve(t.Context(), cli.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, "-p", write(t, "odd.rego", odd), "--kubeconfig", os.DevNull, "--server", server.URL)
	if want := "listing virtualmachinetemplates.template.kubevirt.io: you may not"; err == nil || err.Error() != want || cli.ExitCode(err) != cli.ExitCluster {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestProveEndsWithItsContext cancels the command when it evaluates the first of a million VMs, for which the API server is requested.
func TestProveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	requested := 0
	server := provenCluster(t, []string{fmt.Sprintf(sized, 1, 500_000)}, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "u1.small") {
			requested++
			cancel()
		}
	})
	policy := write(t, "cpus.rego", "package cpus\n\ndeny contains \"x\" if input.instancetype.spec.cpu.guest > to_number(input.parameters.CORES)\n")
	err := runProve(ctx, cli.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, "-p", policy, "--kubeconfig", os.DevNull, "--server", server.URL, "--limit", "1000000")
	if !errors.Is(err, context.Canceled) || requested != 1 {
		t.Errorf("got %v after %d requests", err, requested)
	}
}
