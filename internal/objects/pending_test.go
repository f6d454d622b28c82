package objects

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	box = Binding{Namespace: "team-a", Name: "web-1", Record: `{"namespace":"golden","name":"box"}`}

	boxKeys = Keys{keyOf(time.Hour, "aa"): key(1)}
)

func boxObjects() Pending {
	return Pending{Sealed: now, Sensitive: []string{"open-sesame"}, Objects: []Object{
		{Version: "v1", Resource: "secrets", Manifest: json.RawMessage(`{"kind":"Secret","metadata":{"name":"web-1-db"},"stringData":{"password":"open-sesame"}}`)},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Manifest: json.RawMessage(`{"kind":"NetworkPolicy","metadata":{"name":"web-1"}}`)},
	}}
}

func seal(t *testing.T) string {
	t.Helper()
	text, err := boxObjects().Seal(boxKeys, box)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWhatIsSealedCanBeOpened(t *testing.T) {
	text := seal(t)
	if !strings.HasPrefix(text, "20260601t110000z-aa:") {
		t.Errorf("it begins otherwise than with the ID of the key: %.40s", text)
	}
	got, err := Open(boxKeys, box, text, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(boxObjects(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if seal(t) == text {
		t.Error("the same objects have the same text twice")
	}

	rotated, _ := boxKeys.Renewed(now.Add(RenewAfter), func(string) bool { return false })
	if got, err = Open(rotated, box, text, now); err != nil || len(rotated) != 2 {
		t.Fatalf("with %d keys after rotation: %v", len(rotated), err)
	}
	if diff := cmp.Diff(boxObjects(), got); diff != "" {
		t.Errorf("after rotation (-want +got):\n%s", diff)
	}
}

func TestTheSealedTextShowsNothing(t *testing.T) {
	text := seal(t)
	_, encoded, _ := strings.Cut(text, ":")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"open-sesame", "web-1", "Secret", "secrets", "golden", base64.StdEncoding.EncodeToString([]byte("open-sesame"))[:12]} {
		if strings.Contains(text, secret) || strings.Contains(string(raw), secret) {
			t.Errorf("it contains %s", secret)
		}
	}
}

func TestOpenDenies(t *testing.T) {
	const (
		notOurs = "the annotation is not the one that Stencil wrote"
		noKey   = "the key that encrypted them does not exist"
		changed = "the annotation was written for another VirtualMachine, or changed"
	)
	text := seal(t)
	id, encoded, _ := strings.Cut(text, ":")
	flipped := func(at int) string {
		raw, _ := base64.StdEncoding.DecodeString(encoded)
		if at < 0 {
			at += len(raw)
		}
		raw[at] ^= 1
		return id + ":" + base64.StdEncoding.EncodeToString(raw)
	}
	with := func(change func(*Binding)) Binding {
		b := box
		change(&b)
		return b
	}
	two := Keys{id: boxKeys[id], keyOf(time.Minute, "bb"): key(2)}
	for _, tc := range []struct {
		name    string
		keys    Keys
		binding Binding
		text    string
		created time.Time
		want    string
	}{
		{name: "another namespace", binding: with(func(b *Binding) { b.Namespace = "team-b" }), want: changed},
		{name: "another name", binding: with(func(b *Binding) { b.Name = "web-2" }), want: changed},
		{name: "another record", binding: with(func(b *Binding) { b.Record = "{}" }), want: changed},
		{name: "without a record", binding: with(func(b *Binding) { b.Record = "" }), want: changed},
		{name: "a border that moved between namespace and name", binding: with(func(b *Binding) { b.Namespace, b.Name = "team-", "aweb-1" }), want: changed},
		{name: "a border that moved between name and record", binding: with(func(b *Binding) { b.Name, b.Record = "web-1{", b.Record[1:] }), want: changed},
		{name: "a changed nonce", text: flipped(0), want: changed},
		{name: "a changed text", text: flipped(40), want: changed},
		{name: "a changed tag", text: flipped(-1), want: changed},
		{name: "a text that is cut", text: text[:len(text)-8], want: changed},
		{name: "the ID of another key", keys: two, text: keyOf(time.Minute, "bb") + ":" + encoded, want: changed},
		{name: "an unknown key", keys: Keys{keyOf(time.Minute, "bb"): key(2)}, want: noKey},
		{name: "no keys", keys: Keys{}, want: noKey},
		{name: "another key of the same ID", keys: Keys{id: key(2)}, want: changed},
		{name: "a text without a key", text: encoded, want: notOurs},
		{name: "a VM that was created at once"},
		{name: "a VM that was created at the last moment", created: now.Add(ClockSkew)},
		{name: "a VM that was created before, by a clock that is behind", created: now.Add(-ClockSkew)},
		{name: "a VM that was created too late", created: now.Add(ClockSkew + time.Second), want: "the annotation was written for a VirtualMachine of the same name that was created 5m1s earlier or later"},
		{name: "a VM that was created long before", created: now.Add(-36 * time.Hour), want: "the annotation was written for a VirtualMachine of the same name that was created 36h0m0s earlier or later"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.keys == nil {
				tc.keys = boxKeys
			}
			if tc.binding == (Binding{}) {
				tc.binding = box
			}
			if tc.text == "" {
				tc.text = text
			}
			if tc.created.IsZero() {
				tc.created = now
			}
			got, err := Open(tc.keys, tc.binding, tc.text, tc.created)
			message, want := "", boxObjects()
			if err != nil {
				message = err.Error()
			}
			if tc.want != "" {
				want = Pending{}
			}
			if message != tc.want {
				t.Errorf("got  %s\nwant %s", message, tc.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenDeniesWhatIsNoListOfObjects(t *testing.T) {
	text, err := boxKeys.encrypt(box, []byte(`{"objects":"open-sesame"`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(boxKeys, box, text, now)
	if err == nil || err.Error() != "reading the decrypted objects: unexpected end of JSON input" {
		t.Error(err)
	}
}

func TestSealDenies(t *testing.T) {
	filled := func(size int) Pending {
		return Pending{Sealed: now, Objects: []Object{{Version: "v1", Resource: "configmaps", Manifest: json.RawMessage(`{"a":"` + strings.Repeat("a", size) + `"}`)}}}
	}
	t.Run("without a key", func(t *testing.T) {
		for _, keys := range []Keys{nil, {}, {"note": key(1)}} {
			text, err := boxObjects().Seal(keys, box)
			if !errors.Is(err, ErrNoKey) || text != "" || err.Error() != "there is no key to encrypt the objects of the template with" {
				t.Errorf("got %q, %v", text, err)
			}
		}
	})
	t.Run("what is too large", func(t *testing.T) {
		// base64 has four bytes for three. The rest are the fields, the nonce, the tag and the ID of the key.
		text, err := filled(MaximumSize*3/4-200).Seal(boxKeys, box)
		if err != nil || len(text) > MaximumSize || len(text) < MaximumSize-300 {
			t.Errorf("what fits: %d bytes, %v", len(text), err)
		}
		text, err = filled(MaximumSize*3/4).Seal(boxKeys, box)
		var large *TooLargeError
		if !errors.As(err, &large) || text != "" {
			t.Fatalf("got %d bytes, %v", len(text), err)
		}
		if want := "the rendered objects have 131272 bytes when they are encrypted, and at most 131072 are possible"; err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	})
	t.Run("what is no JSON", func(t *testing.T) {
		broken := Pending{Objects: []Object{{Manifest: json.RawMessage(`open-sesame`)}}}
		text, err := broken.Seal(boxKeys, box)
		if err == nil || text != "" || !strings.HasPrefix(err.Error(), "encoding the objects of the template: ") || strings.Contains(err.Error(), "open-sesame") {
			t.Errorf("got %q, %v", text, err)
		}
	})
}

func TestSealAtTheSameTime(t *testing.T) {
	texts := make([]string, 64)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() {
			var err error
			if texts[i], err = boxObjects().Seal(boxKeys, box); err != nil {
				t.Error(err)
				return
			}
			if _, err := Open(boxKeys, box, texts[i], now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, text := range texts {
		if seen[text] {
			t.Errorf("two have the same text: %.60s", text)
		}
		seen[text] = true
	}
}
