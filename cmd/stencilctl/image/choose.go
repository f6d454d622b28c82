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

// shortestPrefix is the number of digits that a digest without algorithm needs, so that a version is not read as one.
const shortestPrefix = 6

var (
	wholeDigest = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|version:[0-9a-f]{64}|uid:[0-9a-f-]{36})$`)
	digits      = regexp.MustCompile(`^[0-9a-f][0-9a-f-]*$`)
)

// imported returns the images that one digest can name, newest first. With several architectures these are the indexes for which every architecture
// has an image, each with the time of the last import of one.
func imported(image *v1alpha1.GoldenImage) []v1alpha1.ImportedImage {
	images := newestFirst(image.Status.History)
	arches := image.Spec.Architectures
	if len(arches) <= 1 {
		architecture := strings.Join(arches, "")
		return slices.DeleteFunc(images, func(one v1alpha1.ImportedImage) bool { return one.Architecture != architecture })
	}
	var indexes []v1alpha1.ImportedImage
	for _, one := range images {
		for i, index := range one.Indexes {
			at := slices.IndexFunc(indexes, func(other v1alpha1.ImportedImage) bool { return other.Digest == index })
			if at < 0 && complete(images, arches, index) {
				at = len(indexes)
				indexes = append(indexes, v1alpha1.ImportedImage{Digest: index, ImportedAt: one.ImportedAt})
			}
			// An image has the tag of the first index under which it was found, which is the last of the list.
			if at >= 0 && i == len(one.Indexes)-1 {
				indexes[at].Tag = one.Tag
			}
		}
	}
	return indexes
}

// complete reports whether there is an image of an index for each architecture.
func complete(images []v1alpha1.ImportedImage, arches []string, index string) bool {
	return !slices.ContainsFunc(arches, func(architecture string) bool {
		return !slices.ContainsFunc(images, func(one v1alpha1.ImportedImage) bool {
			return one.Architecture == architecture && slices.Contains(one.Indexes, index)
		})
	})
}

// standing returns the digests, those of imported, for which the DataSource stands, or that of a channel; several if an image has several indexes,
// and none while the architectures stand for images of different indexes.
func standing(image *v1alpha1.GoldenImage, channel string) []string {
	stands := map[string]string{}
	for _, a := range image.Status.Architectures {
		if channel == "" && a.Current != nil {
			stands[a.Name] = a.Current.Digest
		}
	}
	for _, c := range image.Status.Channels {
		if c.Name == channel {
			stands[c.Architecture] = c.Digest
		}
	}
	arches := image.Spec.Architectures
	if len(arches) <= 1 {
		if digest := stands[strings.Join(arches, "")]; digest != "" {
			return []string{digest}
		}
		return nil
	}
	current := slices.DeleteFunc(slices.Clone(image.Status.History), func(one v1alpha1.ImportedImage) bool { return stands[one.Architecture] != one.Digest })
	var digests []string
	for _, one := range imported(image) {
		if complete(current, arches, one.Digest) {
			digests = append(digests, one.Digest)
		}
	}
	return digests
}

// choose returns the one of the images with this tag, or with a digest that begins so. Other images that match are an error, which lists what there is.
func (t *target) choose(images []v1alpha1.ImportedImage, text string) (v1alpha1.ImportedImage, error) {
	matches := slices.DeleteFunc(slices.Clone(images), func(one v1alpha1.ImportedImage) bool { return one.Tag != text })
	if len(matches) == 0 {
		matches = slices.DeleteFunc(slices.Clone(images), func(one v1alpha1.ImportedImage) bool { return !begins(one.Digest, text) })
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return v1alpha1.ImportedImage{}, cli.Usage(fmt.Errorf("no imported image of GoldenImage %s has the digest or tag %q; %s", t.at, text, listed("there are", images)))
	}
	return v1alpha1.ImportedImage{}, cli.Usage(fmt.Errorf("%q is not one image of GoldenImage %s; %s", text, t.at, listed("it may be", matches)))
}

// begins reports whether a digest begins with a text, which may lack the algorithm.
func begins(digest, text string) bool {
	algorithm, hex, with := strings.Cut(text, ":")
	if !with {
		algorithm, hex = "", text
	}
	if !digits.MatchString(hex) || !with && len(hex) < shortestPrefix {
		return false
	}
	of, all, _ := strings.Cut(digest, ":")
	return strings.HasPrefix(all, hex) && (algorithm == "" || algorithm == of)
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

func noImage(at machine.Reference, image *v1alpha1.GoldenImage) error {
	if len(image.Spec.Architectures) <= 1 {
		return cli.Usage(fmt.Errorf("GoldenImage %s has no image yet", at))
	}
	return cli.Usage(fmt.Errorf("the architectures of GoldenImage %s do not stand for images of one index: name one; %s", at, listed("there are", imported(image))))
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
	for _, one := range imported(image) {
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
