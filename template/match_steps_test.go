package template_test

import (
	"testing"

	"github.com/vmstencil/stencil/template"
)

// checkSteps holds that a comparison did not take more work than its input allows,
// size being that of the template and the VirtualMachine in bytes.
func checkSteps(tb testing.TB, found *template.Match, size int) {
	tb.Helper()
	const each, any = 500, 1 << 18
	if most := each*size + any; found.Steps() > most {
		tb.Errorf("%d steps for %d bytes, want at most %d", found.Steps(), size, most)
	}
}
