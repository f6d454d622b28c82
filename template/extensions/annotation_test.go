package extensions_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/template/extensions"
)

func encode(t *testing.T, e extensions.Extensions) string {
	t.Helper()
	annotation, err := extensions.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return annotation
}

func sum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func compressed(t *testing.T, content string) string {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestEncodeAndDecode(t *testing.T) {
	const small = `{"parameters":{"A":{"maximum":9223372036854775807,"pattern":"<a&b>"}}}`
	escaped := strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(small)
	for _, tc := range []struct {
		name string
		of   extensions.Extensions
		want string
	}{
		{"small ones can be read", extensions.Extract(object(t, `spec: {parameters: [{name: A, pattern: "<a&b>", maximum: 9223372036854775807}]}`).Spec), `{"digest":"` + sum(escaped) + `","fields":` + escaped + `}`},
		{"large ones are compressed", extensions.Extract(object(t, `spec: {objects: [{data: `+strings.Repeat("x", 1<<20)+`}]}`).Spec), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			annotation := encode(t, tc.of)
			if tc.want != "" && annotation != tc.want {
				t.Errorf("got %s, want %s", annotation, tc.want)
			}
			if tc.want == "" && (!strings.Contains(annotation, `"gzip":`) || len(annotation) > 4<<10) {
				t.Errorf("it is not compressed: %d bytes", len(annotation))
			}
			if again := encode(t, tc.of); again != annotation {
				t.Errorf("the second time it is %s", again)
			}
			read, err := extensions.Decode(annotation)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.of, read); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeHasALimit(t *testing.T) {
	noise := make([]byte, 120<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	_, err := extensions.Encode(extensions.Extract(map[string]any{"objects": []any{base64.StdEncoding.EncodeToString(noise)}}))
	if err == nil || !strings.HasSuffix(err.Error(), " bytes in the annotation, and the maximum is 131072") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeRejects(t *testing.T) {
	fields := func(content string) string {
		return `{"digest":"` + sum(content) + `","fields":` + content + `}`
	}
	for _, tc := range []struct{ name, annotation, want string }{
		{"nothing", "", "it is no JSON of the expected form"},
		{"another form", `{"fields":[]}`, "it is no JSON of the expected form"},
		{"no fields", `{"digest":"sha256:"}`, "it has no fields"},
		{"too much", strings.Repeat(" ", 128<<10+1), "it has more than 131072 bytes"},
		{"a changed field", strings.Replace(fields(`{"template":{"secretize":true}}`), "true", "false", 1), "its fields do not have its digest"},
		{"content that is not compressed", `{"gzip":"AAAA"}`, "its content is not compressed by gzip"},
		{"content that is cut off", `{"gzip":"` + compressed(t, strings.Repeat("x", 99))[:32] + `"}`, "its compressed content is damaged"},
		{"content that is no JSON", `{"gzip":"` + compressed(t, "x") + `"}`, "its compressed content is no JSON of the expected form"},
		{"content that is very large", `{"gzip":"` + compressed(t, strings.Repeat(" ", 2<<20+1)) + `"}`, "its content has more than 2097152 bytes"},
		{"a published field of the template", fields(`{"template":{"message":"x"}}`), "its fields of the template: message is a field of the published API"},
		{"a published field of a parameter", fields(`{"parameters":{"A":{"value":"x"}}}`), `its fields of the parameter "A": value is a field of the published API`},
		{"a field that the types do not have", fields(`{"template":{"future":"x"}}`), `its fields of the template: unknown field "future"`},
		{"a value of another type", fields(`{"parameters":{"A":{"sensitive":"hunter2"}}}`), `its fields of the parameter "A": json: cannot unmarshal string into Go struct field Parameter.sensitive of type bool`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := extensions.Decode(tc.annotation); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"digest":"sha256:","fields":{"template":{"secretize":true}}}`)
	f.Add(`{"gzip":"H4sIAAAAAAAA/w=="}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		e, err := extensions.Decode(annotation)
		if err != nil {
			return
		}
		if again, err := extensions.Decode(encode(t, e)); err != nil || cmp.Diff(e, again) != "" {
			t.Errorf("%v, %v", again, err)
		}
	})
}
