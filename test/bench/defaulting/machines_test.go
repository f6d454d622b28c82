package defaulting

import (
	"encoding/json"
	"testing"
)

func TestEveryShapeIsAnotherRequestAndReadable(t *testing.T) {
	seen := map[string]int{}
	for shape := range shapes {
		text := request(shape, "a")
		if other, ok := seen[string(text)]; ok {
			t.Fatalf("shapes %d and %d are the same request", other, shape)
		}
		seen[string(text)] = shape
		if shape%1000 == 0 && !json.Valid(text) {
			t.Errorf("shape %d is no JSON: %s", shape, text)
		}
	}
}
