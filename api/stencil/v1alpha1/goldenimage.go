package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GoldenImage keeps a boot image fresh under a DataSource: the newest image of its source is imported, the DataSource then stands for
// it, and older ones are kept for channels and for going back.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Namespaced,shortName=gimg
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= (has(self.spec.dataSource) ? 63 : 40)",message="metadata.name may have 63 characters with spec.dataSource, and 40 without, because names of volumes and labels contain it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.source.pvc) || self.spec.source.pvc.name != (has(self.spec.dataSource) ? self.spec.dataSource : self.metadata.name)",message="the claim must have another name than the DataSource, which stands for a claim of its name",fieldPath=".spec.source.pvc.name"
// +kubebuilder:printcolumn:name="DataSource",type=string,JSONPath=`.status.dataSource`
// +kubebuilder:printcolumn:name="Tag",type=string,JSONPath=`.status.architectures[0].current.tag`
// +kubebuilder:printcolumn:name="Imported",type=date,JSONPath=`.status.architectures[0].current.importedAt`
// +kubebuilder:printcolumn:name="UpToDate",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="UpToDate")].reason`
// +kubebuilder:printcolumn:name="Templates",type=integer,JSONPath=`.status.usage.templates`,priority=1
// +kubebuilder:printcolumn:name="VMs",type=integer,JSONPath=`.status.usage.virtualMachines`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GoldenImage struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// Spec is the image, and how it is kept fresh.
	//
	// +required
	Spec GoldenImageSpec `json:"spec"`

	// Status is what was last observed.
	//
	// +optional
	Status GoldenImageStatus `json:"status,omitempty,omitzero"`
}

// GoldenImageList is a list of GoldenImages.
//
// +kubebuilder:object:root=true
type GoldenImageList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty,omitzero"`

	Items []GoldenImage `json:"items"`
}

// GoldenImageSpec is an image, and how it is kept fresh.
//
// +kubebuilder:validation:XValidation:rule="!has(self.architectures) || size(self.architectures) <= 1 || has(self.source.registry) && has(self.source.registry.url)",message="this source has one image: make one GoldenImage per architecture",fieldPath=".architectures"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.source.registry) && has(self.source.registry.url)",message="only images of source.registry.url have signatures",fieldPath=".verify"
// +kubebuilder:validation:XValidation:rule="has(self.dataSource) == has(oldSelf.dataSource)",message="dataSource cannot be changed: create another GoldenImage",fieldPath=".dataSource"
type GoldenImageSpec struct {
	// Source is where the image comes from.
	//
	// +required
	Source GoldenImageSource `json:"source"`

	// Architectures are those that the image is imported for, as Go names them: amd64, arm64, s390x. Each has a DataSource
	// NAME-ARCHITECTURE, and the DataSource NAME stands for the first. Without architectures there is only the DataSource NAME, for the
	// image that the registry has for the architecture of the node that imports it.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=amd64;arm64;s390x;ppc64le
	Architectures []string `json:"architectures,omitempty"`

	// Schedule is when the source is checked for a newer image.
	//
	// +optional
	// +kubebuilder:default={}
	Schedule GoldenImageSchedule `json:"schedule,omitempty,omitzero"`

	// Storage is the storage of each imported image.
	//
	// +required
	Storage GoldenImageStorage `json:"storage"`

	// ImportsToKeep is the number of images that are kept per architecture, the current one among them. Images that channels stand for, and
	// those that are being cloned from, are kept besides.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	ImportsToKeep int32 `json:"importsToKeep,omitempty"`

	// Retention is what happens to DataSources and imported images that were made for this GoldenImage when it is deleted.
	//
	// +optional
	// +kubebuilder:default=Keep
	Retention GoldenImageRetention `json:"retention,omitempty"`

	// DataSource is the name of the DataSource. The default is the name of the GoldenImage.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="dataSource cannot be changed: create another GoldenImage"
	DataSource string `json:"dataSource,omitempty"`

	// Digest pins the image: this one is imported, if it is not, and no newer one. It is how an image goes back to an older one. It is sha256:HEX of an
	// image in a registry; sha256:HEX or sha512:HEX, the checksum of a file; version:HEX of a file without checksum; or uid:UUID of a claim. The
	// digest of an index (a manifest for several platforms) pins each architecture to the image of that index. With several architectures, and of
	// a source that is no registry, the image must be in status.history or the newest of the source.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|version:[0-9a-f]{64}|uid:[0-9a-f-]{36})$`
	Digest string `json:"digest,omitempty"`

	// Channels are further DataSources, NAME-CHANNEL, that follow the image later or are pinned to one.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Channels []GoldenImageChannel `json:"channels,omitempty"`

	// Defaults are written to the labels of the DataSources by which KubeVirt and consoles infer an instance type and a preference.
	//
	// +optional
	Defaults GoldenImageDefaults `json:"defaults,omitempty,omitzero"`

	// StaleAfter is the age at which the image is stale: the condition UpToDate is false then, and templates that boot from it have the
	// condition BootSourceStale. The age counts from the import. Without it, an image is never stale.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="staleAfter must be at least 1s"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`

	// Adopt specifies whether a DataSource of that name that a user or another program made is taken over. Never leaves it alone and imports nothing.
	// IfNotReady takes it over unless it is ready. Always takes it over. What it stood for before is restored when the GoldenImage is deleted. A DataSource
	// of another operator or of another DataImportCron is never taken over.
	//
	// +optional
	// +kubebuilder:default=Never
	Adopt GoldenImageAdoption `json:"adopt,omitempty"`

	// Verify imports only images that are signed. What was imported before stays, and the condition Verified is false while a DataSource stands
	// for an image whose signature was not verified.
	//
	// +optional
	Verify *GoldenImageVerification `json:"verify,omitempty"`

	// Suspended stops checks and imports. What was imported stays.
	//
	// +optional
	Suspended bool `json:"suspended,omitempty"`
}

// GoldenImageSchedule is when a source is checked.
type GoldenImageSchedule struct {
	// Cron is when the window for a check opens: minute, hour, day of month, month and day of week, in UTC.
	//
	// +optional
	// +kubebuilder:default="0 */12 * * *"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Cron string `json:"cron,omitempty"`

	// Window is how long the window is open. Each GoldenImage is checked at its own time in the window, which namespace, name and cluster determine, so
	// that many are not checked at once. 0s checks when the window opens.
	//
	// +optional
	// +kubebuilder:default="4h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="window must be 0s to 168h"
	Window *metav1.Duration `json:"window,omitempty"`
}

// GoldenImageStorage is the storage of an imported image.
type GoldenImageStorage struct {
	// Size is the size of the volume.
	//
	// +required
	Size resource.Quantity `json:"size"`

	// StorageClassName is the name of the StorageClass. The default is the one that CDI chooses.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessModes of the volume. CDI chooses them by the StorageClass if there are none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=ReadWriteOnce;ReadOnlyMany;ReadWriteMany;ReadWriteOncePod
	AccessModes []string `json:"accessModes,omitempty"`
}

// GoldenImageRetention is what happens to what was made for a GoldenImage when it is deleted.
//
// +kubebuilder:validation:Enum=Keep;Delete
type GoldenImageRetention string

const (
	// RetentionKeep keeps DataSources and imported images. It is the default.
	RetentionKeep GoldenImageRetention = "Keep"
	// RetentionDelete deletes the DataSources that were made for the GoldenImage, and all images that were imported for it.
	RetentionDelete GoldenImageRetention = "Delete"
)

// GoldenImageAdoption specifies when a DataSource that exists is taken over.
//
// +kubebuilder:validation:Enum=Never;IfNotReady;Always
type GoldenImageAdoption string

// Values of GoldenImageAdoption.
const (
	AdoptNever      GoldenImageAdoption = "Never"
	AdoptIfNotReady GoldenImageAdoption = "IfNotReady"
	AdoptAlways     GoldenImageAdoption = "Always"
)

// GoldenImageChannel is a DataSource that follows an image later, or is pinned to one.
//
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || !has(self.promote)",message="a channel that is pinned by digest follows nothing, so it must not have promote",fieldPath=".promote"
type GoldenImageChannel struct {
	// Name is the end of the DataSource's name, after the name of the image and a hyphen.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['amd64', 'arm64', 's390x', 'ppc64le'])",message="the name of an architecture must not be the name of a channel"
	Name string `json:"name"`

	// Digest pins the channel to an image that was imported: its own digest, or that of an index, for each architecture. See spec.digest for what it
	// consists of.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|version:[0-9a-f]{64}|uid:[0-9a-f-]{36})$`
	Digest string `json:"digest,omitempty"`

	// Promote is when a channel without digest takes a newer image. Without it, it does so as soon as the image is ready.
	//
	// +optional
	Promote *GoldenImagePromotion `json:"promote,omitempty"`
}

// GoldenImagePromotion is when a channel takes a newer image.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.after) && has(self.manual) && self.manual)",message="only one of after and manual may be given"
// +kubebuilder:validation:XValidation:rule="has(self.after) || has(self.test) || has(self.manual) && self.manual",message="at least one of after, manual and test must be given"
type GoldenImagePromotion struct {
	// After is how long an image must have been ready before.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="after must be more than 0s"
	After *metav1.Duration `json:"after,omitempty"`

	// Manual waits for `stencilctl image promote`, which writes the annotation stencil.kubevirt.io/promote-CHANNEL of the GoldenImage. The first image is taken
	// without it.
	//
	// +optional
	Manual bool `json:"manual,omitempty"`

	// Test is a test that each image must pass before the channel takes it, the first one too.
	//
	// +optional
	Test *GoldenImageTest `json:"test,omitempty"`
}

// GoldenImageTest is a test of an image: the VirtualMachine of a template, with its default parameters and its disks from the image, is created in a
// dry run, so that KubeVirt and all other admission evaluate it.
type GoldenImageTest struct {
	// TemplateRef is a VirtualMachineTemplate in the namespace. At least one of its disks must come from a DataSource of the GoldenImage: in the test, these disks come from
	// the image.
	//
	// +required
	TemplateRef GoldenImageTemplateReference `json:"templateRef"`
}

// GoldenImageTemplateReference names a VirtualMachineTemplate.
type GoldenImageTemplateReference struct {
	// Name of the template.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GoldenImageDefaults are names that KubeVirt infers from a DataSource.
//
// +kubebuilder:validation:XValidation:rule="!has(self.instancetypeKind) || has(self.instancetype)",message="instancetypeKind needs instancetype",fieldPath=".instancetypeKind"
// +kubebuilder:validation:XValidation:rule="!has(self.preferenceKind) || has(self.preference)",message="preferenceKind needs preference",fieldPath=".preferenceKind"
type GoldenImageDefaults struct {
	// Instancetype is the name of an instance type.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Instancetype string `json:"instancetype,omitempty"`

	// InstancetypeKind is its kind. KubeVirt's default is VirtualMachineClusterInstancetype.
	//
	// +optional
	// +kubebuilder:validation:Enum=VirtualMachineInstancetype;VirtualMachineClusterInstancetype
	InstancetypeKind string `json:"instancetypeKind,omitempty"`

	// Preference is the name of a preference.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Preference string `json:"preference,omitempty"`

	// PreferenceKind is its kind. KubeVirt's default is VirtualMachineClusterPreference.
	//
	// +optional
	// +kubebuilder:validation:Enum=VirtualMachinePreference;VirtualMachineClusterPreference
	PreferenceKind string `json:"preferenceKind,omitempty"`
}
