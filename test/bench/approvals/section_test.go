package approvals

import (
	"math"
	"testing"
	"time"
)

func TestRatios(t *testing.T) {
	// The host becomes slower by a tenth of the first value with each measurement, and many approvals cost nothing.
	few := []time.Duration{100, 120, 140, 160}
	many := []time.Duration{110, 130, 150}
	ratio, again := ratios(few, many)
	if math.Abs(ratio-1) > 1e-9 {
		t.Errorf("ratio %f, want 1", ratio)
	}
	if want := 140.0 / 120; math.Abs(again-want) > 1e-9 {
		t.Errorf("again %f, want %f", again, want)
	}
}
