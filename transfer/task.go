package transfer

import "github.com/vmstencil/stencil/api/template/v1beta1"

// Paths in the container of the mover.
const (
	// TaskFolder has the files TaskFile, TokenFile, CertificateFile and KeyFile, from the Secret of the transfer.
	TaskFolder = "/var/run/stencil/task"
	// CredentialsFolder has the keys of the Secret that the user names for the source, if there is one.
	CredentialsFolder = "/var/run/stencil/credentials" //nolint:gosec // a path
	// AuthoritiesFolder has the certificates that the user names for the source, if there are any.
	AuthoritiesFolder = "/var/run/stencil/authorities"
	// DisksFolder has one entry per disk: a block device, or a folder with DiskFile if the volume has a filesystem.
	DisksFolder = "/var/run/stencil/disks"
	// ResultFolder is the volume in which an export, or an upload, keeps the package.
	ResultFolder = "/var/run/stencil/result"
	// SourceFolder is the volume that an import from a PersistentVolumeClaim reads.
	SourceFolder = "/var/run/stencil/source"

	TaskFile        = "task.json"
	TokenFile       = "token"
	CertificateFile = "tls.crt"
	KeyFile         = "tls.key"
	// DiskFile is the name of the raw image in a volume with a filesystem, as KubeVirt expects it.
	DiskFile = "disk.img"
	// UploadFile is the name of an uploaded package in its volume.
	UploadFile = "package"
)

// The server of the mover.
const (
	// Port is the port of the mover, for HTTPS.
	Port = 8443
	// ServerName is the name in the certificate of the mover.
	ServerName = "stencil-mover"
	// StatePath is the path at which a GET with the manager's token returns the State.
	StatePath = "/state"
	// AcknowledgePath is the path at which a POST with the manager's token ends a mover that has succeeded or failed.
	AcknowledgePath = "/acknowledge"
	// PackagePath is the path of an exported package, with the user's token; the file's name follows it.
	PackagePath = "/package/"
	// UploadPath is the path to which users send a package by tus, with their token.
	UploadPath = "/upload"
	// The header fields of tus 1.0 (https://tus.io/protocols/resumable-upload): where a part of the package begins, and how many bytes the whole has.
	UploadOffset = "Upload-Offset"
	UploadLength = "Upload-Length"
	TusVersion   = "Tus-Resumable"
	// Tus is the version of the protocol, UploadType the media type of a part.
	Tus        = "1.0.0"
	UploadType = "application/offset+octet-stream"
	// TokenHeader has the user's token where Authorization does not arrive: the API server removes it from requests that it passes on to a Service.
	TokenHeader = "X-Stencil-Token"
)

// Stage is what a mover does.
type Stage string

const (
	// Receive waits until users have uploaded a package.
	Receive Stage = "Receive"
	// Inspect reads the description of a package, and none of its disks.
	Inspect Stage = "Inspect"
	// Import writes the disks of a package into volumes.
	Import Stage = "Import"
	// Export writes a package, and serves it until it is acknowledged, or writes it to a registry.
	Export Stage = "Export"
	// Examine reads the disks of a template for the seal report, and nothing else.
	Examine Stage = "Examine"
)

// Task is what a mover has to do.
type Task struct {
	Stage Stage `json:"stage"`
	// Source is the source of an import.
	Source *v1beta1.ImportSource `json:"source,omitempty"`
	// Verification and Checksum specify how the package is verified.
	Verification v1beta1.ImportVerification `json:"verification,omitempty"`
	Checksum     string                     `json:"checksum,omitempty"`
	// Conversion specifies how a descriptor becomes a template.
	Conversion Conversion `json:"conversion,omitzero"`
	// Description is the digest of the description that was inspected: an import fails if the source has another one now.
	Description string `json:"description,omitempty"`
	// Revision of the plan. If it is set, an import fails if an HTTP source has another one now.
	Revision string `json:"revision,omitempty"`
	// Disks are the disks to be written, by the names that the plan gives them, or to be read.
	Disks []Disk `json:"disks,omitempty"`
	// Package is the package to be exported.
	Package *Package `json:"package,omitempty"`
	// Upload is the package to be received.
	Upload *Upload `json:"upload,omitempty"`
	Limits Limits  `json:"limits"`
	// AllowedNetworks are private networks, in CIDR form, that the mover may connect to.
	AllowedNetworks []string `json:"allowedNetworks,omitempty"`
	// ClusterNetworks are networks of the cluster, in CIDR form, that the mover must not connect to.
	ClusterNetworks []string `json:"clusterNetworks,omitempty"`
}

// Conversion are the choices of the user for the template that is made of a descriptor.
type Conversion struct {
	Namespace        string            `json:"namespace,omitempty"`
	Name             string            `json:"name,omitempty"`
	DeploymentOption string            `json:"deploymentOption,omitempty"`
	Networks         map[string]string `json:"networks,omitempty"`
	StorageClass     string            `json:"storageClass,omitempty"`
	// Instancetype is empty where the sizes are those of the descriptor.
	Instancetype string `json:"instancetype,omitempty"`
	// Preference is nil where one is chosen for the operating system.
	Preference *string `json:"preference,omitempty"`
}

// Disk is a disk that the mover writes or reads.
type Disk struct {
	// Name is the name of the disk in the plan: its entry in DisksFolder.
	Name string `json:"name"`
	// Block is true if the entry is a block device.
	Block bool `json:"block,omitempty"`
	// Size is the size of the disk as the guest sees it, in bytes.
	Size int64 `json:"size"`
	// File is the name of the file or the digest of the layer, as in the plan. Only imports use it.
	File string `json:"file,omitempty"`
	// Volume is the volume of the VirtualMachine that is a copy of the disk. Only exports use it.
	Volume string `json:"volume,omitempty"`
	// Source is the name of the object of which the disk is a copy; if it is empty, Name is used. Only reports use it.
	Source string `json:"source,omitempty"`
	// CDROM is true for a CD.
	CDROM bool `json:"cdrom,omitempty"`
}

// Package is a package that is exported.
type Package struct {
	// File is the name of the package: NAME.ova, NAME.oci.tar.
	File   string               `json:"file"`
	Format v1beta1.ExportFormat `json:"format"`
	// Compression of the disks; empty is Fast. A mover that repeats an export has the same, so that the package has the same bytes.
	Compression v1beta1.ExportCompression `json:"compression,omitempty"`
	// Template is the template, as JSON.
	Template []byte `json:"template"`
	// VM is the VirtualMachine that the template renders with the defaults of its parameters, with its instance type applied, as JSON.
	VM []byte `json:"vm"`
	// DownloadToken is the token with which users download the package.
	DownloadToken string `json:"downloadToken"`
	// Target is the registry to which the package is written. Otherwise it is served.
	Target *v1beta1.ExportTargetRegistry `json:"target,omitempty"`
}

// Upload is a package that users send.
type Upload struct {
	// Size of the package in bytes.
	Size int64 `json:"size"`
	// Token is the token with which users send it.
	Token string `json:"token"`
}

// Limits bound what a mover does for one transfer. A limit of 0 is none.
type Limits struct {
	// Disks is the most disks of a package, Bytes the most bytes of all its disks as guests see them.
	Disks int   `json:"disks"`
	Bytes int64 `json:"bytes"`
	// Ratio is the most times that a compressed file may be smaller than its content; from the first 64 MiB of content on.
	Ratio int64 `json:"ratio"`
	// Seconds is how long the transfer of the bytes may take, StallSeconds how long a source may send nothing.
	Seconds      int64 `json:"seconds"`
	StallSeconds int64 `json:"stallSeconds"`
	// BytesPerSecond is how slowly a source may send; 0 is without a limit.
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
}
