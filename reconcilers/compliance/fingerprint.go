package compliance

import (
	"encoding/json"
	"fmt"
)

// fingerprint returns a string that identifies the labels and annotations that are evaluated.
func fingerprint(maps ...map[string]string) string {
	raw, err := json.Marshal(maps)
	if err != nil {
		panic(fmt.Sprintf("encoding strings as JSON: %v", err))
	}
	return string(raw)
}
