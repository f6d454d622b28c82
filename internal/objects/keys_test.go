package objects

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// keyOf returns the ID of a key of an age, as Renewed makes them.
func keyOf(age time.Duration, random string) string {
	return now.Add(-age).Format(idTime) + "-" + random
}

func key(of byte) []byte { return bytes.Repeat([]byte{of}, keySize) }

func TestRenewed(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		name        string
		keys        Keys
		inUse       []string
		wantKept    []string
		wantNew     bool
		wantChanged bool
	}{
		{name: "the first key", wantNew: true, wantChanged: true},
		{name: "the first key of a Secret without data", keys: Keys{}, wantNew: true, wantChanged: true},
		{name: "a young key is all that is needed", keys: Keys{keyOf(time.Hour, "aa"): key(1)}, wantKept: []string{keyOf(time.Hour, "aa")}},
		{name: "a key that is a moment younger than RenewAfter", keys: Keys{keyOf(RenewAfter-time.Second, "aa"): key(1)}, wantKept: []string{keyOf(RenewAfter-time.Second, "aa")}},
		{name: "a key of a clock that is ahead is young", keys: Keys{keyOf(-time.Hour, "aa"): key(1)}, wantKept: []string{keyOf(-time.Hour, "aa")}},
		{name: "a new key after RenewAfter, and the old one decrypts", keys: Keys{keyOf(RenewAfter, "aa"): key(1)}, wantKept: []string{keyOf(RenewAfter, "aa")}, wantNew: true, wantChanged: true},
		{
			name: "the newest key counts", keys: Keys{keyOf(RenewAfter+time.Hour, "bb"): key(1), keyOf(day, "aa"): key(2)},
			wantKept: []string{keyOf(RenewAfter+time.Hour, "bb"), keyOf(day, "aa")},
		},
		{
			name: "an old key is kept until RetainFor", keys: Keys{keyOf(RetainFor, "aa"): key(1), keyOf(day, "bb"): key(2)},
			wantKept: []string{keyOf(RetainFor, "aa"), keyOf(day, "bb")},
		},
		{
			name: "and dropped after it", keys: Keys{keyOf(RetainFor+time.Second, "aa"): key(1), keyOf(day, "bb"): key(2)},
			wantKept: []string{keyOf(day, "bb")}, wantChanged: true,
		},
		{
			name: "unless a VM needs it", keys: Keys{keyOf(100*day, "aa"): key(1), keyOf(90*day, "bb"): key(2), keyOf(day, "cc"): key(3)}, inUse: []string{keyOf(100*day, "aa")},
			wantKept: []string{keyOf(100*day, "aa"), keyOf(day, "cc")}, wantChanged: true,
		},
		{
			name: "a needed key that is old is no reason not to make another one", keys: Keys{keyOf(100*day, "aa"): key(1)}, inUse: []string{keyOf(100*day, "aa")},
			wantKept: []string{keyOf(100*day, "aa")}, wantNew: true, wantChanged: true,
		},
		{
			name: "entries that are no keys are dropped, also if they are said to be needed", inUse: []string{"note", keyOf(time.Hour, "bb")},
			keys:     Keys{keyOf(time.Hour, "aa"): key(1), "note": []byte("do not delete"), "zz-cc": key(2), keyOf(time.Hour, "bb"): key(3)[:16], keyOf(time.Hour, "dd"): nil},
			wantKept: []string{keyOf(time.Hour, "aa")}, wantChanged: true,
		},
		{name: "an entry of the wrong size is no newest key", keys: Keys{keyOf(time.Hour, "aa"): key(1)[:31]}, wantNew: true, wantChanged: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := maps.Clone(tc.keys)
			got, changed := tc.keys.Renewed(now, func(id string) bool { return slices.Contains(tc.inUse, id) })
			if changed != tc.wantChanged {
				t.Errorf("changed is %v", changed)
			}
			if diff := cmp.Diff(before, tc.keys); diff != "" {
				t.Errorf("it changed its input (-before +after):\n%s", diff)
			}
			var kept, made []string
			for _, id := range slices.Sorted(maps.Keys(got)) {
				if value, found := tc.keys[id]; !found {
					made = append(made, id)
				} else if kept = append(kept, id); !bytes.Equal(value, got[id]) {
					t.Errorf("key %s changed", id)
				}
			}
			slices.Sort(tc.wantKept)
			if diff := cmp.Diff(tc.wantKept, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if len(made) > 1 || len(made) == 1 != tc.wantNew {
				t.Fatalf("new keys: %v", made)
			}
			if tc.wantNew {
				if !regexp.MustCompile(`^20260601t120000z-[0-9a-f]{8}$`).MatchString(made[0]) || len(got[made[0]]) != 32 || bytes.Equal(got[made[0]], make([]byte, 32)) {
					t.Errorf("the new key is %s, of %d bytes", made[0], len(got[made[0]]))
				}
				if newest := got.newest(); newest != made[0] {
					t.Errorf("%s encrypts", newest)
				}
			}
			if _, again := got.Renewed(now, func(id string) bool { return slices.Contains(tc.inUse, id) }); again {
				t.Error("it changes them again")
			}
		})
	}
}

func TestNewKeysDiffer(t *testing.T) {
	none := func(string) bool { return false }
	a, _ := Keys(nil).Renewed(now, none)
	b, _ := Keys(nil).Renewed(now, none)
	if a.newest() == b.newest() || bytes.Equal(a[a.newest()], b[b.newest()]) {
		t.Errorf("%s and %s of the same second are alike", a.newest(), b.newest())
	}
}

// A Secret accepts only such keys of its data.
func TestTheIDOfAKeyIsAKeyOfASecret(t *testing.T) {
	keys, _ := Keys(nil).Renewed(time.Now(), nil)
	if id := keys.newest(); !regexp.MustCompile(`^[-._a-zA-Z0-9]+$`).MatchString(id) {
		t.Error(id)
	}
}

func TestTheNewestKeyEncrypts(t *testing.T) {
	for name, tc := range map[string]struct {
		keys Keys
		want string
	}{
		"of none":                {},
		"of several":             {Keys{keyOf(time.Hour, "ff"): key(1), keyOf(time.Minute, "aa"): key(2), keyOf(2*time.Hour, "cc"): key(3)}, keyOf(time.Minute, "aa")},
		"that has its full size": {Keys{keyOf(time.Hour, "aa"): key(1), keyOf(time.Minute, "bb"): key(2)[:24]}, keyOf(time.Hour, "aa")},
		"that is a key at all":   {Keys{keyOf(time.Hour, "aa"): key(1), "zzz": key(2)}, keyOf(time.Hour, "aa")},
		"if nothing is a key":    {Keys{"zzz": key(2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.keys.newest(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			text, err := tc.keys.encrypt(Binding{}, []byte("x"))
			switch {
			case tc.want == "" && !errors.Is(err, ErrNoKey):
				t.Errorf("error %v", err)
			case tc.want != "" && (err != nil || KeyOf(text) != tc.want):
				t.Errorf("it encrypted %q, %v", text, err)
			}
		})
	}
}

func TestKeyOf(t *testing.T) {
	for text, want := range map[string]string{"": "", "id": "id", "id:": "id", "id:a:b": "id"} {
		if got := KeyOf(text); got != want {
			t.Errorf("of %q: got %q, want %q", text, got, want)
		}
	}
}

func TestDecryptingWhatWasNotEncrypted(t *testing.T) {
	id := keyOf(time.Hour, "aa")
	keys := Keys{id: key(1), "short": key(1)[:5]}
	encoded := func(raw string) string { return base64.StdEncoding.EncodeToString([]byte(raw)) }
	const (
		notOurs = "the annotation is not the one that Stencil wrote"
		noKey   = "the key that encrypted them does not exist"
		changed = "the annotation was written for another VirtualMachine, or changed"
	)
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                        {"", notOurs},
		"an ID alone":                    {id, notOurs},
		"an ID and a colon":              {id + ":", notOurs},
		"no base64":                      {id + ":%", notOurs},
		"a value of a user":              {"true", notOurs},
		"an unknown key":                 {keyOf(time.Hour, "bb") + ":" + encoded("some text that is long enough for a nonce"), noKey},
		"without an ID":                  {":" + encoded("some text that is long enough for a nonce"), noKey},
		"less than a nonce":              {id + ":" + encoded("short"), changed},
		"something else":                 {id + ":" + encoded("some text that is long enough for a nonce"), changed},
		"a key that has the wrong size":  {"short:" + encoded("some text that is long enough for a nonce"), "key short: crypto/aes: invalid key size 5"},
		"a tag and a nonce without text": {id + ":" + encoded("0123456789ab0123456789abcdef"), changed},
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := keys.decrypt(Binding{}, tc.text)
			if err == nil || err.Error() != tc.want || plain != nil {
				t.Errorf("got %q, %v; want %s", plain, err, tc.want)
			}
		})
	}
}
