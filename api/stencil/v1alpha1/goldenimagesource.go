package v1alpha1

// GoldenImageSource is where an image comes from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.registry), has(self.http), has(self.s3), has(self.pvc)].filter(given, given).size() == 1",message="exactly one of registry, http, s3 and pvc must be given"
type GoldenImageSource struct {
	// Registry is an image in a container registry with the disk in its folder /disk.
	//
	// +optional
	Registry *GoldenImageRegistry `json:"registry,omitempty"`

	// PVC is a PersistentVolumeClaim of the namespace, which is cloned. The image is newer when another claim has its name. Its digest is uid: and the UID of
	// the claim.
	//
	// +optional
	PVC *GoldenImageClaim `json:"pvc,omitempty"`

	// HTTP is a file of an HTTP server.
	//
	// +optional
	HTTP *GoldenImageHTTP `json:"http,omitempty"`

	// S3 is an object of an S3 bucket.
	//
	// +optional
	S3 *GoldenImageS3 `json:"s3,omitempty"`
}

// GoldenImageClaim is a PersistentVolumeClaim with a disk.
type GoldenImageClaim struct {
	// Name is the name of the PersistentVolumeClaim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GoldenImageRegistry is an image in a container registry.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.imageStream)",message="exactly one of url and imageStream must be given"
// +kubebuilder:validation:XValidation:rule="!has(self.imageStream) || !has(self.tags) && !has(self.secretRef) && !has(self.certConfigMap)",message="an image stream has a tag only: nodes pull it with their own credentials",fieldPath=".imageStream"
// +kubebuilder:validation:XValidation:rule="!(has(self.tag) && has(self.tags))",message="only one of tag and tags may be given",fieldPath=".tag"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || !has(self.pullMethod) || self.pullMethod == 'pod'",message="secretRef needs pullMethod pod: a node pulls with its own credentials",fieldPath=".secretRef"
type GoldenImageRegistry struct {
	// URL is the image without tag and digest, such as quay.io/containerdisks/fedora; docker:// before it is allowed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!(self.startsWith('docker://') ? self.substring(9) : self).matches('^[^/:]+(:[0-9]+)?/.*[:@]')",message="url is the image without tag and digest: the tag belongs in tag, a digest in spec.digest"
	// +kubebuilder:validation:XValidation:rule="(self.startsWith('docker://') ? self.substring(9) : self).matches('^[^/:]+(:[0-9]+)?/.*[:@]') || self.matches('^(docker://)?[a-zA-Z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$')",message="url must be HOST/REPOSITORY, such as quay.io/containerdisks/fedora; docker:// before it is allowed, and the repository is in lower case"
	URL string `json:"url,omitempty"`

	// ImageStream is the name of an ImageStream of OpenShift in the namespace, instead of a URL. The node pulls its images, whatever pullMethod is.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ImageStream string `json:"imageStream,omitempty"`

	// Tag is the tag that is followed. The default is latest.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`
	Tag string `json:"tag,omitempty"`

	// Tags chooses the newest of the tags that match.
	//
	// +optional
	Tags *GoldenImageTags `json:"tags,omitempty"`

	// PullMethod is pod, which copies the image in a pod, or node, which lets the node pull it.
	//
	// +optional
	// +kubebuilder:default=pod
	PullMethod GoldenImagePullMethod `json:"pullMethod,omitempty"`

	// SecretRef is the name of a Secret in the namespace with the keys accessKeyId (a username) and secretKey (a password), as CDI reads it.
	// Stencil's manager needs permission to read it, see goldenImages.readable in the chart, and sends it by HTTPS only.
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

// GoldenImageVerification specifies who must have signed an image.
type GoldenImageVerification struct {
	// PublicKeys are public keys in PEM (ECDSA, Ed25519 or RSA), such as `cosign public-key` writes. The signature of one of them is enough. Signatures are those
	// that cosign stores beside the image in its registry, of the image or of the index that it is part of. Transparency logs are not consulted.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^\s*-{5}BEGIN PUBLIC KEY-{5}\s[A-Za-z0-9+/=\s]+-{5}END PUBLIC KEY-{5}\s*$`
	PublicKeys []string `json:"publicKeys"`
}

// GoldenImagePullMethod is how an image is pulled.
//
// +kubebuilder:validation:Enum=pod;node
type GoldenImagePullMethod string

const (
	// PullByPod copies the image in a pod of CDI. It is the default.
	PullByPod GoldenImagePullMethod = "pod"
	// PullByNode lets the container runtime of a node pull the image.
	PullByNode GoldenImagePullMethod = "node"
)

// GoldenImageTags chooses one of the tags of an image: the newest of those that match all fields that are given. Tags are compared as versions
// (https://semver.org); the parts minor and patch may be missing, and a leading v is ignored. Tags that are no versions are older than all
// versions and are compared as texts with their numbers as numbers.
//
// +kubebuilder:validation:XValidation:rule="has(self.semver) || has(self.pattern)",message="at least one of semver and pattern must be given"
type GoldenImageTags struct {
	// Semver is a range of versions, such as ">=41 <43" or "~9.4". Versions with a pre-release part match only a range that has one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Semver string `json:"semver,omitempty"`

	// Pattern is a regular expression (RE2) that the whole tag must match.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Pattern string `json:"pattern,omitempty"`

	// Exclude is a regular expression (RE2); a tag that it matches as a whole is not taken.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Exclude string `json:"exclude,omitempty"`
}

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
