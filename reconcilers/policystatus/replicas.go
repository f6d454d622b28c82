package policystatus

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	policycache "github.com/vmstencil/stencil/cache/policies"
)

const (
	// heartbeat is how often a replica repeats an unchanged entry. lifetime is how long an entry is valid after it was written.
	heartbeat = 25 * time.Minute
	lifetime  = time.Hour
	// A quarantine is repeated more often and is valid for a shorter time: a policy must not be reported as quarantined by a replica that
	// no longer exists.
	alarm         = time.Minute
	alarmLifetime = 3 * time.Minute
	// reaction is the minimum time between two writes of one entry.
	reaction = 2 * time.Second
)

// silent reports whether the entry of a replica is older than its lifetime.
func silent(replica *v1alpha1.PolicyReplica, now time.Time) bool {
	return now.Sub(replica.LastUpdateTime.Time) > lifetime
}

// alarming reports whether a replica has recently reported that the version with this digest is in quarantine.
func alarming(replica *v1alpha1.PolicyReplica, digest string, now time.Time) bool {
	return replica.Quarantined && replica.ActiveDigest == digest && now.Sub(replica.LastUpdateTime.Time) <= alarmLifetime
}

// entryOf returns the entry of a replica for a policy; nil if it has not evaluated it.
func entryOf(s *policycache.State, name string) *v1alpha1.PolicyReplica {
	if s.Active == nil || s.Statistics.Count == 0 && s.Quarantine == nil {
		return nil
	}
	return &v1alpha1.PolicyReplica{
		Name: name,
		PolicyEvaluations: v1alpha1.PolicyEvaluations{
			Count:           int64(s.Statistics.Count),
			P50Microseconds: s.Statistics.P50Microseconds,
			P99Microseconds: s.Statistics.P99Microseconds,
			Timeouts:        int64(s.Statistics.Timeouts),
			Errors:          int64(s.Statistics.Errors),
		},
		ActiveDigest: s.Active.Entry.Policy.Digest(),
		Quarantined:  s.Quarantine != nil,
	}
}

// due reports whether an entry must replace the stored one, which is nil if there is none. Entries are written only when they have changed
// enough, so that thousands of requests per second do not cause as many writes.
func due(stored, next *v1alpha1.PolicyReplica, now time.Time, interval time.Duration) bool {
	if next == nil {
		return stored != nil
	}
	if stored == nil {
		return true
	}
	age := now.Sub(stored.LastUpdateTime.Time)
	switch {
	case age < 0: // another clock
		return false
	case stored.Quarantined != next.Quarantined || stored.ActiveDigest != next.ActiveDigest:
		return age >= reaction
	case next.Quarantined && age >= alarm:
		return true
	case age < interval:
		return false
	case stored.Timeouts != next.Timeouts || stored.Errors != next.Errors:
		return true
	default:
		return apart(stored.Count, next.Count, 10) || apart(stored.P99Microseconds, next.P99Microseconds, 4) ||
			apart(stored.P50Microseconds, next.P50Microseconds, 4) || age >= heartbeat
	}
}

// apart reports whether two numbers differ by at least 1/part of the first.
func apart(a, b int64, part int64) bool {
	difference := max(a-b, b-a)
	return difference > 0 && difference >= a/part
}

// storedEntry returns the entry of a replica in a status; nil if there is none.
func storedEntry(status *v1alpha1.VirtualMachinePolicyStatus, name string) *v1alpha1.PolicyReplica {
	for i := range status.Replicas {
		if status.Replicas[i].Name == name {
			return &status.Replicas[i]
		}
	}
	return nil
}

// stamped returns a copy of the entry with the time of the write.
func stamped(entry *v1alpha1.PolicyReplica, now time.Time) v1alpha1.PolicyReplica {
	updated := *entry
	updated.LastUpdateTime = metav1.NewTime(now.Truncate(time.Second))
	return updated
}
