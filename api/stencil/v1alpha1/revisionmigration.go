package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RevisionMigrationName is the name of the only RevisionMigration.
const RevisionMigrationName = "instancetypes"

// RevisionMigration reports the copies of instance types and preferences that
// KubeVirt stores in ControllerRevisions, by version and class, and brings old ones
// to the version that KubeVirt reads. There is one, called instancetypes; Stencil's
// manager creates it in mode Report.
//
// +genclient
// +genclient:nonNamespaced
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=revmig
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'instancetypes'",message="the only RevisionMigration is called instancetypes"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Copies",type=integer,JSONPath=`.status.copies`
// +kubebuilder:printcolumn:name="Old",type=integer,JSONPath=`.status.old`
// +kubebuilder:printcolumn:name="Migrated",type=integer,JSONPath=`.status.migrated`
// +kubebuilder:printcolumn:name="Skipped",type=integer,JSONPath=`.status.skipped`
// +kubebuilder:printcolumn:name="NoOldVersions",type=string,JSONPath=`.status.conditions[?(@.type=="NoOldVersions")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RevisionMigration struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is what is to be done.
	//
	// +optional
	Spec RevisionMigrationSpec `json:"spec,omitempty,omitzero"`

	// Status is what was last found and done.
	//
	// +optional
	Status RevisionMigrationStatus `json:"status,omitempty,omitzero"`
}

// RevisionMigrationList is a list of RevisionMigrations.
//
// +kubebuilder:object:root=true
type RevisionMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []RevisionMigration `json:"items"`
}

// RevisionMigrationMode is what is done with old copies.
type RevisionMigrationMode string

// Modes of a RevisionMigration.
const (
	// RevisionMigrationReport counts and classifies copies.
	RevisionMigrationReport RevisionMigrationMode = "Report"

	// RevisionMigrationDryRun also creates every replacement in a dry run.
	RevisionMigrationDryRun RevisionMigrationMode = "DryRun"

	// RevisionMigrationApply replaces old copies.
	RevisionMigrationApply RevisionMigrationMode = "Apply"

	// RevisionMigrationRollback restores the replaced copies of which a backup exists.
	RevisionMigrationRollback RevisionMigrationMode = "Rollback"
)

// RevisionMigrationSpec is what is to be done, and where.
type RevisionMigrationSpec struct {
	// Mode is Report, DryRun, Apply or Rollback. The last three require that the chart's
	// value revisions.write permits them.
	//
	// +optional
	// +kubebuilder:validation:Enum=Report;DryRun;Apply;Rollback
	// +kubebuilder:default=Report
	Mode RevisionMigrationMode `json:"mode,omitempty"`

	// Namespaces limits DryRun, Apply and Rollback to these. If empty, all namespaces
	// are processed. The report is always about the whole cluster.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`

	// Selector limits DryRun, Apply and Rollback to copies whose owner, a
	// VirtualMachine or a VirtualMachineSnapshot, has these labels.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Rate is the maximum number of copies that are processed per second; 0 is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=10
	Rate *int32 `json:"rate,omitempty"`

	// BackupTTL is how long backups of replaced copies are retained, and Rollback is
	// possible.
	//
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	BackupTTL *metav1.Duration `json:"backupTTL,omitempty"`
}

// ConditionNoOldVersions is the type of the condition of a RevisionMigration that is
// true while every stored copy in the whole cluster has the target version and its
// labels: nothing needs the old versions any more.
const ConditionNoOldVersions = "NoOldVersions"

// Reasons of the condition NoOldVersions.
const (
	// ReasonAllCurrent is the reason while the condition is true.
	ReasonAllCurrent = "AllCurrent"

	// ReasonOldVersionsStored is the reason while old copies are stored.
	ReasonOldVersionsStored = "OldVersionsStored"

	// ReasonNotReadable is the reason while some copies or references cannot be read.
	ReasonNotReadable = "NotReadable"
)

// ConditionPassComplete is the type of the condition of a RevisionMigration that is
// true when the mode of its current generation has been carried out: nothing failed,
// and nothing that could be processed is left.
const ConditionPassComplete = "Complete"

// Reasons of the condition Complete.
const (
	// ReasonPassComplete is the reason while the condition is true.
	ReasonPassComplete = "Complete"

	// ReasonSkipped is the reason while some copies are skipped.
	ReasonSkipped = "Skipped"

	// ReasonPassFailed is the reason when some copies could not be processed.
	ReasonPassFailed = "Failed"

	// ReasonPassRunning is the reason while copies are being processed.
	ReasonPassRunning = "Running"

	// ReasonNotPermitted is the reason when the chart's values do not permit the mode.
	ReasonNotPermitted = "NotPermitted"
)

// MaxRevisionFindings is the maximum number of objects that each list in the status
// of a RevisionMigration has. The counts are not limited.
const MaxRevisionFindings = 20

// RevisionMigrationStatus is what was last found and done.
type RevisionMigrationStatus struct {
	// ObservedGeneration is the generation that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are NoOldVersions and Complete.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Target is the version that copies are brought to.
	//
	// +optional
	Target string `json:"target,omitempty"`

	// LastTime is the end of the last pass.
	//
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`

	// Copies is the number of stored copies.
	//
	// +optional
	Copies *int32 `json:"copies,omitempty"`

	// Old is the number of copies that are not current.
	//
	// +optional
	Old *int32 `json:"old,omitempty"`

	// Classes are the numbers of copies by version and class.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Classes []RevisionClass `json:"classes,omitempty"`

	// Migrated is the number of copies that the last pass has replaced or labelled, or
	// would have in a dry run.
	//
	// +optional
	Migrated *int32 `json:"migrated,omitempty"`

	// RolledBack is the number of originals that the last pass has restored.
	//
	// +optional
	RolledBack *int32 `json:"rolledBack,omitempty"`

	// Healed is the number of interrupted replacements that the last pass has completed.
	//
	// +optional
	Healed *int32 `json:"healed,omitempty"`

	// Skipped is the number of old copies that the last pass left as they are.
	//
	// +optional
	Skipped *int32 `json:"skipped,omitempty"`

	// Failed is the number of copies that could not be processed.
	//
	// +optional
	Failed *int32 `json:"failed,omitempty"`

	// Backups is the number of stored backups.
	//
	// +optional
	Backups *int32 `json:"backups,omitempty"`

	// Orphans is the number of copies that nothing refers to.
	//
	// +optional
	Orphans *int32 `json:"orphans,omitempty"`

	// Dangling is the number of references to copies that do not exist.
	//
	// +optional
	Dangling *int32 `json:"dangling,omitempty"`

	// Mismatched is the number of references of which spec and status differ.
	//
	// +optional
	Mismatched *int32 `json:"mismatched,omitempty"`

	// Unpinned is the number of references of snapshots without a copy. A
	// VirtualMachine that is restored from them has the live object.
	//
	// +optional
	Unpinned *int32 `json:"unpinned,omitempty"`

	// Duplicates are copies of the same generation of the same object.
	//
	// +optional
	Duplicates *RevisionDuplicates `json:"duplicates,omitempty"`

	// Findings lists the first skipped and failed copies, and dangling, mismatched and
	// unpinned references.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Findings []RevisionFinding `json:"findings,omitempty"`
}

// RevisionClass is a number of copies.
type RevisionClass struct {
	// Version of the stored objects; empty if they cannot be decoded.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Class is Current, Unlabelled, OldObject, SpecRevision or Undecodable.
	//
	// +required
	Class string `json:"class"`

	// Count is the number of copies.
	//
	// +required
	Count int32 `json:"count"`
}

// RevisionDuplicates are copies of the same generation of the same object. They are
// not merged.
type RevisionDuplicates struct {
	// Count is the number of copies beside the first of each generation.
	//
	// +optional
	Count int32 `json:"count,omitempty"`

	// Bytes is the size of their data.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
}

// RevisionFindingKind is the kind of a finding.
type RevisionFindingKind string

// Kinds of findings.
const (
	RevisionSkipped    RevisionFindingKind = "Skipped"
	RevisionFailed     RevisionFindingKind = "Failed"
	RevisionDangling   RevisionFindingKind = "Dangling"
	RevisionMismatched RevisionFindingKind = "Mismatched"
	RevisionUnpinned   RevisionFindingKind = "Unpinned"
)

// RevisionFinding is an object with what was found about it.
type RevisionFinding struct {
	// Kind is Skipped, Failed, Dangling, Mismatched or Unpinned.
	//
	// +required
	Kind RevisionFindingKind `json:"kind"`

	// Namespace of the object.
	//
	// +required
	Namespace string `json:"namespace"`

	// Object is its kind and name.
	//
	// +required
	Object string `json:"object"`

	// Message describes what was found.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}
