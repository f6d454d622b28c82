package goldenimage

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// shortDigest is the number of digits of a digest in the names of CDI's volumes.
const shortDigest = 12

// DefaultTag is the tag that is followed if none is given.
const DefaultTag = "latest"

// architectures returns the architectures of an image, one without name if it has none.
func architectures(image *v1alpha1.GoldenImage) []string {
	if len(image.Spec.Architectures) == 0 {
		return []string{""}
	}
	return image.Spec.Architectures
}

// base returns the name of the image's DataSource.
func base(image *v1alpha1.GoldenImage) string { return cmp.Or(image.Spec.DataSource, image.Name) }

// join joins the parts of a name that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "-")
}

// managed returns the name of the DataSource and of the DataImportCron of an architecture.
func managed(image *v1alpha1.GoldenImage, architecture string) string {
	return join(base(image), architecture)
}

// Managed returns the names of an image's DataImportCrons, which are those of the DataSources that they move.
func Managed(image *v1alpha1.GoldenImage) []string {
	var names []string
	for _, architecture := range architectures(image) {
		names = append(names, managed(image, architecture))
	}
	return names
}

// Names returns the names of all DataSources of an image, and of those that it had when its status was written.
func Names(image *v1alpha1.GoldenImage) []string {
	names := append(Managed(image), base(image))
	for _, channel := range image.Spec.Channels {
		for _, architecture := range architectures(image) {
			names = append(names, join(base(image), channel.Name, architecture))
		}
		names = append(names, join(base(image), channel.Name))
	}
	for _, one := range image.Status.Architectures {
		names = append(names, one.DataSource)
	}
	for _, one := range image.Status.Channels {
		names = append(names, one.DataSource, join(base(image), one.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// volumeName returns the name that CDI gives to the volume of an import.
func volumeName(dataSource, digest string) string {
	_, digits, _ := strings.Cut(digest, ":")
	return dataSource + "-" + digits[:min(len(digits), shortDigest)]
}

// SourceID identifies the source and the architectures of an image, and what is verified of it.
func SourceID(image *v1alpha1.GoldenImage) string {
	of := []any{image.Spec.Source, image.Spec.Architectures}
	if image.Spec.Verify != nil {
		of = append(of, image.Spec.Verify, image.Spec.Digest)
	}
	return fingerprint(of)
}

// fingerprint returns a short digest of a value in JSON.
func fingerprint(value any) string {
	// Values of the API and maps of texts can be encoded.
	text, _ := json.Marshal(value)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// labels returns the labels of a DataSource of the image. cron is the DataImportCron that moves it; empty if none does.
func labels(image *v1alpha1.GoldenImage, cron, architecture string) map[string]any {
	made := map[string]any{v1alpha1.LabelGoldenImage: image.Name}
	d := image.Spec.Defaults
	for key, value := range map[string]string{
		LabelDataImportCron:                                  cron,
		"template.kubevirt.io/architecture":                  architecture,
		"instancetype.kubevirt.io/default-instancetype":      d.Instancetype,
		"instancetype.kubevirt.io/default-instancetype-kind": d.InstancetypeKind,
		"instancetype.kubevirt.io/default-preference":        d.Preference,
		"instancetype.kubevirt.io/default-preference-kind":   d.PreferenceKind,
	} {
		if value != "" {
			made[key] = value
		}
	}
	return made
}
