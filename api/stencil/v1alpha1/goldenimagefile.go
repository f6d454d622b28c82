package v1alpha1

// GoldenImageHTTP is a file of an HTTP server, in a format that CDI imports: raw or qcow2, also with gzip or xz. A version of it is identified by its
// checksum; without one by its URL and the headers ETag, Last-Modified and Content-Length of the server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.checksum) || !has(self.checksumFile)",message="only one of checksum and checksumFile may be given",fieldPath=".checksumFile"
// +kubebuilder:validation:XValidation:rule="!(has(self.secretRef) || has(self.certConfigMap)) || self.url.startsWith('https://')",message="secretRef and certConfigMap need a URL with https",fieldPath=".url"
type GoldenImageHTTP struct {
	// URL is the URL of the file.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^/?#\s]+/[^#\s]*[^/#\s]$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="a URL must not contain a username or a password: use secretRef"
	URL string `json:"url"`

	// Checksum is the checksum of the file as it is served, sha256:HEX or sha512:HEX. CDI verifies it, from version 1.65 on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=135
	// +kubebuilder:validation:XValidation:rule="self.matches('^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$')",message="checksum must be sha256: with 64 or sha512: with 128 hexadecimal digits in lower case; sha1 and md5 are too weak"
	Checksum string `json:"checksum,omitempty"`

	// ChecksumFile is the URL of a file with checksums, of which the line with the file name of the image counts. The image is imported when its checksum
	// changes, and CDI verifies it, from version 1.65 on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^/?#\s]+/[^#\s]*[^/#\s]$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="a URL must not contain a username or a password: use secretRef"
	ChecksumFile string `json:"checksumFile,omitempty"`

	// SecretRef is the name of a Secret in the namespace with the keys accessKeyId (a username) and secretKey (a password), as CDI reads it.
	// Stencil's manager needs permission to read it, see goldenImages.readable in the chart, and sends it by HTTPS to the host of the URL only.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretRef string `json:"secretRef,omitempty"`

	// CertConfigMap is the name of a ConfigMap in the namespace with certificates of authorities in PEM, as CDI reads it. Stencil's manager needs
	// permission to read it, see goldenImages.readable in the chart.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CertConfigMap string `json:"certConfigMap,omitempty"`
}

// GoldenImageS3 is an object of an S3 bucket. A version of it is identified by its URL and its ETag, time and size.
//
// +kubebuilder:validation:XValidation:rule="!has(self.certConfigMap) || self.url.startsWith('https://')",message="certConfigMap needs a URL with https",fieldPath=".url"
type GoldenImageS3 struct {
	// URL is that of the server, the bucket and the object, as CDI reads it: https://HOST/BUCKET/KEY.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^/?#\s]+/[^/?#\s]+/[^?#\s]*[^/?#\s]$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="a URL must not contain a username or a password: use secretRef"
	URL string `json:"url"`

	// SecretRef is the name of a Secret in the namespace with the keys accessKeyId and secretKey, as CDI reads it, which imports no object without. Use http
	// for a public object. Stencil's manager needs permission to read the Secret, see goldenImages.readable in the chart.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretRef string `json:"secretRef"`

	// CertConfigMap is the name of a ConfigMap in the namespace with certificates of authorities in PEM, as CDI reads it. Stencil's manager needs
	// permission to read it, see goldenImages.readable in the chart.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CertConfigMap string `json:"certConfigMap,omitempty"`
}
