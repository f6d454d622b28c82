package render

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/internal/mutation"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// The cases cover the annotations in which clients store the manifest that they applied.
func TestSensitiveParametersLeaveEveryKeptManifest(t *testing.T) {
	const (
		key    = "parameter.template.kubevirt.io/PASSWORD"
		secret = "correct-horse"
	)
	manifest := `{"metadata":{"annotations":{"` + key + `":"` + secret + `","keep":"me"},"name":"web-1"},"spec":{"a":1}}`
	without := `{"metadata":{"annotations":{"keep":"me"},"name":"web-1"},"spec":{"a":1}}` + "\n"
	harmless := `{"metadata":{"annotations":{"keep":"<me>"},"name":"web-1"}}`
	packed := func(text string) string {
		t.Helper()
		out, err := compress([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	nested := func(inner, around string) string {
		t.Helper()
		quoted, err := json.Marshal(inner)
		if err != nil {
			t.Fatal(err)
		}
		return `{"metadata":{"annotations":{"` + around + `":` + string(quoted) + `}}}`
	}
	bomb := packed(`{"a":"` + strings.Repeat("a", maximumManifest) + `"}`)
	for _, tc := range []struct {
		name  string
		given map[string]string
		want  map[string]string
	}{
		{name: "kubectl's", given: map[string]string{machine.AnnotationKubectl: manifest}, want: map[string]string{machine.AnnotationKubectl: without}},
		{name: "kapp's, with what identifies it",
			given: map[string]string{machine.AnnotationKapp: manifest, machine.AnnotationKappMD5: "c6e9", "kapp.k14s.io/identity": "v1"},
			want:  map[string]string{machine.AnnotationKapp: without, "kapp.k14s.io/identity": "v1"}},
		{name: "kapp's without the parameter stays", given: map[string]string{machine.AnnotationKapp: harmless, machine.AnnotationKappMD5: "c6e9"},
			want: map[string]string{machine.AnnotationKapp: harmless, machine.AnnotationKappMD5: "c6e9"}},
		{name: "kapp's differences", given: map[string]string{machine.AnnotationKappDiff: "+ " + secret, machine.AnnotationKappFullDiff: "+ " + secret, "other": "1"},
			want: map[string]string{"other": "1"}},
		{name: "kapp's with its differences", given: map[string]string{machine.AnnotationKapp: manifest, machine.AnnotationKappDiff: "+ " + secret},
			want: map[string]string{machine.AnnotationKapp: without}},
		{name: "wrangler's as JSON", given: map[string]string{machine.AnnotationWrangler: manifest}, want: map[string]string{machine.AnnotationWrangler: packed(without)}},
		{name: "wrangler's, compressed", given: map[string]string{machine.AnnotationWrangler: packed(manifest)}, want: map[string]string{machine.AnnotationWrangler: packed(without)}},
		{name: "wrangler's, compressed, without the parameter", given: map[string]string{machine.AnnotationWrangler: packed(harmless)},
			want: map[string]string{machine.AnnotationWrangler: packed(harmless)}},
		{name: "wrangler's that is no base64", given: map[string]string{machine.AnnotationWrangler: "%" + secret}, want: map[string]string{}},
		{name: "wrangler's that is not compressed", given: map[string]string{machine.AnnotationWrangler: base64.RawStdEncoding.EncodeToString([]byte(manifest))}, want: map[string]string{}},
		{name: "wrangler's that is cut off", given: map[string]string{machine.AnnotationWrangler: packed(manifest)[:40]}, want: map[string]string{}},
		{name: "wrangler's that expands to more than an object can be", given: map[string]string{machine.AnnotationWrangler: bomb}, want: map[string]string{}},
		{name: "an object matcher's", given: map[string]string{machine.AnnotationBanzai: "UEsDBBQ"}, want: map[string]string{}},
		{name: "one that is no JSON", given: map[string]string{machine.AnnotationKapp: `{"` + secret, machine.AnnotationKappMD5: "c6e9"}, want: map[string]string{}},
		{name: "one whose annotations are no strings", given: map[string]string{machine.AnnotationKapp: `{"metadata":{"annotations":["` + secret + `"]}}`}, want: map[string]string{}},
		{name: "kubectl's with characters of HTML", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, `"me"`, `"<me>"`, 1)},
			want: map[string]string{machine.AnnotationKubectl: strings.Replace(without, `"me"`, `"<me>"`, 1)}},
		{name: "one in one", given: map[string]string{machine.AnnotationKapp: nested(manifest, machine.AnnotationKubectl)},
			want: map[string]string{machine.AnnotationKapp: nested(without, machine.AnnotationKubectl) + "\n"}},
		{name: "one so deep that it is not looked for", given: map[string]string{
			machine.AnnotationKubectl: nested(nested(nested(manifest, machine.AnnotationKubectl), machine.AnnotationKubectl), machine.AnnotationKubectl)},
			want: map[string]string{machine.AnnotationKubectl: nested(nested(`{"metadata":{"annotations":{}}}`+"\n", machine.AnnotationKubectl)+"\n", machine.AnnotationKubectl) + "\n"}},
		{name: "one with the annotations twice", given: map[string]string{machine.AnnotationKubectl: `{"metadata":{"annotations":{"` + key + `":"` + secret + `"},"annotations":{"keep":"me"}}}`}, want: map[string]string{}},
		{name: "one with the metadata twice", given: map[string]string{machine.AnnotationKubectl: `{"metadata":{"annotations":{"` + key + `":"` + secret + `"}},"metadata":{"name":"a"}}`}, want: map[string]string{}},
		{name: "one with the parameter twice", given: map[string]string{machine.AnnotationKubectl: `{"metadata":{"annotations":{"` + key + `":"` + secret + `","` + key + `":"x"},"name":"a"}}`},
			want: map[string]string{machine.AnnotationKubectl: `{"metadata":{"annotations":{},"name":"a"}}` + "\n"}},
		{name: "one with keys in another case", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, `"metadata":{"annotations"`, `"Metadata":{"Annotations"`, 1)}, want: map[string]string{}},
		{name: "one with the parameter in another case", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, "PASSWORD", "password", 1)}, want: map[string]string{}},
		{name: "one with an escaped key", given: map[string]string{machine.AnnotationKubectl: strings.Replace(`{"items":[`+manifest+`]}`, "parameter", `\u0070arameter`, 1)}, want: map[string]string{}},
		{name: "a list", given: map[string]string{machine.AnnotationKubectl: `{"kind":"List","items":[` + manifest + `]}`}, want: map[string]string{}},
		{name: "one with something behind it", given: map[string]string{machine.AnnotationKubectl: manifest + `{"a":"` + secret + `"}`}, want: map[string]string{}},
		{name: "the value elsewhere in it", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, `"a":1`, `"a":"x `+secret+`"`, 1)}, want: map[string]string{}},
		{name: "the value elsewhere in it, escaped", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, `"a":1`, `"a":"\u0063orrect-horse"`, 1)}, want: map[string]string{}},
		{name: "the value elsewhere in it, in base64", given: map[string]string{machine.AnnotationKubectl: strings.Replace(manifest, `"a":1`, `"a":"`+base64.StdEncoding.EncodeToString([]byte("xy: "+secret+"\n"))+`"`, 1)}, want: map[string]string{}},
		{name: "the value of the manifest only", given: map[string]string{machine.AnnotationKubectl: strings.NewReplacer(secret, "battery-staple", `"a":1`, `"a":"battery-staple"`).Replace(manifest)}, want: map[string]string{}},
		{name: "another client's", given: map[string]string{"example.com/last-applied": manifest, "example.com/other": manifest, "example.com/note": "keep me"}, want: map[string]string{"example.com/note": "keep me"}},
		{name: "another client's with the value only", given: map[string]string{"example.com/original": `{"spec":{"password":"` + secret + `"}}`}, want: map[string]string{}},
		{name: "another client's, compressed", given: map[string]string{"ksonnet.io/managed": `{"pristine":"` + packed(manifest) + `"}`}, want: map[string]string{}},
		{name: "another client's, compressed, in base64 of URLs", given: map[string]string{"example.com/a": strings.NewReplacer("+", "-", "/", "_").Replace(packed(manifest))}, want: map[string]string{}},
		{name: "another client's without the parameter", given: map[string]string{"example.com/last-applied": harmless}, want: map[string]string{"example.com/last-applied": harmless}},
		{name: "kapp's that still has it, with what identifies it", given: map[string]string{machine.AnnotationKapp: `{"items":[` + manifest + `]}`, machine.AnnotationKappMD5: "c6e9"}, want: map[string]string{}},
		{name: "all at once", given: map[string]string{machine.AnnotationKubectl: manifest, machine.AnnotationKapp: manifest, machine.AnnotationWrangler: manifest},
			want: map[string]string{machine.AnnotationKubectl: without, machine.AnnotationKapp: without, machine.AnnotationWrangler: packed(without)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := map[string]any{key: secret}
			for k, v := range tc.given {
				given[k] = v
			}
			p := &mutation.Patch{}
			removed := forget(p, given, []string{"PASSWORD"})
			got := annotationsAfter(t, p, given)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			for _, at := range removed {
				if _, found := got[at[2]]; found {
					t.Errorf("%s is reported as removed", at[2])
				}
			}
			if len(removed) != len(given)-len(got) {
				t.Errorf("%d annotations are gone, reported are %v", len(given)-len(got), removed)
			}
			again := map[string]any{}
			for k, v := range got {
				again[k] = v
			}
			second := &mutation.Patch{}
			if forget(second, again, []string{"PASSWORD"}); len(second.Operations) > 0 {
				t.Errorf("the second time changes %v", second.Operations)
			}
		})
	}
	for _, tc := range []struct{ name, value, text, want string }{
		{"a value of one character", "1", `{"spec":{"a":"1","b":1}}`, `{"spec":{"a":"1","b":1}}`},
		{"a value that is part of a word", "fedora", `{"spec":{"image":"golden/fedora"}}`, `{"spec":{"image":"golden/fedora"}}`},
		{"a short value as a whole string", "fedora", `{"spec":{"image":"fedora"}}`, ""},
		{"a short value as a number", "12345", `{"spec":{"pin":12345}}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := map[string]any{key: tc.value, machine.AnnotationKubectl: tc.text}
			p := &mutation.Patch{}
			forget(p, given, []string{"PASSWORD"})
			if got := annotationsAfter(t, p, given)[machine.AnnotationKubectl]; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("without sensitive parameters nothing is read", func(t *testing.T) {
		p := &mutation.Patch{}
		if removed := forget(p, map[string]any{machine.AnnotationKapp: "{", machine.AnnotationBanzai: "x"}, nil); len(removed) > 0 || len(p.Operations) > 0 {
			t.Errorf("removed %v", removed)
		}
	})
}

func annotationsAfter(t *testing.T, p *mutation.Patch, annotations map[string]any) map[string]string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		t.Fatal(err)
	}
	operations, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(fixture.Patched(t, raw, operations), &got); err != nil {
		t.Fatal(err)
	}
	return got.Metadata.Annotations
}
