package goldenimage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Unverified returns the images whose signatures are to be looked for in a check that has found images: those that could be imported, and those
// that were. Each is its digest, followed by those of indexes that name it: the signature of one of them is enough. An image that was verified once
// with the same keys is not verified again.
func Unverified(image *v1alpha1.GoldenImage, found []Found) [][]string {
	var images [][]string
	add := func(digests ...string) {
		again := slices.ContainsFunc(images, func(one []string) bool { return one[0] == digests[0] })
		if digests[0] != "" && !again && !Verified(image, digests[0]) {
			images = append(images, slices.DeleteFunc(digests, func(digest string) bool { return digest == "" }))
		}
	}
	for _, one := range found {
		add(one.Digest, one.Index)
	}
	for _, one := range image.Status.History {
		add(append([]string{one.Digest}, one.Indexes...)...)
	}
	for _, digest := range Named(image, found, image.Spec.Digest) {
		add(digest)
	}
	return images
}

// Named returns the digests of the known images that a digest names, their own or that of an index; the digest itself if there are none.
func Named(image *v1alpha1.GoldenImage, found []Found, digest string) []string {
	var named []string
	for _, one := range found {
		if one.Digest == digest || one.Index == digest {
			named = append(named, one.Digest)
		}
	}
	for _, one := range image.Status.History {
		if one.Digest == digest || slices.Contains(one.Indexes, digest) {
			named = append(named, one.Digest)
		}
	}
	if len(named) == 0 {
		return []string{digest}
	}
	return named
}

// Verified reports whether a signature of an image was verified in an earlier check.
func Verified(image *v1alpha1.GoldenImage, digest string) bool {
	return image.Status.CheckedSource == SourceID(image) && slices.Contains(image.Status.VerifiedDigests, digest)
}

// verified writes the digests that are verified, of those that can be imported or were.
func (d *decision) verified(another bool) {
	status := &d.plan.Status
	if d.image.Spec.Verify == nil || another {
		status.VerifiedDigests = nil
	}
	if d.image.Spec.Verify == nil {
		return
	}
	digests := status.VerifiedDigests
	if d.Check != nil {
		digests = append(digests, d.Check.Verified...)
	}
	slices.Sort(digests)
	used := []string{d.image.Spec.Digest}
	for _, image := range status.History {
		used = append(used, image.Digest)
	}
	for _, a := range status.Architectures {
		if a.Available != nil {
			used = append(used, a.Available.Digest)
		}
	}
	status.VerifiedDigests = slices.DeleteFunc(slices.Compact(digests), func(digest string) bool { return !slices.Contains(used, digest) })
}

// trusted reports whether an image may be imported, and DataSources may be moved to it.
func (d *decision) trusted(digest string) bool {
	return d.image.Spec.Verify == nil || slices.Contains(d.plan.Status.VerifiedDigests, digest)
}

// conditionVerified sets the condition Verified.
func (d *decision) conditionVerified() {
	status := &d.plan.Status
	if d.image.Spec.Verify == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionVerified)
		return
	}
	var stands, unsigned []string
	about := func(dataSource, digest string) {
		switch {
		case digest == "":
		case d.trusted(digest):
			stands = append(stands, fmt.Sprintf("DataSource %s stands for %s, which is signed", dataSource, digest))
		default:
			unsigned = append(unsigned, fmt.Sprintf("DataSource %s stands for %s, whose signature was not verified", dataSource, digest))
		}
	}
	for _, a := range d.arches {
		if a.Current != nil {
			about(a.DataSource, a.Current.Digest)
		}
	}
	for _, c := range status.Channels {
		about(c.DataSource, c.Digest)
	}
	newest := d.Check != nil && errors.Is(d.Check.Err, ErrNotSigned) ||
		d.Check == nil && status.CheckError != "" && d.stored(v1alpha1.ConditionVerified) == ReasonNotSigned
	switch {
	case newest:
		d.set(v1alpha1.ConditionVerified, metav1.ConditionFalse, ReasonNotSigned, list(append([]string{status.CheckError}, unsigned...)))
	case len(unsigned) > 0:
		d.set(v1alpha1.ConditionVerified, metav1.ConditionFalse, ReasonNotVerified, list(unsigned))
	case len(stands) > 0:
		d.set(v1alpha1.ConditionVerified, metav1.ConditionTrue, ReasonSigned, list(stands))
	default:
		d.set(v1alpha1.ConditionVerified, metav1.ConditionUnknown, ReasonNotChecked, strings.TrimSpace("No image was imported yet. "+status.CheckError))
	}
}
