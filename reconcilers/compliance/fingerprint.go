package compliance

import (
	"encoding/json"
	"fmt"
)

// fingerprint of what is judged of labels and annotations.
func fingerprint(maps ...map[string]string) string {
	raw, err := json.Marshal(maps)
	if err != nil {
		panic(fmt.Sprintf("encoding strings as JSON: %v", err))
	}
	return string(raw)
}
