package revision

import (
	"crypto/sha256"

	"k8s.io/utils/lru"
)

const (
	// storedContents is the number of results that a Decider stores.
	storedContents = 512
	// largestStored limits the data of which results are stored, in bytes.
	largestStored = 16 << 10
)

// Decider decides about stored copies. Thousands of VirtualMachines have copies of the same few instance types, so it stores the results of
// decoding and proving equal data. Its results are shared and must not be changed. It may be used concurrently.
type Decider struct {
	known *lru.Cache
}

// NewDecider returns a Decider.
func NewDecider() *Decider { return &Decider{known: lru.New(storedContents)} }

type (
	// contentKey identifies the arguments of Decode.
	contentKey struct {
		digest [sha256.Size]byte
		family Family
	}
	content struct {
		stored *Stored
		err    error
	}
	// conversionKey identifies the arguments of Convert.
	conversionKey struct {
		contentKey
		identity Identity
	}
	conversion struct {
		converted *Converted
		err       error
	}
)

// decode returns the decoded data, with a function that converts it.
func (d *Decider) decode(data []byte, family Family) (*Stored, func(Identity) (*Converted, error), error) {
	if len(data) > largestStored {
		stored, err := Decode(data, family)
		return stored, stored.Convert, err
	}
	key := contentKey{sha256.Sum256(data), family}
	decoded := get(d.known, key, func() content {
		stored, err := Decode(data, family)
		return content{stored, err}
	})
	return decoded.stored, func(identity Identity) (*Converted, error) {
		made := get(d.known, conversionKey{key, identity}, func() conversion {
			converted, err := decoded.stored.Convert(identity)
			return conversion{converted, err}
		})
		return made.converted, made.err
	}, decoded.err
}

// get returns the value of a key, and makes and stores it if there is none.
func get[V any](known *lru.Cache, key any, make func() V) V {
	if found, ok := known.Get(key); ok {
		return found.(V)
	}
	made := make()
	known.Add(key, made)
	return made
}
