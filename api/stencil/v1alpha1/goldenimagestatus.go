package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GoldenImageStatus is what was last observed of a GoldenImage.
type GoldenImageStatus struct {
	// ObservedGeneration is the generation that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are UpToDate, Importing, Adopted and Conflict, and Verified with spec.verify.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// DataSource is the name of the DataSource that stands for the image.
	//
	// +optional
	DataSource string `json:"dataSource,omitempty"`

	// Architectures are the images, in the order of spec.architectures; one without name if that is empty.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Architectures []GoldenImageArchitecture `json:"architectures,omitempty"`

	// Channels are the images that the channels stand for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Channels []GoldenImageChannelStatus `json:"channels,omitempty"`

	// History are the images that were imported and whose volumes exist, the newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=120
	History []ImportedImage `json:"history,omitempty"`

	// Usage is where the DataSources of the image are used. It may be some seconds old.
	//
	// +optional
	Usage *GoldenImageUsage `json:"usage,omitempty"`

	// LastCheckTime is the time of the last check of the source that succeeded.
	//
	// +optional
	LastCheckTime *metav1.Time `json:"lastCheckTime,omitempty"`

	// NextCheckTime is the time of the next check.
	//
	// +optional
	NextCheckTime *metav1.Time `json:"nextCheckTime,omitempty"`

	// CheckFailures is the number of checks that failed since the last one that succeeded.
	//
	// +optional
	CheckFailures int32 `json:"checkFailures,omitempty"`

	// CheckError is the error of the last check, if it failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	CheckError string `json:"checkError,omitempty"`

	// Refreshed is the value of the annotation stencil.kubevirt.io/refresh for which the source was last checked.
	//
	// +optional
	Refreshed string `json:"refreshed,omitempty"`

	// VerifiedDigests are the digests, of those that the source and the history have, for which a signature of spec.verify was verified.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=130
	VerifiedDigests []string `json:"verifiedDigests,omitempty"`

	// CheckedSource identifies the source that was last checked: another one is checked at once.
	//
	// +optional
	CheckedSource string `json:"checkedSource,omitempty"`
}

// GoldenImageUsage is where the DataSources of an image are used: all of them, those of channels and architectures too.
type GoldenImageUsage struct {
	// Templates is the number of templates with a disk from one of the DataSources.
	//
	// +required
	Templates int32 `json:"templates"`

	// VirtualMachines is the number of VirtualMachines with a disk whose dataVolumeTemplate names one of the DataSources. It does not exist if KubeVirt
	// is not installed.
	//
	// +optional
	VirtualMachines *int32 `json:"virtualMachines,omitempty"`
}

// GoldenImageArchitecture is the image of one architecture.
type GoldenImageArchitecture struct {
	// Name is the architecture; empty if the GoldenImage has none.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// DataSource is the name of its DataSource.
	//
	// +required
	DataSource string `json:"dataSource"`

	// Current is the image that the DataSource stands for.
	//
	// +optional
	Current *ImportedImage `json:"current,omitempty"`

	// Available is the newest image of the source.
	//
	// +optional
	Available *AvailableImage `json:"available,omitempty"`

	// Progress of the import that is going on, such as 42.0%.
	//
	// +optional
	Progress string `json:"progress,omitempty"`
}

// AvailableImage is an image that the source has.
type AvailableImage struct {
	// Digest of the image.
	//
	// +required
	Digest string `json:"digest"`

	// Index is the digest of the index that names the image for its architecture; empty if there is none.
	//
	// +optional
	Index string `json:"index,omitempty"`

	// Tag under which it was found.
	//
	// +optional
	Tag string `json:"tag,omitempty"`

	// Reference is the reference in a container registry under which an image of an image stream is pulled.
	//
	// +optional
	Reference string `json:"reference,omitempty"`

	// FoundAt is the time of the check that found it first.
	//
	// +required
	FoundAt metav1.Time `json:"foundAt"`
}

// ImportedImage is an image that was imported.
type ImportedImage struct {
	// Architecture of the image; empty if the GoldenImage has none.
	//
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// Digest of the image.
	//
	// +required
	Digest string `json:"digest"`

	// Indexes are the digests of the indexes under which it was found, the newest first. An image has several if another architecture was renewed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Indexes []string `json:"indexes,omitempty"`

	// Tag under which it was found.
	//
	// +optional
	Tag string `json:"tag,omitempty"`

	// Reference is the reference in a container registry under which an image of an image stream is pulled.
	//
	// +optional
	Reference string `json:"reference,omitempty"`

	// ImportedAt is the time at which the import was complete.
	//
	// +required
	ImportedAt metav1.Time `json:"importedAt"`

	// Volume is the name of the PersistentVolumeClaim or VolumeSnapshot.
	//
	// +required
	Volume string `json:"volume"`

	// Snapshot is set if the volume is a VolumeSnapshot.
	//
	// +optional
	Snapshot bool `json:"snapshot,omitempty"`
}

// GoldenImageChannelStatus is the image that a channel stands for.
type GoldenImageChannelStatus struct {
	// Name of the channel.
	//
	// +required
	Name string `json:"name"`

	// Architecture of the image; empty if the GoldenImage has none.
	//
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// DataSource is the name of its DataSource.
	//
	// +required
	DataSource string `json:"dataSource"`

	// Digest of the image; empty while there is none.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// Next is the digest of the image that it will stand for next.
	//
	// +optional
	Next string `json:"next,omitempty"`

	// NextTime is when it will, if that is known.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// Tested is the digest of the image that was last accepted in the test of promote.test.
	//
	// +optional
	Tested string `json:"tested,omitempty"`

	// Problem is the reason why the DataSource does not stand for the image that the spec requires.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// Types of the conditions of a GoldenImage.
const (
	// ConditionUpToDate is true while every DataSource stands for the newest image of the source, or for the pinned one, and none is stale.
	ConditionUpToDate = "UpToDate"
	// ConditionImporting is true while an image is being imported.
	ConditionImporting = "Importing"
	// ConditionAdopted is true while a DataSource that existed before the GoldenImage is taken over.
	ConditionAdopted = "Adopted"
	// ConditionConflict is true while an object of a needed name has another owner.
	ConditionConflict = "Conflict"
	// ConditionVerified is true while the newest image and those that DataSources stand for are signed as spec.verify requires. It is there with spec.verify only.
	ConditionVerified = "Verified"
)

// Labels and annotations of GoldenImages and of what is made for them.
const (
	// LabelGoldenImage on a DataSource, DataImportCron or kept volume is the name of the GoldenImage that it belongs to, in its namespace.
	LabelGoldenImage = "stencil.kubevirt.io/golden-image"
	// AnnotationGoldenImage on a DataSource is the name of the GoldenImage that keeps it fresh.
	AnnotationGoldenImage = "stencil.kubevirt.io/golden-image"
	// AnnotationImageDigest on a DataSource is the digest of the image that it stands for.
	AnnotationImageDigest = "stencil.kubevirt.io/digest"
	// AnnotationImageImportedAt on a DataSource is the time of the import of that image, by RFC 3339.
	AnnotationImageImportedAt = "stencil.kubevirt.io/imported-at"
	// AnnotationImageStaleAfter on a DataSource is the time at which that image is stale, by RFC 3339.
	AnnotationImageStaleAfter = "stencil.kubevirt.io/stale-after"
	// AnnotationPreviousSource on a DataSource that was taken over is its spec.source before, in JSON.
	AnnotationPreviousSource = "stencil.kubevirt.io/previous-source"
	// AnnotationRefresh on a GoldenImage checks the source once for each new value, such as the current time.
	AnnotationRefresh = "stencil.kubevirt.io/refresh"
	// AnnotationPromotePrefix, followed by the name of a channel with promote.manual, on a GoldenImage is the digest that the channel takes.
	AnnotationPromotePrefix = "stencil.kubevirt.io/promote-"
	// FinalizerGoldenImage on a GoldenImage is removed when its DataSources and images are given back or deleted, depending on spec.retention.
	FinalizerGoldenImage = "stencil.kubevirt.io/golden-image"
)
