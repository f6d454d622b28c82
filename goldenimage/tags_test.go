package goldenimage_test

import (
	"strings"
	"testing"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

func TestChooseTag(t *testing.T) {
	fedora := []string{"latest", "39", "40", "41", "41.1", "v42.0.3", "43", "42-rc1", "rawhide", "42-20240101.0"}
	dated := []string{"20240130-1", "20240130-12", "20240130-2", "20231231-1", "debug-20240201"}
	signature := "sha256-" + strings.Repeat("0123456789abcdef", 4)
	for name, tc := range map[string]struct {
		rule v1alpha1.GoldenImageTags
		tags []string
		want string
	}{
		"a range of versions":                       {v1alpha1.GoldenImageTags{Semver: ">=41 <43"}, fedora, "v42.0.3"},
		"the newest, not the last text":             {v1alpha1.GoldenImageTags{Semver: "<42"}, fedora, "41.1"},
		"versions are newer than other tags":        {v1alpha1.GoldenImageTags{Pattern: ".*"}, fedora, "43"},
		"a pattern matches the whole tag":           {v1alpha1.GoldenImageTags{Pattern: "4"}, append(fedora, "4"), "4"},
		"both":                                      {v1alpha1.GoldenImageTags{Semver: ">=40", Pattern: `\d+`, Exclude: "43"}, fedora, "41"},
		"pre-releases only where the range has one": {v1alpha1.GoldenImageTags{Semver: ">=42-0 <42"}, fedora, "42-rc1"},
		"numbers in other tags are numbers":         {v1alpha1.GoldenImageTags{Pattern: `debug-.*|202401.*-\d+`, Exclude: "debug.*"}, dated, "20240130-12"},
		"signatures are no images":                  {v1alpha1.GoldenImageTags{Pattern: ".*"}, []string{"latest", signature, signature + ".sig", signature + ".att"}, "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := goldenimage.ChooseTag(tc.rule, tc.tags)
			if err != nil || got != tc.want {
				t.Errorf("got %q, want %q; error %v", got, tc.want, err)
			}
		})
	}
	for name, tc := range map[string]struct {
		rule v1alpha1.GoldenImageTags
		want string
	}{
		"no tag":    {v1alpha1.GoldenImageTags{Semver: ">50"}, "no tag matches spec.source.registry.tags among the 10 of the image"},
		"no range":  {v1alpha1.GoldenImageTags{Semver: "newest"}, `spec.source.registry.tags.semver: "newest" is no range of versions such as ">=41 <43": improper constraint: "newest"`},
		"a pattern": {v1alpha1.GoldenImageTags{Pattern: "("}, "spec.source.registry.tags.pattern: error parsing regexp: missing closing ): `^(?:()$`"},
		"exclude":   {v1alpha1.GoldenImageTags{Pattern: ".*", Exclude: "["}, "spec.source.registry.tags.exclude: error parsing regexp: missing closing ]: `[)$`"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := goldenimage.ChooseTag(tc.rule, fedora); err == nil || err.Error() != tc.want {
				t.Errorf("got %q, error %v, want %s", got, err, tc.want)
			}
		})
	}
}
