package ovf

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// byteUnits are the names of units that descriptors use beside programmatic units. All are powers of 1024, as the products that write them mean.
var byteUnits = map[string]uint64{
	"byte": 1, "bytes": 1, "b": 1,
	"kilobyte": 1 << 10, "kilobytes": 1 << 10, "kb": 1 << 10, "kib": 1 << 10,
	"megabyte": 1 << 20, "megabytes": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
	"gigabyte": 1 << 30, "gigabytes": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
	"terabyte": 1 << 40, "terabytes": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
}

// Bytes returns a quantity in bytes. The unit is a programmatic unit of DSP0004 with the base unit byte and factors only, such as byte,
// "byte * 2^30" or byte*1024*1024, or a name such as MegaBytes, which is MiB. An empty unit is byte. It fails if the unit is another one, and if the
// result exceeds 2^63-1.
func Bytes(quantity uint64, unit string) (int64, error) {
	multiplier, err := multiplier(unit)
	if err != nil {
		return 0, err
	}
	high, low := bits.Mul64(quantity, multiplier)
	if high != 0 || low > 1<<63-1 {
		return 0, fmt.Errorf("%d %s is more than 2^63-1 bytes", quantity, unit)
	}
	return int64(low), nil
}

// multiplier returns the bytes of one unit.
func multiplier(unit string) (uint64, error) {
	unsupported := fmt.Errorf("the unit %s is not supported; use a unit such as byte or byte * 2^30", shown(unit))
	text := strings.ToLower(strings.TrimSpace(unit))
	if text == "" {
		return 1, nil
	}
	factors := strings.Split(text, "*")
	result, found := byteUnits[strings.TrimSpace(factors[0])]
	if !found || len(factors) > 8 {
		return 0, unsupported
	}
	for _, text := range factors[1:] {
		base, exponent, power := strings.Cut(text, "^")
		factor, err := strconv.ParseUint(strings.TrimSpace(base), 10, 64)
		if err != nil || factor == 0 {
			return 0, unsupported
		}
		times := uint64(1)
		if power {
			if times, err = strconv.ParseUint(strings.TrimSpace(exponent), 10, 8); err != nil {
				return 0, unsupported
			}
		}
		for range times {
			high, low := bits.Mul64(result, factor)
			if high != 0 {
				return 0, fmt.Errorf("the unit %s is more than 2^64-1 bytes", shown(unit))
			}
			result = low
		}
	}
	return result, nil
}
