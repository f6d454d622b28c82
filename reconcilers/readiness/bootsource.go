package readiness

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// bootSource is a DataSource whose annotations describe its image.
type bootSource struct {
	key sources.Key
	sources.Image
}

// facts are the annotations of a boot source that are valid.
type facts struct {
	key         sources.Key
	goldenImage string
	digest      string
	// importedAt and staleAfter are zero if they are unknown.
	importedAt, staleAfter time.Time
	// ignored names the annotations that are malformed.
	ignored []string
}

// digests is the format of digests in OCI's image specification.
var digests = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]{32,128}$`)

func (b bootSource) facts() facts {
	known := facts{key: b.key}
	valid := func(key, value string, is bool) bool {
		if value != "" && !is {
			known.ignored = append(known.ignored, key)
		}
		return value != "" && is
	}
	if valid(v1alpha1.AnnotationGoldenImage, b.GoldenImage, len(validation.IsDNS1123Subdomain(b.GoldenImage)) == 0) {
		known.goldenImage = b.GoldenImage
	}
	if valid(v1alpha1.AnnotationImageDigest, b.Digest, digests.MatchString(b.Digest)) {
		known.digest = b.Digest
	}
	for key, one := range map[string]struct {
		value string
		into  *time.Time
	}{
		v1alpha1.AnnotationImageImportedAt: {b.ImportedAt, &known.importedAt},
		v1alpha1.AnnotationImageStaleAfter: {b.StaleAfter, &known.staleAfter},
	} {
		if at, err := time.Parse(time.RFC3339, one.value); valid(key, one.value, err == nil) {
			*one.into = at
		}
	}
	slices.Sort(known.ignored)
	return known
}

// String describes the image for a message.
func (f facts) String() string {
	var parts []string
	if f.digest != "" {
		parts = append(parts, f.digest)
	}
	if f.goldenImage != "" {
		parts = append(parts, "of GoldenImage "+f.goldenImage)
	}
	if !f.importedAt.IsZero() {
		parts = append(parts, "imported at "+stamp(f.importedAt))
	}
	text := f.key.String()
	if len(parts) > 0 {
		text += " has image " + strings.Join(parts, " ")
	}
	if len(f.ignored) > 0 {
		text += fmt.Sprintf(" (ignored because they are malformed: annotations %s)", strings.Join(f.ignored, ", "))
	}
	return text
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// describe returns what is known about the images, for the message of SourcesReady; empty if that is nothing.
func describe(images []bootSource) string {
	var named []string
	for _, image := range images {
		named = append(named, image.facts().String())
	}
	return excerpt.List(named, maximumNamed, "images")
}

// staleness returns the condition BootSourceStale, and the next time at which it changes, zero if it does not. The condition is nil if no image
// has a limit.
func staleness(images []bootSource, now time.Time) (made *metav1.Condition, next time.Time) {
	var stale []string
	limited := false
	for _, image := range images {
		known := image.facts()
		switch {
		case known.staleAfter.IsZero():
			continue
		case now.Before(known.staleAfter):
			if next.IsZero() || known.staleAfter.Before(next) {
				next = known.staleAfter
			}
		default:
			stale = append(stale, fmt.Sprintf("%s; a newer one was due by %s", known, stamp(known.staleAfter)))
		}
		limited = true
	}
	switch {
	case !limited:
		return nil, next
	case len(stale) > 0:
		return &metav1.Condition{
			Type: v1beta1.ConditionBootSourceStale, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonStale,
			Message: excerpt.List(stale, maximumNamed, "images"),
		}, next
	}
	return &metav1.Condition{
		Type: v1beta1.ConditionBootSourceStale, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonFresh,
		Message: "no image is older than its limit; the next limit is " + stamp(next),
	}, next
}
