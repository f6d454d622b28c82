package domain_test

import (
	"fmt"
	"strings"

	"github.com/vmstencil/stencil/defaulting/domain"
)

// describe returns a short description of a filled field.
func describe(set domain.Set) string {
	path := strings.TrimPrefix(set.Path.String(), "spec.template.spec.")
	path = strings.TrimPrefix(strings.TrimPrefix(path, "domain."), "devices.")
	return fmt.Sprintf("%s=%v by %s", path, set.Value, set.Source)
}
