package goldenimage

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
)

// Resources that are read and written.
var (
	DataSources     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datasources"}
	DataImportCrons = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "dataimportcrons"}
	DataVolumes     = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	Claims          = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	Snapshots       = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
	kindDataSource  = DataSources.GroupVersion().WithKind("DataSource")
	kindDataVolume  = DataVolumes.GroupVersion().WithKind("DataVolume")
	kindDataImport  = DataImportCrons.GroupVersion().WithKind("DataImportCron")
	kindGoldenImage = v1alpha1.GroupVersion.WithKind("GoldenImage")
)

const (
	// annotationOperator is on objects that an operator of the operator SDK keeps.
	annotationOperator = "operator-sdk/primary-resource"
	annotationDesired  = "cdi.kubevirt.io/storage.import.sourceDesiredDigest"
	// annotationReference on a DataImportCron of an image stream is what CDI imports for the desired digest.
	annotationReference = "cdi.kubevirt.io/storage.import.imageStreamDockerRef"
	// annotationImmediate lets CDI import although no pod uses the claim yet.
	annotationImmediate = "cdi.kubevirt.io/storage.bind.immediate.requested"
)

// AnnotationTemplate on a DataImportCron or DataVolume is a digest of what cannot be changed in it.
const AnnotationTemplate = "stencil.kubevirt.io/import-template"

// LabelDataImportCron is the label by which CDI finds the DataSource and the volumes of a DataImportCron.
const LabelDataImportCron = "cdi.kubevirt.io/dataImportCron"

// State is what Decide decides from.
type State struct {
	Image *v1alpha1.GoldenImage
	Now   time.Time
	// Cluster identifies the cluster: see NewSchedule.
	Cluster string
	// Check is the result of a check of the source; nil if there was none.
	Check *Check
	// Tests are the results of tests that an earlier Plan requested.
	Tests map[Test]TestResult
	// Sources are the DataSources of the names that Names returns, Crons the DataImportCrons of these names, and Provided the names for which
	// there is a PersistentVolumeClaim.
	Sources  map[string]*DataSource
	Crons    map[string]*Cron
	Provided map[string]bool
	// Volumes are those with the label of the image.
	Volumes []Volume
}

// Check is the result of a check of a source.
type Check struct {
	// Found are the images, in the order of the architectures.
	Found []Found
	// Err is why there is none. It wraps ErrNotSigned if that is the reason.
	Err error
	// Verified are the digests for which a signature of spec.verify was verified now.
	Verified []string
}

// ErrNotSigned is the reason why an image is not taken that is not signed as spec.verify requires.
var ErrNotSigned = errors.New("no signature of spec.verify.publicKeys")

// Test is a test of an image for a channel: see v1alpha1.GoldenImageTest.
type Test struct{ Template, Architecture, Digest string }

// TestResult is the result of a Test, and its reason if it is not accepted.
type TestResult struct {
	Accepted bool
	Reason   string
}

// Found is the newest image of one architecture.
type Found struct {
	Digest, Tag string
	// Index is the digest of the index that names the image for its architecture; empty if there is none.
	Index string
	// Reference of an image of an image stream in a container registry.
	Reference string
}

// DataSource is a DataSource that exists.
type DataSource struct {
	Labels, Annotations map[string]string
	Owners              []metav1.OwnerReference
	// Source is spec.source.
	Source map[string]any
	Ready  bool
}

// Cron is a DataImportCron that exists.
type Cron struct {
	Labels, Annotations map[string]string
	Deleting            bool
	// Digest and Volume are of the import that CDI has started last. Imported is the volume of the last that has ended, and ImportedAt the
	// time.
	Digest, Volume, Imported string
	ImportedAt               *metav1.Time
}

// Volume is a DataVolume, a PersistentVolumeClaim or a VolumeSnapshot.
type Volume struct {
	Resource schema.GroupVersionResource
	Name     string
	Labels   map[string]string
	// Progress, such as 42.0%, and Problem are of a DataVolume that is being filled.
	Progress, Problem string
	// Import is what a DataVolume imports; nil of another resource.
	Import *FileImport
}

// FileImport is what a DataVolume that Stencil has made imports.
type FileImport struct {
	// Digest identifies the version of the file, and Template what the DataVolume was made of. Both are of annotations, and empty without.
	Digest, Template string
	// Checksum is that which CDI verifies; empty if it verifies none.
	Checksum string
	// Done is the time at which the import has succeeded; nil before.
	Done *metav1.Time
}

// Plan is what Decide returns.
type Plan struct {
	// Actions are carried out in their order until one fails.
	Actions []Action
	Status  v1alpha1.GoldenImageStatus
	// Finalizer specifies whether the image must have the finalizer.
	Finalizer bool
	Events    []Event
	// Tests are those that a channel needs to be moved. With their results in the State, Decide decides again.
	Tests []Test
	// Again is the time at which the result changes by itself; zero if it does not.
	Again time.Time
}

// Verb is what an Action does.
type Verb string

// Verbs of Actions.
const (
	// Create creates Object, unless there is one of its name.
	Create Verb = "create"
	// Apply applies Object by server-side apply.
	Apply Verb = "apply"
	// Patch merges Object, a JSON merge patch, into the object of the name.
	Patch Verb = "patch"
	// Delete deletes the object of the name. DeleteUnused does so later if a DataVolume is being cloned from it.
	Delete       Verb = "delete"
	DeleteUnused Verb = "delete unused"
)

// Action is one write.
type Action struct {
	Verb     Verb
	Resource schema.GroupVersionResource
	Name     string
	Object   map[string]any
}

// Event is an event of the GoldenImage.
type Event struct {
	Warning         bool
	Reason, Message string
	// Volume is the PersistentVolumeClaim that it is about besides; empty if there is none.
	Volume string
}

// Reasons of events.
const (
	EventImported = "ImageImported"
	EventChannel  = "ChannelMoved"
	EventTest     = "ChannelTestFailed"
	EventFound    = "ImageFound"
	EventCheck    = "CheckFailed"
	EventUnsigned = "NotSigned"
	EventImport   = "ImportFailed"
	EventConflict = "Conflict"
	EventAdopted  = "Adopted"
	EventStale    = "ImageStale"
	EventDeleted  = "ImagesDeleted"
)
