package revisions

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/revision"
)

// describe returns the counts and findings of a pass.
func describe(done *result) v1alpha1.RevisionMigrationStatus {
	status := v1alpha1.RevisionMigrationStatus{
		Copies: count(len(done.entries)), Backups: count(len(done.backups) - done.expired), Migrated: count(done.migrated), RolledBack: count(done.rolledBack),
		Healed: count(done.healed), Skipped: count(len(done.skips)), Failed: count(len(done.failures)),
		Dangling: count(len(done.dangling)), Mismatched: count(len(done.mismatched)), Unpinned: count(len(done.unpinned)),
		Duplicates: duplicates(done.entries), Classes: classes(done.entries),
	}
	status.Old, status.Orphans = count(number(done.entries, (*entry).old)), count(number(done.entries, (*entry).orphan))
	for _, list := range []struct {
		kind     v1alpha1.RevisionFindingKind
		findings []finding
	}{
		{v1alpha1.RevisionSkipped, done.skips},
		{v1alpha1.RevisionFailed, slices.Concat(done.failures, done.unread)},
		{v1alpha1.RevisionDangling, done.dangling},
		{v1alpha1.RevisionMismatched, done.mismatched},
		{v1alpha1.RevisionUnpinned, done.unpinned},
	} {
		slices.SortFunc(list.findings, compareFindings)
		for _, f := range list.findings[:min(len(list.findings), v1alpha1.MaxRevisionFindings)] {
			status.Findings = append(status.Findings, v1alpha1.RevisionFinding{Kind: list.kind, Namespace: f.namespace, Object: f.object, Message: excerpt.Of(f.message, maximumNote)})
		}
	}
	return status
}

// number returns how many copies are so.
func number(entries []*entry, is func(*entry) bool) int {
	n := 0
	for _, e := range entries {
		if is(e) {
			n++
		}
	}
	return n
}

func count(n int) *int32 {
	counted := int32(n)
	return &counted
}

// classes counts copies by version and class.
func classes(entries []*entry) []v1alpha1.RevisionClass {
	counts := map[v1alpha1.RevisionClass]int32{}
	for _, e := range entries {
		counts[v1alpha1.RevisionClass{Version: string(e.version), Class: string(e.class)}]++
	}
	var all []v1alpha1.RevisionClass
	for key, n := range counts {
		key.Count = n
		all = append(all, key)
	}
	slices.SortFunc(all, func(a, b v1alpha1.RevisionClass) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Class, b.Class))
	})
	return all
}

// duplicates counts copies of the same generation of the same object in the same version.
func duplicates(entries []*entry) *v1alpha1.RevisionDuplicates {
	type key struct {
		uid        string
		generation int64
		version    revision.Version
	}
	seen := map[key]bool{}
	var found v1alpha1.RevisionDuplicates
	for _, e := range entries {
		k := key{e.of.UID, e.of.Generation, e.version}
		if k.uid == "" {
			continue
		}
		if seen[k] {
			found.Count++
			found.Bytes += int64(e.bytes)
		}
		seen[k] = true
	}
	return &found
}

// noOldVersions is the proof that the old versions of the API can be removed.
func noOldVersions(done *result) metav1.Condition {
	old := number(done.entries, (*entry).old)
	condition := metav1.Condition{Type: v1alpha1.ConditionNoOldVersions, Status: metav1.ConditionFalse}
	switch {
	case old > 0:
		condition.Reason, condition.Message = v1alpha1.ReasonOldVersionsStored, fmt.Sprintf("%d of %d stored copies are not in version %s with its labels.", old, len(done.entries), revision.Target)
	case len(done.unread) > 0:
		condition.Reason, condition.Message = v1alpha1.ReasonNotReadable, fmt.Sprintf("The references of %d objects cannot be read.", len(done.unread))
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllCurrent
		condition.Message = fmt.Sprintf("All %d stored copies are in version %s; backups are not counted.", len(done.entries), revision.Target)
	}
	return condition
}

// complete reports whether the mode was carried out.
func complete(wanted v1alpha1.RevisionMigrationMode, s settings, done *result) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionPassComplete, Status: metav1.ConditionFalse}
	switch {
	case wanted != "" && wanted != s.mode:
		condition.Reason, condition.Message = v1alpha1.ReasonNotPermitted, fmt.Sprintf("Mode %s is not permitted: the chart's value revisions.write is false.", wanted)
	case len(done.failures) > 0:
		condition.Reason, condition.Message = v1alpha1.ReasonPassFailed, fmt.Sprintf("%d copies could not be processed; it is tried again.", len(done.failures))
	case len(done.skips) > 0:
		condition.Reason, condition.Message = v1alpha1.ReasonSkipped, fmt.Sprintf("%d copies are skipped.", len(done.skips))
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, v1alpha1.ReasonPassComplete, fmt.Sprintf("Mode %s was carried out.", s.mode)
	}
	return condition
}

func compareRevisionFindings(a, b v1alpha1.RevisionFinding) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
}
