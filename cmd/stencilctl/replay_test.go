package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
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
