package objects

import (
	"strings"
	"testing"
	"time"
)

func TestObjectsBelongToTheirRequester(t *testing.T) {
	keys := Keys{keyOf(time.Hour, "aa"): key(1)}
	for _, requester := range []string{"", "ada", "system:serviceaccount:a:b", DryRun("ada")} {
		bound := Binding{Namespace: "team-a", Name: "web-1", Record: "{}", Requester: requester}
		text, err := Pending{Sealed: now}.Seal(keys, bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := RequesterOf(text); got != requester {
			t.Errorf("got requester %q, want %q", got, requester)
		}
		if got := IsDryRun(text); got != strings.HasPrefix(requester, ":") {
			t.Errorf("%q is of a dry run: %v", requester, got)
		}
		if _, err := Open(keys, bound, text, now); err != nil {
			t.Error(err)
		}
		const changed = "the annotation was written for another VirtualMachine, or changed"
		for _, forged := range []string{strings.TrimSuffix(text, requester) + "bob", text + ":bob", strings.Replace(text, "::", ":", 1)} {
			if _, err := Open(keys, bound, forged, now); forged != text && (err == nil || err.Error() != changed && err.Error() != "the annotation is not the one that Stencil wrote") {
				t.Errorf("%s for %q: got %v, want %s", forged, requester, err, changed)
			}
		}
	}
}
