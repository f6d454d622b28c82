package intern_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/vmstencil/stencil/internal/intern"
)

func TestATextIsStoredOnce(t *testing.T) {
	var texts intern.Texts
	long := strings.Repeat("x", 1000)
	for _, tc := range []struct {
		name       string
		table      *intern.Texts
		text       string
		wantShared bool
	}{
		{"a text that occurs again", &texts, "Ready", true},
		{"another one", &texts, "the template compiles", true},
		{"a long text", &texts, long, false},
		{"no table", nil, "Ready", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first, second := tc.table.Of(strings.Clone(tc.text)), tc.table.Of(strings.Clone(tc.text))
			if first != tc.text || second != tc.text {
				t.Fatalf("%q became %q and %q", tc.text, first, second)
			}
			if shared := unsafe.StringData(first) == unsafe.StringData(second); shared != tc.wantShared {
				t.Errorf("stored once: %t, want %t", shared, tc.wantShared)
			}
		})
	}
	if got := texts.Of(""); got != "" {
		t.Errorf("the empty text became %q", got)
	}
}

func TestTextsStayEqualWhateverTheTableHolds(t *testing.T) {
	var texts intern.Texts
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 5000 {
				want := fmt.Sprint("text ", i)
				if got := texts.Of(fmt.Sprint("text ", i)); got != want {
					t.Errorf("%q became %q", want, got)
				}
			}
		})
	}
	users.Wait()
}
