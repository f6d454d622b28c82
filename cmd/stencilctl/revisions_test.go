package main

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

const migrationAt = "/apis/stencil.kubevirt.io/v1alpha1/revisionmigrations/instancetypes"

// migration returns a RevisionMigration in JSON.
func migration(set ...func(*v1alpha1.RevisionMigration)) string {
	m := &v1alpha1.RevisionMigration{}
	m.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RevisionMigration"))
	m.Name, m.Generation, m.Spec.Mode = v1alpha1.RevisionMigrationName, 2, v1alpha1.RevisionMigrationReport
	for _, one := range set {
		one(m)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// counted sets the counts of a status with old copies.
func counted(old, migrated, skipped int32) func(*v1alpha1.RevisionMigration) {
	return func(m *v1alpha1.RevisionMigration) {
		copies, zero := int32(12), int32(0)
		m.Status.Copies, m.Status.Old, m.Status.Migrated, m.Status.Skipped = &copies, &old, &migrated, &skipped
		m.Status.RolledBack, m.Status.Healed, m.Status.Failed, m.Status.Orphans = &zero, &zero, &zero, &zero
		m.Status.Classes = []v1alpha1.RevisionClass{{Class: "Undecodable", Count: 1}, {Version: "v1alpha2", Class: "OldObject", Count: old}, {Version: "v1beta1", Class: "Current", Count: 11 - old}}
		m.Status.Duplicates = &v1alpha1.RevisionDuplicates{Count: 2, Bytes: 640}
	}
}

func found(kind v1alpha1.RevisionFindingKind, object, message string) func(*v1alpha1.RevisionMigration) {
	return func(m *v1alpha1.RevisionMigration) {
		m.Status.Findings = append(m.Status.Findings, v1alpha1.RevisionFinding{Kind: kind, Namespace: "team-a", Object: object, Message: message})
	}
}

func migrationIs(kind string, status metav1.ConditionStatus, reason, message string) func(*v1alpha1.RevisionMigration) {
	return func(m *v1alpha1.RevisionMigration) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: m.Generation,
			LastTransitionTime: metav1.Date(2026, 11, 1, 8, 30, 0, 0, time.UTC)})
	}
}

func TestRevisions(t *testing.T) {
	t.Chdir("testdata")
	old := migration(counted(4, 0, 0), found(v1alpha1.RevisionDangling, "VirtualMachine web", "ControllerRevision web-u1 does not exist"),
		migrationIs("NoOldVersions", metav1.ConditionFalse, "OldVersionsStored", "5 of 12 stored copies are not in version v1beta1 with its labels."))
	running := migration(counted(4, 3, 0), migrationIs("Complete", metav1.ConditionFalse, "Running", "Copies are being processed in mode Apply."))
	done := migration(counted(0, 4, 0), migrationIs("Complete", metav1.ConditionTrue, "Complete", "Mode Apply was carried out."),
		migrationIs("NoOldVersions", metav1.ConditionTrue, "AllCurrent", "All 12 stored copies are in version v1beta1; backups are not counted."))
	skipping := migration(counted(1, 3, 1), found(v1alpha1.RevisionSkipped, "ControllerRevision db-u1", "it has finalizers"),
		migrationIs("Complete", metav1.ConditionFalse, "Skipped", "1 copies are skipped."))
	notPermitted := migration(counted(4, 0, 0), migrationIs("Complete", metav1.ConditionFalse, "NotPermitted", "Mode Apply is not permitted: the chart's value revisions.write is false."))
	before := migration(func(m *v1alpha1.RevisionMigration) { m.Generation = 1 }, migrationIs("Complete", metav1.ConditionTrue, "Complete", "Mode Report was carried out."))
	get := func(responses ...string) map[string][]string {
		return map[string][]string{"GET " + migrationAt: responses, "PATCH " + migrationAt: {migration()}}
	}
	for name, tc := range map[string]struct {
		line    string
		answers map[string][]string
	}{
		"report, old versions":    {"report", get(old)},
		"report, none":            {"report", get(done)},
		"report, as JSON":         {"report -o json", get(done)},
		"report, not there":       {"report", nil},
		"report, forbidden":       {"report", map[string][]string{"GET " + migrationAt: {respondWithError(403, "Forbidden", "ada cannot get it")}}},
		"plan":                    {"plan --poll-interval 1ms", get(before, done)},
		"apply":                   {"apply --poll-interval 1ms", get(before, running, done)},
		"apply, limited":          {"apply --namespaces team-a,team-b -l wave=1 --rate 50 --wait=false", get(before)},
		"apply, skipped":          {"apply --poll-interval 1ms", get(running, skipping)},
		"apply, not permitted":    {"apply --poll-interval 1ms", get(notPermitted)},
		"apply, too late":         {"apply --poll-interval 1h --timeout 1s", get(running)},
		"apply, no selector":      {"apply -l a=b=c", nil},
		"apply, a negative rate":  {"apply --rate -1", nil},
		"apply, no time":          {"apply --timeout 0s", nil},
		"apply, denied":           {"apply", map[string][]string{"PATCH " + migrationAt: {respondWithError(403, "Forbidden", "ada cannot patch it")}}},
		"rollback":                {"rollback --poll-interval 1ms -o yaml", get(done)},
		"rollback, further words": {"rollback web", nil},
	} {
		t.Run(name, func(t *testing.T) { golden(t, "revisions "+name, runInCluster(t, "revisions "+tc.line, tc.answers)) })
	}
}
