package evaluation

import (
	"testing"
	"time"
)

func TestHistogramIsPrecise(t *testing.T) {
	for d := time.Duration(1); d <= maxDuration; d += 1 + d/97 {
		var h histogram
		h.add(d)
		s := h.snapshot()
		got := s.quantile(50)
		wrong, allowed := got-d, max(d/16, 64)
		if max(wrong, -wrong) > allowed {
			t.Fatalf("%v is reported as %v, which is off by more than %v", d, got, allowed)
		}
	}
}

func TestHistogramBounds(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, maxDuration, maxDuration + 1, time.Hour} {
		if bucket := bucketOf(d); bucket < 0 || bucket >= histogramBuckets {
			t.Errorf("%v falls into bucket %d of %d", d, bucket, histogramBuckets)
		}
	}
	last := -1
	for d := time.Duration(0); d < maxDuration; d += 1 + d/1000 {
		bucket := bucketOf(d)
		if bucket < last {
			t.Fatalf("%v falls into bucket %d, below that of a shorter duration", d, bucket)
		}
		last = bucket
	}
	if last != histogramBuckets-1 {
		t.Errorf("the last bucket used is %d of %d", last, histogramBuckets)
	}
}

func TestQuantiles(t *testing.T) {
	var h histogram
	empty := h.snapshot()
	if got := empty.quantile(99); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
	for range 98 {
		h.add(10 * time.Microsecond)
	}
	h.add(time.Millisecond)
	h.add(100 * time.Millisecond)
	s := h.snapshot()
	for percent, want := range map[uint64]time.Duration{
		50: 10 * time.Microsecond, 98: 10 * time.Microsecond, 99: time.Millisecond, 100: 100 * time.Millisecond,
	} {
		if got := s.quantile(percent); got < want*15/16 || got > want*17/16 {
			t.Errorf("p%d is %v, want about %v", percent, got, want)
		}
	}
}
