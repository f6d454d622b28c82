package compliance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// fingerprint identifies the labels and annotations that are evaluated. It is a digest, because there is one for every template.
type fingerprint [sha256.Size]byte

func fingerprintOf(maps ...map[string]string) fingerprint {
	raw, err := json.Marshal(maps)
	if err != nil {
		panic(fmt.Sprintf("encoding strings as JSON: %v", err))
	}
	return sha256.Sum256(raw)
}
