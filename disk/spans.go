package disk

import (
	"errors"
	"io"
	"iter"
)

// Spans iterates over the data of an image in ranges that begin at multiples of unit, ascend and do not overlap. Together they hold all
// that NextData reports. A range is at most limit bytes long, which is a multiple of unit, and ends at a multiple of unit or with the disk.
func Spans(image Image, unit, limit int64) iter.Seq2[Range, error] {
	return func(yield func(Range, error) bool) {
		size := image.Info().Size
		end := int64(0)
		for end < size {
			data, err := image.NextData(end)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Range{}, err)
				return
			}
			start := max(data.Offset/unit*unit, end)
			stop := min((data.End()+unit-1)/unit*unit, size)
			for start < stop {
				// Ranges end at multiples of the limit, so that each is the same wherever the iteration came from.
				length := min(limit-start%limit, stop-start)
				if !yield(Range{start, length}, nil) {
					return
				}
				start += length
			}
			end = stop
		}
	}
}

// Stored returns the number of bytes that an image stores, in steps of 1 MiB.
func Stored(image Image) (sum int64, err error) {
	for each, err := range Spans(image, 1<<20, 1<<20) {
		if err != nil {
			return 0, err
		}
		sum += each.Length
	}
	return sum, nil
}
