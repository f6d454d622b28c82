package approval_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/approval"
)

func TestParseOverride(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string // the canonical text; the text itself when empty
	}{
		{name: "one field", text: "spec"},
		{name: "a chain of fields", text: "spec.template.spec.domain.cpu.cores"},
		{name: "a key with digits, dashes and underscores", text: "metadata.labels.cost-centre_2"},
		{name: "a key in quotes", text: `metadata.labels["app.kubernetes.io/name"]`},
		{name: "a key in quotes that needs none", text: `metadata["labels"]`, want: "metadata.labels"},
		{name: "a key with a quote and a backslash in it", text: `spec["a\"b\\c"]`},
		{name: "a key with a bracket in it", text: `spec["a]b"]`},
		{name: "an empty key", text: `spec[""]`},
		{name: "a key in another script", text: `spec["größe"].x`},
		{name: "any key", text: "metadata.annotations.*"},
		{name: "any key in the middle", text: "spec.*.cores"},
		{name: "an item by name", text: "spec.template.spec.domain.devices.interfaces[name=default].macAddress"},
		{name: "an item by a name with dots", text: "spec.template.spec.volumes[name=a.b-c]"},
		{name: "an item by a name in quotes", text: `spec.template.spec.volumes[name="a b"]`},
		{name: "a name in quotes that needs none", text: `spec.template.spec.volumes[name="a"]`, want: "spec.template.spec.volumes[name=a]"},
		{name: "any item", text: "spec.dataVolumeTemplates[*].spec.storage.storageClassName"},
		{name: "wildcards in a row", text: "spec.*[*].*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			override, err := approval.ParseOverride(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want == "" {
				want = tc.text
			}
			if got := override.String(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestParseOverrideRejects(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		wantColumn int
		want       string
	}{
		{name: "nothing", text: "", wantColumn: 1, want: "expected a field, such as spec, found the end"},
		{name: "a name", text: "metadata.name", wantColumn: 10, want: "only labels and annotations"},
		{name: "all metadata", text: "metadata", wantColumn: 9, want: "only labels and annotations"},
		{name: "any metadata", text: "metadata.*", wantColumn: 10, want: "only labels and annotations"},
		{name: "the status", text: "status.ready", wantColumn: 1, want: "begins with spec, metadata.labels or metadata.annotations"},
		{name: "another case", text: "Spec.running", wantColumn: 1, want: "begins with spec"},
		{name: "everything", text: "*", wantColumn: 1, want: `found '*'`},
		{name: "a leading dot", text: ".spec", wantColumn: 1, want: `found '.'`},
		{name: "a trailing dot", text: "spec.", wantColumn: 6, want: "expected a field or * after the dot, found the end"},
		{name: "two dots", text: "spec..template", wantColumn: 6, want: `found '.'`},
		{name: "two stars", text: "spec.template.**", wantColumn: 16, want: `* stands alone; expected a dot, [ or the end, found '*'`},
		{name: "a star after letters", text: "spec.templ*", wantColumn: 11, want: `expected a dot, [ or the end, found '*'`},
		{name: "letters after a star", text: "spec.*late", wantColumn: 7, want: "* stands alone"},
		{name: "letters after an item", text: "spec.a[*]b", wantColumn: 10, want: `found 'b'`},
		{name: "white space", text: "spec.a ", wantColumn: 7, want: `found ' '`},
		{name: "white space in front", text: " spec", wantColumn: 1, want: `found ' '`},
		{name: "a slash", text: "metadata.labels.a/b", wantColumn: 18, want: `found '/'`},
		{name: "a position", text: "spec.disks[0]", wantColumn: 12, want: `expected *, name=NAME or a "KEY" in quotes after [, found '0'`},
		{name: "an item by another field", text: "spec.disks[bus=sata]", wantColumn: 12, want: "expected *, name=NAME"},
		{name: "an item without a name", text: "spec.disks[name=]", wantColumn: 17, want: "expected the name of an item, found ']'"},
		{name: "an item with an empty name", text: `spec.disks[name=""]`, wantColumn: 17, want: "items without a name"},
		{name: "a wildcard in a name", text: "spec.disks[name=data-*]", wantColumn: 22, want: `expected ], found '*'`},
		{name: "a bracket that is not closed", text: "spec.disks[*", wantColumn: 13, want: "expected ], found the end"},
		{name: "a bracket that is never opened", text: "spec.disks]", wantColumn: 11, want: `found ']'`},
		{name: "an empty bracket", text: "spec.disks[]", wantColumn: 12, want: `found ']'`},
		{name: "a quote that is not closed", text: `spec["a]`, wantColumn: 6, want: "the quote is not closed"},
		{name: "single quotes", text: `spec['a']`, wantColumn: 6, want: `found '\''`},
		{name: "an escape that there is not", text: `spec["a\n"]`, wantColumn: 8, want: `\ stands only before " and \`},
		{name: "an escape at the end", text: `spec["a\`, wantColumn: 8, want: `\ stands only before`},
		{name: "a column counts characters, not bytes", text: `spec["größe"]!`, wantColumn: 14, want: `found '!'`},
		{name: "bytes that are no text", text: "spec[\"\xff\"]", wantColumn: 7, want: "not UTF-8"},
		{name: "a control character outside of quotes", text: "spec.a\nspec.b", wantColumn: 7, want: `found '\n'`},
		{name: "more than fits", text: "spec." + strings.Repeat("a", 508), wantColumn: 1, want: "at most 512 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := approval.ParseOverride(tc.text)
			var syntax *approval.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a SyntaxError", err)
			}
			if syntax.Column != tc.wantColumn || !strings.Contains(syntax.Message, tc.want) {
				t.Errorf("got column %d: %s; want column %d: %s", syntax.Column, syntax.Message, tc.wantColumn, tc.want)
			}
		})
	}
}

func TestOverridable(t *testing.T) {
	f, item, index := approval.Field, approval.Item, approval.Index
	path := func(steps ...approval.Step) approval.Path { return steps }
	for _, tc := range []struct {
		name, override string
		path           approval.Path
		want           bool
	}{
		{name: "the place itself", override: "spec.runStrategy", path: path(f("spec"), f("runStrategy")), want: true},
		{name: "a place below", override: "spec.template", path: path(f("spec"), f("template"), f("spec"), f("hostname")), want: true},
		{name: "a place above", override: "spec.template", path: path(f("spec")), want: false},
		{name: "a place beside", override: "spec.template", path: path(f("spec"), f("running")), want: false},
		{name: "a field that only begins alike", override: "spec.run", path: path(f("spec"), f("runStrategy")), want: false},
		{name: "another case", override: "spec.runstrategy", path: path(f("spec"), f("runStrategy")), want: false},
		{name: "any key, one of them", override: "metadata.labels.*", path: path(f("metadata"), f("labels"), f("a.b/c")), want: true},
		{name: "any key is one level", override: "spec.*.cores", path: path(f("spec"), f("a"), f("b"), f("cores")), want: false},
		{name: "any key is not an item", override: "spec.disks.*", path: path(f("spec"), f("disks"), item("a")), want: false},
		{name: "any item is not a key", override: "spec.disks[*]", path: path(f("spec"), f("disks"), f("a")), want: false},
		{name: "any item by name", override: "spec.disks[*].boot", path: path(f("spec"), f("disks"), item("a"), f("boot")), want: true},
		{name: "any item by position", override: "spec.disks[*].boot", path: path(f("spec"), f("disks"), index(3), f("boot")), want: true},
		{name: "the item of that name", override: "spec.disks[name=a].boot", path: path(f("spec"), f("disks"), item("a"), f("boot")), want: true},
		{name: "the item of another name", override: "spec.disks[name=a].boot", path: path(f("spec"), f("disks"), item("b"), f("boot")), want: false},
		{name: "an item by position has no name", override: "spec.disks[name=a]", path: path(f("spec"), f("disks"), index(0)), want: false},
		{name: "a key that reads like an item", override: "spec.disks[name=a]", path: path(f("spec"), f("disks"), f("a")), want: false},
		{name: "a whole item below one of its fields", override: "spec.disks[name=a].boot", path: path(f("spec"), f("disks"), item("a")), want: false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := compile(t, "a", "overrides: ['"+tc.override+"', metadata.labels.never]")
			if got := a.Overridable(tc.path); got != tc.want {
				t.Errorf("%s in %s: %v, want %v", tc.path, tc.override, got, tc.want)
			}
		})
	}
}

func TestOverridableField(t *testing.T) {
	a := compile(t, "a", `overrides: ['spec.disks[name=a].boot', 'spec.lists[*]', 'spec.efi.*', 'spec.tpm.persistent', 'metadata.labels["a.b/c"]']`)
	for _, tc := range []struct {
		path []string
		want bool
	}{
		{[]string{"spec", "disks", "[name=a]", "boot"}, true},
		{[]string{"spec", "disks", "[name=b]", "boot"}, false},
		{[]string{"spec", "disks", "[0]", "boot"}, false},
		{[]string{"spec", "lists", "[0]", "x"}, true},
		{[]string{"spec", "lists", "[name=x]"}, true},
		{[]string{"spec", "lists"}, true},
		{[]string{"spec", "efi"}, true},
		{[]string{"spec", "efi", "secureBoot"}, true},
		{[]string{"spec", "tpm"}, false},
		{[]string{"spec", "disks"}, false},
		{[]string{"spec", "lists", "[x]"}, false},
		{[]string{"spec", "lists", "[-1]"}, false},
		{[]string{"metadata", "labels", "a.b/c"}, true},
		{[]string{"metadata", "labels", "a"}, false},
		{nil, false},
	} {
		if got := a.OverridableField(tc.path...); got != tc.want {
			t.Errorf("%q: %v, want %v", tc.path, got, tc.want)
		}
	}
}
