package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/testfile"
	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// TestReplayOfARecord evaluates a decision again that was evaluated, recorded and logged as the
// manager does it.
func TestReplayOfARecord(t *testing.T) {
	const object = `
kind: VirtualMachine
metadata: {name: web, namespace: shop, managedFields: [{manager: kubectl}]}
spec:
  template:
    spec:
      domain: {cpu: {cores: 8}, memory: {guest: 4294967296}}
      volumes:
      - name: seed
        cloudInitNoCloud: {userData: "password: secret"}
`
	source := testfile.Read(t, "testdata/policies/cpus.rego")
	policy := fixture.Policy(t, "cpus", string(source), "VirtualMachine")
	for name, tc := range map[string]struct {
		object string
		masked bool
	}{
		"with nothing masked": {object: strings.Split(object, "      volumes:")[0]},
		"with secrets masked": {object: object, masked: true},
	} {
		t.Run(name, func(t *testing.T) {
			content := fixture.VM(t, fixture.JSON(t, tc.object))
			c := policyinput.Case{
				Request:   rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Namespace: "shop", Name: "web", UserInfo: rego.UserInfo{Username: "ada"}},
				Object:    content,
				Namespace: rego.Namespace{Name: "shop", Labels: map[string]string{"team": "shop"}},
			}
			document := c.Document()
			input, err := rego.NewInput(document)
			if err != nil {
				t.Fatal(err)
			}
			entries := []policyset.Entry{{Policy: policy}}
			decision := policyset.NewEvaluator(policyset.Options{}).Evaluate(t.Context(), entries, input)
			record, err := c.Record("uid-1", decision, document, input)
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(map[string]any{"level": "info", "msg": "decision", "decision": record})
			if err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(t.TempDir(), "log")
			testfile.Write(t, log, append(line, '\n'))

			var out bytes.Buffer
			code := run(t.Context(), []string{"stencilctl", "policy", "eval", "--decision", log, "-p", "testdata/policies/cpus.rego"}, cli.Streams{Out: &out, Err: &out})
			got := out.String()
			if code != cli.ExitOK || !strings.Contains(got, "deny cpus (medium): it has 8 processors, 4 are allowed") || !strings.HasSuffix(got, "  the same as in the log\n") {
				t.Errorf("exit code %d:\n%s", code, got)
			}
			if strings.Contains(got, "note the log masks") != tc.masked || strings.Contains(got, "another version") || strings.Contains(got, "digests differ") {
				t.Errorf("notes:\n%s", got)
			}
		})
	}
}

// compiledPolicy returns the policy in a file.
func compiledPolicy(t *testing.T, path string) *rego.Policy {
	t.Helper()
	policies, err := (&source.Reader{}).Policies([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := rego.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(t.Context(), policies[0].Spec.Definition)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// The log has the values that policies read, and the digests of long ones.
func TestReplayOfARecordWithData(t *testing.T) {
	const manifest = `{apiVersion: stencil.kubevirt.io/v1alpha1, kind: VirtualMachinePolicy, metadata: {name: names}, spec: {
data: [{name: names, configMapKey: {name: allowed, key: names}}], rego: "package p\n\ndeny contains sprintf(\"%s is not allowed\", [input.request.name]) if not input.request.name in data.cluster.names\n"}}`
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		testfile.Write(t, path, []byte(content))
		return path
	}
	policyFile := file("policy.yaml", manifest)
	compiled := compiledPolicy(t, policyFile)
	long := strings.Repeat("x", 17<<10)
	configMap := func(name, list string) string {
		return file(name, "{apiVersion: v1, kind: ConfigMap, metadata: {name: allowed, namespace: stencil}, data: {names: '"+list+"'}}")
	}
	logged, changed := configMap("logged.yaml", `["`+long+`"]`), configMap("changed.yaml", "[web]")
	const digest = "sha256:"
	for name, tc := range map[string]struct {
		value   any // in the log; nil if it was missing
		given   []string
		code    int
		outputs []string
	}{
		"a value":                        {value: []any{"db"}, code: cli.ExitOK, outputs: []string{"web is not allowed", "the same as in the log"}},
		"not the present one":            {value: []any{"db"}, given: []string{"--data", changed}, code: cli.ExitOK, outputs: []string{"web is not allowed", "the same as in the log"}},
		"one that was missing":           {code: cli.ExitOK, outputs: []string{"data.cluster.names has no value: ConfigMap stencil/allowed does not exist"}},
		"a long one":                     {value: []any{long}, code: cli.ExitFindings, outputs: []string{"data.cluster.names has no value: it is too long for the log, which has only its digest " + digest, "; give its ConfigMap with --data"}},
		"a long one that is given":       {value: []any{long}, given: []string{"--data", logged}, code: cli.ExitOK, outputs: []string{"web is not allowed", "the same as in the log"}},
		"a long one that is another now": {value: []any{long}, given: []string{"--data", changed}, code: cli.ExitFindings, outputs: []string{"policy names read another value of data.cluster.names than the one given: " + digest, "only in the log: deny names: web is not allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			bound := rego.Binding{Name: "names", Missing: "ConfigMap stencil/allowed does not exist; create it with the key names"}
			if tc.value != nil {
				value, err := rego.NewValue(tc.value)
				if err != nil {
					t.Fatal(err)
				}
				bound = rego.Binding{Name: "names", Value: value}
			}
			c := policyinput.Case{
				Request: rego.Request{Operation: "CREATE", Kind: "VirtualMachine", Namespace: "shop", Name: "web"},
				Object:  map[string]any{"kind": "VirtualMachine"},
			}
			document := c.Document()
			input, err := rego.NewInput(document)
			if err != nil {
				t.Fatal(err)
			}
			entries := []policyset.Entry{{Policy: compiled.WithData([]rego.Binding{bound})}}
			record, err := c.Record("uid-1", policyset.NewEvaluator(policyset.Options{}).Evaluate(t.Context(), entries, input), document, input)
			if err != nil {
				t.Fatal(err)
			}
			line, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			if len(line) > 2<<10 {
				t.Errorf("the record has %d bytes", len(line))
			}
			var out bytes.Buffer
			arguments := append([]string{"stencilctl", "policy", "eval", "--decision", file("log", string(line)+"\n"), "-p", policyFile}, tc.given...)
			code := run(t.Context(), arguments, cli.Streams{Out: &out, Err: &out})
			if code != tc.code {
				t.Errorf("exit code %d, want %d:\n%s", code, tc.code, out.String())
			}
			for _, want := range tc.outputs {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "another version") {
				t.Errorf("the version differs:\n%s", out.String())
			}
		})
	}
}
