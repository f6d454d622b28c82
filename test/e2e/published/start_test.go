package published_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// started is what each server wrote until both were ready.
var started map[string]string

// TestAHealthyStartLogsNoErrors reads what the servers wrote before the first request: errors that are none hide others.
func TestAHealthyStartLogsNoErrors(t *testing.T) {
	for server, text := range started {
		lines := 0
		for line := range strings.Lines(text) {
			var entry struct{ Level, Stacktrace string }
			if json.Unmarshal([]byte(line), &entry) != nil {
				t.Errorf("%s wrote a line that is not JSON: %s", server, line)
				continue
			}
			lines++
			if entry.Level == "error" || entry.Stacktrace != "" {
				t.Errorf("%s: %s", server, line)
			}
		}
		if lines < 3 {
			t.Errorf("%s wrote %d lines:\n%s", server, lines, text)
		}
	}
}
