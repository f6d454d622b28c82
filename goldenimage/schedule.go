package goldenimage

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"
	_ "time/tzdata" // Stencil's images have no time zones, and a schedule can begin with CRON_TZ=.

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const (
	// defaultCron and defaultWindow are the defaults of the API, for objects that were stored without them.
	defaultCron   = "0 */12 * * *"
	defaultWindow = 4 * time.Hour

	// Delays after a check that failed.
	shortestBackOff = time.Minute
	longestBackOff  = time.Hour
)

// Schedule is when one image is checked.
type Schedule struct {
	opens  cron.Schedule
	offset time.Duration
}

// NewSchedule returns the schedule of the image with this namespace and name. cluster is a stable identity of the cluster, such as the UID of the
// namespace kube-system, so that clusters do not check a registry at the same moment.
func NewSchedule(spec v1alpha1.GoldenImageSchedule, cluster, namespace, name string) (Schedule, error) {
	text := cmp.Or(spec.Cron, defaultCron)
	opens, err := cron.ParseStandard(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("spec.schedule.cron: %q: %w", text, err)
	}
	window := defaultWindow
	if spec.Window != nil {
		window = spec.Window.Duration
	}
	return Schedule{opens, offset(window, cluster, namespace, name)}, nil
}

// offset returns a time from 0 up to the window, in seconds, which the names determine evenly.
func offset(window time.Duration, names ...string) time.Duration {
	seconds := uint64(window / time.Second)
	if seconds == 0 {
		return 0
	}
	hash := fnv.New64a()
	for _, name := range names {
		// The separator occurs in no name.
		_, _ = hash.Write([]byte(name + "/"))
	}
	return time.Duration(mix(hash.Sum64())%seconds) * time.Second
}

// mix spreads the bits of a hash: names that differ in their last character only have nearby hashes by FNV. It is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Next returns the time of the first check after a time.
func (s Schedule) Next(after time.Time) time.Time {
	// The window may have opened before, and the time in it may be still to come.
	return s.opens.Next(after.UTC().Add(-s.offset)).Add(s.offset)
}

// backOff returns the time of the check after a number of failures, which is never later than the next of the schedule.
func (s Schedule) backOff(now time.Time, failures int32) metav1.Time {
	delay := longestBackOff
	if failures < 7 {
		delay = min(shortestBackOff<<(failures-1), longestBackOff)
	}
	next := now.Add(delay)
	if scheduled := s.Next(now); scheduled.Before(next) {
		next = scheduled
	}
	return metav1.NewTime(next.Truncate(time.Second))
}
