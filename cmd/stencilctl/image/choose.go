package image

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

const (
	algorithm = "sha256:"
	// shortestPrefix is the number of digits that a digest without algorithm needs, so that a version is not read as one.
	shortestPrefix = 6
)

var (
	wholeDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	digits      = regexp.MustCompile(`^[0-9a-f]+$`)
)

// imported returns the images that one digest can name, newest first. It fails if the GoldenImage has several architectures: a digest is that of
// an image for one.
func (t *target) imported(image *v1alpha1.GoldenImage) ([]v1alpha1.ImportedImage, error) {
	architecture := ""
	switch arches := image.Spec.Architectures; len(arches) {
	case 0:
	case 1:
		architecture = arches[0]
	default:
		return nil, cli.Usage(fmt.Errorf("GoldenImage %s has %d architectures (%s), and a digest is that of one: make a GoldenImage for each", t.at, len(arches), strings.Join(arches, ", ")))
	}
	images := newestFirst(image.Status.History)
	return slices.DeleteFunc(images, func(one v1alpha1.ImportedImage) bool { return one.Architecture != architecture }), nil
}

// choose returns the one of the images with this tag, or with a digest that begins so. Other images that match are an error, which lists what there is.
func (t *target) choose(images []v1alpha1.ImportedImage, text string) (v1alpha1.ImportedImage, error) {
	matches := slices.DeleteFunc(slices.Clone(images), func(one v1alpha1.ImportedImage) bool { return one.Tag != text })
	if len(matches) == 0 && prefix(text) != "" {
		matches = slices.DeleteFunc(slices.Clone(images), func(one v1alpha1.ImportedImage) bool { return !strings.HasPrefix(one.Digest, prefix(text)) })
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return v1alpha1.ImportedImage{}, cli.Usage(fmt.Errorf("no imported image of GoldenImage %s has the digest or tag %q; %s", t.at, text, listed("there are", images)))
	}
	return v1alpha1.ImportedImage{}, cli.Usage(fmt.Errorf("%q is not one image of GoldenImage %s; %s", text, t.at, listed("it may be", matches)))
}

// prefix returns the text as the beginning of a digest; empty if it is none.
func prefix(text string) string {
	hex, with := strings.CutPrefix(text, algorithm)
	if !digits.MatchString(hex) || !with && len(hex) < shortestPrefix {
		return ""
	}
	return algorithm + hex
}

func listed(begin string, images []v1alpha1.ImportedImage) string {
	if len(images) == 0 {
		return "there is none yet"
	}
	var text strings.Builder
	text.WriteString(begin)
	for _, one := range images {
		text.WriteString("\n  " + titled(images, one.Digest))
	}
	return text.String()
}

// titled returns a digest with its tag, if it is that of one of the images.
func titled(images []v1alpha1.ImportedImage, digest string) string {
	for _, one := range images {
		if one.Digest == digest && one.Tag != "" {
			return fmt.Sprintf("%s (tag %s)", digest, one.Tag)
		}
	}
	return digest
}

func noImage(at machine.Reference) error {
	return cli.Usage(fmt.Errorf("GoldenImage %s has no image yet", at))
}

// channel returns a channel of the spec.
func (t *target) channel(image *v1alpha1.GoldenImage, name string) (*v1alpha1.GoldenImageChannel, error) {
	for i := range image.Spec.Channels {
		if image.Spec.Channels[i].Name == name {
			return &image.Spec.Channels[i], nil
		}
	}
	there := "it has none"
	if names := channelNames(image); len(names) > 0 {
		there = "it has " + strings.Join(names, ", ")
	}
	return nil, cli.Usage(fmt.Errorf("GoldenImage %s has no channel %q; %s", t.at, name, there))
}

func channelNames(image *v1alpha1.GoldenImage) (names []string) {
	for _, one := range image.Spec.Channels {
		names = append(names, one.Name)
	}
	return names
}

func manual(channel *v1alpha1.GoldenImageChannel) bool {
	return channel.Promote != nil && channel.Promote.Manual
}

// offerImages completes a digest of the history.
func offerImages(image *v1alpha1.GoldenImage) (offered []cobra.Completion) {
	for _, one := range newestFirst(image.Status.History) {
		offered = append(offered, cobra.CompletionWithDesc(one.Digest, one.Tag))
	}
	return offered
}

// offerManual completes a channel that images are promoted to.
func offerManual(image *v1alpha1.GoldenImage) (offered []cobra.Completion) {
	for i := range image.Spec.Channels {
		if one := &image.Spec.Channels[i]; manual(one) {
			offered = append(offered, one.Name)
		}
	}
	return offered
}
