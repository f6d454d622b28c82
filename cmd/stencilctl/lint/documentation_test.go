package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
	templatelint "github.com/vmstencil/stencil/template/lint"
)

func TestEveryRuleIsDocumented(t *testing.T) {
	document := testfile.Read(t, "../../../docs/stencilctl.md")
	for _, rule := range templatelint.Rules() {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", rule.ID, rule.Severity, rule.Text); !strings.Contains(string(document), row) {
			t.Errorf("the document lacks\n%s", row)
		}
	}
}
