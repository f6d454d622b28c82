package policies

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestATrialHasTheVersionAndTheActiveOne(t *testing.T) {
	c, _ := started(t, &engine{}, time.Minute, vmpol("a", "x", 1), vmpol("b", "broken", 1))
	synced(t, c)
	another := vmpol("a", "y", 1)
	another.UID = types.UID("another")
	digest := func(trial Trial) (entry, active string) {
		if trial.Entry != nil {
			entry = trial.Entry.Policy.Digest()
		}
		if trial.Active != nil {
			active = trial.Active.Policy.Digest()
		}
		return entry, active
	}
	for name, tc := range map[string]struct {
		trial         func() (Trial, error)
		entry, active string
	}{
		"a change":                       {func() (Trial, error) { return c.Try(t.Context(), vmpol("a", "y", 2)) }, "digest of y", "digest of x"},
		"one that does not compile":      {func() (Trial, error) { return c.Try(t.Context(), vmpol("a", "broken", 2)) }, "", "digest of x"},
		"one with failing tests":         {func() (Trial, error) { return c.Try(t.Context(), vmpol("a", "y", 2, "fails")) }, "", "digest of x"},
		"a change of a broken one":       {func() (Trial, error) { return c.Try(t.Context(), vmpol("b", "y", 2)) }, "digest of y", ""},
		"a new one":                      {func() (Trial, error) { return c.Try(t.Context(), vmpol("c", "y", 1)) }, "digest of y", ""},
		"another one with a name of old": {func() (Trial, error) { return c.Try(t.Context(), another) }, "digest of y", ""},
	} {
		t.Run(name, func(t *testing.T) {
			trial, err := tc.trial()
			if err != nil {
				t.Fatal(err)
			}
			if entry, active := digest(trial); entry != tc.entry || active != tc.active {
				t.Errorf("got %q and %q, want %q and %q", entry, active, tc.entry, tc.active)
			}
		})
	}
}
