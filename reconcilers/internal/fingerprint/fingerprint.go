// Package fingerprint identifies what a cached result depends on, in 32 bytes.
package fingerprint

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Fingerprint is equal for equal values.
type Fingerprint [sha256.Size]byte

// Of returns the fingerprint of values of objects in the cluster. It panics if they cannot be encoded as JSON.
func Of(values ...any) Fingerprint {
	raw, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("encoding what was decoded from JSON: %v", err))
	}
	return sha256.Sum256(raw)
}
