package sandbox

import "testing"

// TestEveryBoundedBuiltinIsCalledByItsBound checks that the sandbox renames exactly the bounded functions.
func TestEveryBoundedBuiltinIsCalledByItsBound(t *testing.T) {
	s := New()
	for _, b := range builtins {
		if b.bounded() != (s.renamed[b.name] != nil) {
			t.Errorf("%s is not renamed as it is bounded", b.name)
		}
	}
}
