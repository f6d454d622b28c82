package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/goldenimage"
)

// Defaults of the flags: an import copies a whole disk.
const (
	defaultTimeout  = 30 * time.Minute
	defaultTolerate = time.Minute
)

// following are the flags of commands that follow a GoldenImage to a result.
type following struct {
	cli.Following
	wait bool
	// tolerate is how long a problem may last that may pass: CDI tries again after most errors, and at first the status may be about an older import.
	tolerate time.Duration
}

func (f *following) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.wait, "wait", true, "wait for the result")
	f.Register(flags, defaultTimeout)
	flags.DurationVar(&f.tolerate, "tolerate", defaultTolerate, "how long an import may fail before the command does; CDI tries again")
}

func (f *following) check() error {
	if f.tolerate < 0 {
		return cli.Usage(errors.New("durations must be positive"))
	}
	return f.Check()
}

// result returns whether a GoldenImage is done, and the problem if that is not the wanted end. The problem of one that is not done may pass.
type result func(*v1alpha1.GoldenImage) (done bool, problem string)

// follow prints the conditions Importing and UpToDate as they change from those of an image, until there is a result.
func (t *target) follow(ctx context.Context, f following, image *v1alpha1.GoldenImage, end result) (*v1alpha1.GoldenImage, error) {
	since := time.Now()
	err := f.Follow(ctx, t.streams, qualified(t.at.Name), func() (bool, error) {
		before := image
		var err error
		if image, err = t.get(ctx); err != nil {
			return false, err
		}
		t.report(before, image)
		done, problem := end(image)
		if problem == "" {
			since = time.Now()
		}
		if problem != "" && (done || time.Since(since) >= f.tolerate) {
			fmt.Fprintf(t.streams.Err, "%s\n", problem)
			return false, cli.ErrFindings
		}
		return done, nil
	})
	return image, err
}

func (t *target) report(before, after *v1alpha1.GoldenImage) {
	for _, kind := range []string{v1alpha1.ConditionImporting, v1alpha1.ConditionUpToDate} {
		was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		if kind == v1alpha1.ConditionImporting && is.Status == metav1.ConditionFalse && was == nil {
			continue // nothing was being imported before, either
		}
		fmt.Fprintf(t.streams.Err, "%s %s (%s): %s\n", is.Type, is.Status, is.Reason, is.Message)
	}
}

// latest is the result of a check of the source for this value of the annotation refresh, and of the import that follows.
func latest(refresh string) result {
	return func(image *v1alpha1.GoldenImage) (bool, string) {
		condition := upToDate(image)
		if condition == nil {
			return false, ""
		}
		switch condition.Reason {
		case goldenimage.ReasonNotEnabled, goldenimage.ReasonCDINotServed, goldenimage.ReasonInvalid, goldenimage.ReasonSuspended:
			return true, condition.Message // the source is not checked
		}
		if image.Status.Refreshed != refresh {
			return false, ""
		}
		if image.Status.CheckError != "" {
			return true, image.Status.CheckError
		}
		return ended(condition)
	}
}

// ended returns whether the condition UpToDate is a result, and its message if it is not the one that was wanted.
func ended(condition *metav1.Condition) (done bool, problem string) {
	switch condition.Reason {
	case goldenimage.ReasonNotChecked, goldenimage.ReasonImporting, goldenimage.ReasonWriteFailed:
		return false, ""
	case goldenimage.ReasonImportFailed:
		return false, condition.Message
	}
	if condition.Status != metav1.ConditionTrue {
		return true, condition.Message
	}
	return true, ""
}

// upToDate returns the condition UpToDate of the current spec, nil if it was not observed yet.
func upToDate(image *v1alpha1.GoldenImage) *metav1.Condition {
	condition := meta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionUpToDate)
	if condition == nil || condition.ObservedGeneration < image.Generation {
		return nil
	}
	return condition
}
