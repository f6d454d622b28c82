package goldenimage

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// ErrNoTag is returned if no tag matches.
var ErrNoTag = errors.New("no tag matches")

// ChooseTag returns the newest of the tags that match. Errors name the invalid field, or wrap ErrNoTag.
func ChooseTag(rule v1alpha1.GoldenImageTags, tags []string) (string, error) {
	matches, err := matcher(rule)
	if err != nil {
		return "", err
	}
	chosen, found := tag{}, false
	for _, text := range tags {
		if one := parseTag(text); !referring.MatchString(text) && matches(one) && (!found || one.compare(chosen) > 0) {
			chosen, found = one, true
		}
	}
	if !found {
		return "", fmt.Errorf("%w spec.source.registry.tags among the %d of the image", ErrNoTag, len(tags))
	}
	return chosen.text, nil
}

// matcher compiles a rule.
func matcher(rule v1alpha1.GoldenImageTags) (func(tag) bool, error) {
	const field = "spec.source.registry.tags."
	var within *semver.Constraints
	if rule.Semver != "" {
		var err error
		if within, err = semver.NewConstraint(rule.Semver); err != nil {
			return nil, fmt.Errorf("%ssemver: %q is no range of versions such as \">=41 <43\": %w", field, rule.Semver, err)
		}
	}
	whole := func(name, pattern string) (*regexp.Regexp, error) {
		compiled, err := regexp.Compile(`^(?:` + pattern + `)$`)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", field, name, err)
		}
		return compiled, nil
	}
	pattern, err := whole("pattern", cmp.Or(rule.Pattern, ".*"))
	if err != nil {
		return nil, err
	}
	// Without exclude nothing is excluded: a tag is never empty.
	exclude, err := whole("exclude", rule.Exclude)
	if err != nil {
		return nil, err
	}
	return func(t tag) bool {
		return pattern.MatchString(t.text) && !exclude.MatchString(t.text) && (within == nil || t.version != nil && within.Check(t.version))
	}, nil
}

// tag is a tag of an image with the version that it stands for, nil if none.
type tag struct {
	text    string
	version *semver.Version
}

func parseTag(text string) tag {
	version, err := semver.NewVersion(text)
	if err != nil {
		version = nil
	}
	return tag{text, version}
}

// compare returns a positive number if t is newer than other. The result is 0 only for the same tag.
func (t tag) compare(other tag) int {
	switch {
	case t.version != nil && other.version == nil:
		return 1
	case t.version == nil && other.version != nil:
		return -1
	case t.version != nil:
		if order := t.version.Compare(other.version); order != 0 {
			return order
		}
	}
	return cmp.Or(compareNatural(t.text, other.text), strings.Compare(t.text, other.text))
}

// referring are tags of what refers to an image, such as its signatures: those of cosign, and of the distribution specification of OCI.
var referring = regexp.MustCompile(`^sha(256|512)-[0-9a-f]{64,128}(\..*)?$`)

var parts = regexp.MustCompile(`[0-9]+|[^0-9]+`)

// compareNatural compares texts with their numbers as numbers of any size.
func compareNatural(a, b string) int {
	number := func(part string) bool { return part[0] >= '0' && part[0] <= '9' }
	return slices.CompareFunc(parts.FindAllString(a, -1), parts.FindAllString(b, -1), func(x, y string) int {
		if !number(x) || !number(y) {
			return strings.Compare(x, y)
		}
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
}
