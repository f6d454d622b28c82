package defaulter

import "testing"

// Running returns a stencil-defaulter that runs until the test ends.
func Running(t testing.TB) *Defaulter {
	t.Helper()
	d, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}
