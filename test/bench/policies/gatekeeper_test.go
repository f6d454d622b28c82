package policies

import "testing"

func TestSize(t *testing.T) {
	for printed, want := range map[string]int64{"17 B": 17, "1.50 KB": 1536, "11.75 MB": 12320768} {
		if got, err := size(printed); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", printed, got, err, want)
		}
	}
	for _, printed := range []string{"", "12", "3 TB", "many KB"} {
		if got, err := size(printed); err == nil {
			t.Errorf("%q: %d", printed, got)
		}
	}
}
