package library_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// decision returns the input of policies for the last creation of VirtualMachine web-1, from the manager's decision log, with the values that vary
// between runs replaced.
func decision(t *testing.T) string {
	t.Helper()
	var input map[string]any
	eventually(t, "the decision is logged", func() string {
		for line := range strings.Lines(stencil.Manager.Logs()) {
			var record struct {
				Decision struct {
					Input map[string]any `json:"input"`
				} `json:"decision"`
			}
			if json.Unmarshal([]byte(line), &record) != nil {
				continue
			}
			request, _ := record.Decision.Input["request"].(map[string]any)
			if request["name"] == "web-1" && request["operation"] == "CREATE" {
				input = record.Decision.Input
			}
		}
		if input == nil {
			return "the decision log does not mention web-1"
		}
		return ""
	})
	text, err := yaml.Marshal(defaulted(input))
	if err != nil {
		t.Fatal(err)
	}
	return "\n```yaml\n" + string(text) + "```\n\n"
}

// defaulted replaces the values that vary between runs.
func defaulted(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			_, isText := inner.(string)
			switch {
			case isText && (key == "uid" || key == "uuid" || key == "serial"):
				value[key] = "00000000-0000-0000-0000-000000000000"
			case isText && (key == "creationTimestamp" || key == "time"):
				value[key] = "2026-01-01T00:00:00Z"
			case key == "template.kubevirt.io/rendered":
				value[key] = "{…}"
			case key == "template.kubevirt.io/rendered-for":
				value[key] = "…"
			case key == "authentication.kubernetes.io/credential-id":
				value[key] = []any{"X509SHA256=…"}
			default:
				value[key] = defaulted(inner)
			}
		}
	case []any:
		for i := range value {
			value[i] = defaulted(value[i])
		}
	}
	return value
}
