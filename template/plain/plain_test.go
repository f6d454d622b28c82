package plain_test

import (
	"testing"

	"github.com/vmstencil/stencil/template/plain"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"$HOME $(id) $ {": "$HOME $(id) $ {",
		"${HOME}":         "${D}{HOME}",
		"a$${{X}}b${":     "a${D}${D}{{X}}b${D}{",
		"${D}":            "${D}{D}",
	} {
		if got := plain.Text(text, "D"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if p := plain.Parameter("D"); p.Value != "$" || p.Name != "D" {
		t.Errorf("got %+v", p)
	}
}
