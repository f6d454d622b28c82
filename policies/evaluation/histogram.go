package evaluation

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations. Adding one is one atomic increment.
//
// Durations below 2 µs are counted in steps of 128 ns; above, each power of two is
// divided into eight steps. A quantile is the middle of its step, so its error is at
// most 6.25 %. Durations above maxDuration are counted as maxDuration.
type histogram struct {
	buckets [histogramBuckets]atomic.Uint64
}

const (
	unitBits         = 7 // 128 ns
	linearBits       = 4 // 16 steps of one unit each
	stepBits         = 3 // 8 steps for each power of two
	octaves          = 20
	histogramBuckets = 1<<linearBits + octaves<<stepBits

	// maxDuration is about 2.1 s, four times the longest timeout of a policy.
	maxDuration = time.Duration(1)<<(unitBits+linearBits+octaves) - 1
)

func (h *histogram) add(d time.Duration) { h.buckets[bucketOf(d)].Add(1) }

func bucketOf(d time.Duration) int {
	units := uint64(min(max(d, 0), maxDuration)) >> unitBits
	if units < 1<<linearBits {
		return int(units)
	}
	octave := bits.Len64(units) - 1
	step := units >> (octave - stepBits) & (1<<stepBits - 1)
	return 1<<linearBits + (octave-linearBits)<<stepBits + int(step)
}

// middleOf returns the duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 1<<linearBits {
		return time.Duration(bucket)<<unitBits + 1<<(unitBits-1)
	}
	above := bucket - 1<<linearBits
	octave := above>>stepBits + linearBits
	step := above & (1<<stepBits - 1)
	width := time.Duration(1) << (octave - stepBits + unitBits)
	return time.Duration(1)<<(octave+unitBits) + time.Duration(step)*width + width/2
}

// snapshot is a copy of a histogram; durations that are added during the copy may be in
// it or not.
type snapshot struct {
	buckets [histogramBuckets]uint64
	count   uint64
}

func (h *histogram) snapshot() snapshot {
	var s snapshot
	for i := range h.buckets {
		s.buckets[i] = h.buckets[i].Load()
		s.count += s.buckets[i]
	}
	return s
}

// quantile returns the duration that the given percentage of all durations does not
// exceed; 0 if there are none.
func (s *snapshot) quantile(percent uint64) time.Duration {
	if s.count == 0 {
		return 0
	}
	rank := (s.count*percent + 99) / 100
	var seen uint64
	for i, n := range s.buckets {
		if seen += n; n > 0 && seen >= rank {
			return middleOf(i)
		}
	}
	return maxDuration
}
