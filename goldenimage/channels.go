package goldenimage

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// channels decides which image each channel stands for.
func (d *decision) channels() {
	before := d.plan.Status.Channels
	d.plan.Status.Channels = nil
	for _, channel := range d.image.Spec.Channels {
		for _, a := range d.arches {
			c := v1alpha1.GoldenImageChannelStatus{Name: channel.Name, Architecture: a.Name, DataSource: join(base(d.image), channel.Name, a.Name)}
			told := ""
			for _, one := range before {
				if one.Name == c.Name && one.Architecture == c.Architecture {
					c.Tested, told = one.Tested, one.Problem
					if d.find(a.Name, one.Digest) != nil {
						c.Digest = one.Digest
					}
				}
			}
			stood := c.Digest
			d.follow(&channel, a, &c)
			d.test(&channel, a, &c, stood)
			if c.Digest != stood {
				image := d.find(a.Name, c.Digest)
				d.plan.Events = append(d.plan.Events, Event{Reason: EventChannel, Volume: image.Volume, Message: fmt.Sprintf(
					"channel %s: DataSource %s stands for %s%s", c.Name, c.DataSource, c.Digest, ofTag(image.Tag))})
			}
			problem := fmt.Sprintf("channel %s: %s", c.Name, c.Problem)
			switch {
			case c.Problem == "":
			case strings.HasPrefix(c.Problem, testProblem):
				d.failed = append(d.failed, problem)
				if c.Problem != told {
					d.event(true, EventTest, "%s", problem)
				}
			default:
				d.problems = append(d.problems, problem)
			}
			d.plan.Status.Channels = append(d.plan.Status.Channels, c)
		}
	}
}

const (
	// testProblem begins the problem of a channel whose image fails its test.
	testProblem = "the test of "
	// TestInterval is the delay until a test that failed is repeated, unless its template changes before.
	TestInterval = 5 * time.Minute
)

// test leaves a channel where it stood until the image that it is to take has passed its test.
func (d *decision) test(channel *v1alpha1.GoldenImageChannel, a *architecture, c *v1alpha1.GoldenImageChannelStatus, stood string) {
	if channel.Promote == nil || channel.Promote.Test == nil {
		c.Tested = ""
		return
	}
	if c.Digest == stood || c.Digest == c.Tested {
		return
	}
	candidate := c.Digest
	test := Test{channel.Promote.Test.TemplateRef.Name, a.Name, candidate}
	result, made := d.Tests[test]
	switch {
	case !made:
		d.plan.Tests = append(d.plan.Tests, test)
	case result.Accepted:
		c.Tested = candidate
		return
	default:
		c.Problem = testProblem + candidate + " failed: " + result.Reason
		d.again(d.Now.Add(TestInterval))
	}
	c.Digest, c.Next, c.NextTime = stood, candidate, nil
}

// follow sets the digest that a channel stands for, if that changes, and what is next.
func (d *decision) follow(channel *v1alpha1.GoldenImageChannel, a *architecture, c *v1alpha1.GoldenImageChannelStatus) {
	take := func(digest string) {
		image := d.match(a.Name, digest)
		if image == nil {
			c.Problem = fmt.Sprintf("the volume of %s does not exist: pin one of status.history", digest)
			if a.Name != "" {
				c.Problem = fmt.Sprintf("%s has no image for %s whose volume exists: pin one of status.history", digest, a.Name)
			}
			return
		}
		if !d.trusted(image.Digest) {
			c.Problem = fmt.Sprintf("the signature of %s was not verified, which spec.verify requires", digest)
			return
		}
		c.Digest = image.Digest
	}
	switch {
	case channel.Digest != "":
		take(channel.Digest)
	case a.Current == nil || !d.trusted(a.Current.Digest):
	case channel.Promote == nil || c.Digest == "":
		c.Digest = a.Current.Digest
	case channel.Promote.Manual:
		if digest := d.image.Annotations[v1alpha1.AnnotationPromotePrefix+channel.Name]; digest != "" {
			take(digest)
		}
		if c.Digest != a.Current.Digest {
			c.Next = a.Current.Digest
		}
	case channel.Promote.After != nil:
		d.promote(channel.Promote.After.Duration, a, c)
	default:
		c.Digest = a.Current.Digest
	}
}

// promote takes the newest image that has been ready for long enough. While the image is pinned, which withdraws newer ones, only that one counts.
func (d *decision) promote(after time.Duration, a *architecture, c *v1alpha1.GoldenImageChannelStatus) {
	stood := d.find(a.Name, c.Digest)
	var next *v1alpha1.ImportedImage
	for i := range d.plan.Status.History {
		image := &d.plan.Status.History[i]
		switch {
		case image.Architecture != a.Name || image.Digest == c.Digest || !d.trusted(image.Digest):
		case d.image.Spec.Digest != "" && image.Digest != a.Current.Digest:
		case d.image.Spec.Digest == "" && !image.ImportedAt.After(stood.ImportedAt.Time):
		case !image.ImportedAt.Add(after).After(d.Now):
			if ready := d.find(a.Name, c.Digest); ready == stood || image.ImportedAt.After(ready.ImportedAt.Time) {
				c.Digest = image.Digest
			}
		case next == nil || image.ImportedAt.Before(&next.ImportedAt):
			next = image
		}
	}
	if next != nil {
		at := metav1.NewTime(next.ImportedAt.Add(after))
		c.Next, c.NextTime = next.Digest, &at
		d.again(at.Time)
	}
}

// standChannels writes the DataSources of the channels.
func (d *decision) standChannels() {
	for _, c := range d.plan.Status.Channels {
		image := d.find(c.Architecture, c.Digest)
		if image == nil {
			continue
		}
		d.stand(c.DataSource, c.Architecture, standsFor(d.image.Namespace, image), image)
	}
}

// standsFor returns the source of a DataSource that stands for an image.
func standsFor(namespace string, image *v1alpha1.ImportedImage) map[string]any {
	kind := "pvc"
	if image.Snapshot {
		kind = "snapshot"
	}
	return map[string]any{kind: map[string]any{"namespace": namespace, "name": image.Volume}}
}
