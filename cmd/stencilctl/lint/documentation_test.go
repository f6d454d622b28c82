package lint_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	templatelint "github.com/vmstencil/stencil/template/lint"
)

func TestEveryRuleIsDocumented(t *testing.T) {
	document, err := os.ReadFile("../../../docs/stencilctl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range templatelint.Rules() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", rule.ID, rule.Severity, rule.Text); !strings.Contains(string(document), row) {
			t.Errorf("the document lacks\n%s", row)
		}
	}
}
