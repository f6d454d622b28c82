package controlplane

import (
	"bytes"
	"fmt"
	"testing"
)

func TestARelayPassesOnTheLatestLineAndWhatFollows(t *testing.T) {
	var r relay
	var shown bytes.Buffer
	fmt.Fprint(&r, "first\nsecond\n")
	fmt.Fprint(&r, "third\n")
	r.open(&shown)
	fmt.Fprint(&r, "fourth\n")
	if want := "third\nfourth\n"; shown.String() != want {
		t.Errorf("want %q, got %q", want, shown.String())
	}
}
