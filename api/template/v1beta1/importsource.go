package v1beta1

import corev1 "k8s.io/api/core/v1"

// ImportSource is where a package is. Exactly one field is set.
//
// +kubebuilder:validation:ExactlyOneOf=http;s3;registry;pvc;upload
type ImportSource struct {
	// HTTP is a file on an HTTP server: an OVA, or the tar archive of an OCI layout.
	//
	// +optional
	HTTP *ImportSourceHTTP `json:"http,omitempty"`

	// S3 is an object in an S3 bucket: an OVA, or the tar archive of an OCI layout.
	//
	// +optional
	S3 *ImportSourceS3 `json:"s3,omitempty"`

	// Registry is the OCI artifact of a VirtualMachine or of a template in a registry.
	//
	// +optional
	Registry *ImportSourceRegistry `json:"registry,omitempty"`

	// PVC is a file in a PersistentVolumeClaim of the namespace: an OVA, or the tar
	// archive of an OCI layout.
	//
	// +optional
	PVC *ImportSourcePVC `json:"pvc,omitempty"`

	// Upload is a package that the user uploads: an OVA, or the tar archive of an OCI
	// layout.
	//
	// +optional
	Upload *ImportSourceUpload `json:"upload,omitempty"`
}

// ImportSourceHTTP is a file on an HTTP server, which should support ranges: without
// them an interrupted import starts again, and OCI layouts are not read.
type ImportSourceHTTP struct {
	// URL of the file, with the scheme http or https and without credentials. One whose
	// path ends in .ovf names a descriptor, whose files are beside it.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^@]+$`
	URL string `json:"url"`

	// SecretRef names a Secret of the namespace with the keys username and password, or
	// token.
	//
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// CertificatesRef names a ConfigMap of the namespace with certificates of
	// authorities in PEM, that are trusted besides those of the system.
	//
	// +optional
	CertificatesRef *corev1.LocalObjectReference `json:"certificatesRef,omitempty"`
}

// ImportSourceS3 is an object in an S3 bucket.
type ImportSourceS3 struct {
	// URL is that of the server, the bucket and the object, with the scheme http or https
	// and without credentials: https://HOST/BUCKET/KEY.
	//
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/?#@\s]+/[^?#@\s]*[^/?#@\s]$`
	URL string `json:"url"`

	// Region of the bucket. The default is what the host names after s3., or its first
	// label.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9-]+$`
	Region string `json:"region,omitempty"`

	// SecretRef names a Secret of the namespace with the keys accessKeyId and secretKey.
	// A public object is one of an HTTP server.
	//
	// +required
	SecretRef corev1.LocalObjectReference `json:"secretRef"`

	// CertificatesRef names a ConfigMap of the namespace with certificates of
	// authorities in PEM, that are trusted besides those of the system.
	//
	// +optional
	CertificatesRef *corev1.LocalObjectReference `json:"certificatesRef,omitempty"`
}

// ImportSourceRegistry is an artifact in a registry.
type ImportSourceRegistry struct {
	// Image is REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// Insecure permits HTTP.
	//
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// SecretRef names a Secret of the namespace with the keys username and password.
	//
	// +optional
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`

	// CertificatesRef names a ConfigMap of the namespace with certificates of
	// authorities in PEM, that are trusted besides those of the system.
	//
	// +optional
	CertificatesRef *corev1.LocalObjectReference `json:"certificatesRef,omitempty"`
}

// ImportSourcePVC is a file in a PersistentVolumeClaim with a filesystem.
type ImportSourcePVC struct {
	// Name of the PersistentVolumeClaim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Path of the file in the volume, such as images/app.ova.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`
}

// ImportSourceUpload is a package that the user uploads to status.upload.url, within the
// timeout of the import. A volume of the namespace holds it until the import has ended.
type ImportSourceUpload struct {
	// Size of the package in bytes.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Size int64 `json:"size"`

	// StorageClassName is the storage class of the volume that holds the package. The
	// default is that of the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}
