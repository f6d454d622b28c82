package body_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/apiserver/body"
)

// The largest bodies take less than a second. They took minutes when each value was counted from the beginning, and each name compared with all.
func TestLargeBodiesAreReadInLinearTime(t *testing.T) {
	var members strings.Builder
	for i := range 100_000 {
		members.WriteString(`"` + strings.Repeat("x", i%7) + time.Duration(i).String() + `":1,`)
	}
	for name, raw := range map[string]string{
		"many values": `{"a":[` + strings.Repeat(`{},`, 330_000) + `1]}`,
		"many lines":  "{\"a\":[" + strings.Repeat("1,\n", 330_000) + "1]}",
		"many names":  `{` + members.String() + `"end":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			if err := body.Check([]byte(raw)); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("%d bytes took %v", len(raw), took)
			}
		})
	}
}
