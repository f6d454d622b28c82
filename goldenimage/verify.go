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

// Unverified returns the digests whose signatures are to be looked for in a check that has found images: those that could be imported, and those
// that were. A signature that was verified once with the same keys is not verified again.
func Unverified(image *v1alpha1.GoldenImage, found []Found) []string {
	var digests []string
	for _, one := range found {
		digests = append(digests, one.Digest)
	}
	if image.Spec.Digest != "" {
		digests = append(digests, image.Spec.Digest)
	}
	for _, one := range image.Status.History {
		digests = append(digests, one.Digest)
	}
	slices.Sort(digests)
	return slices.DeleteFunc(slices.Compact(digests), func(digest string) bool { return Verified(image, digest) })
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
	used := Unverified(&v1alpha1.GoldenImage{Spec: d.image.Spec, Status: v1alpha1.GoldenImageStatus{History: status.History}}, nil)
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
