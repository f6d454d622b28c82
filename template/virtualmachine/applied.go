package virtualmachine

import corev1 "k8s.io/api/core/v1"

// Annotations in which clients store a copy of the applied manifest, with everything that was sent, including sensitive
// parameters.
const (
	// AnnotationKubectl is written by `kubectl apply`, and by clients that work like it, such as Argo CD: the manifest in
	// JSON.
	AnnotationKubectl = corev1.LastAppliedConfigAnnotation
	// AnnotationKapp is written by Carvel's kapp and kapp-controller: the manifest in JSON.
	AnnotationKapp = "kapp.k14s.io/original"
	// AnnotationKappMD5 identifies the difference between AnnotationKapp and the stored object. Without it kapp ignores
	// AnnotationKapp, and compares with the stored object.
	AnnotationKappMD5 = "kapp.k14s.io/original-diff-md5"
	// AnnotationKappDiff and AnnotationKappFullDiff contain that difference itself, in the versions of kapp that write them.
	AnnotationKappDiff     = "kapp.k14s.io/original-diff"
	AnnotationKappFullDiff = "kapp.k14s.io/original-diff-full"
	// AnnotationWrangler is written by Rancher's wrangler, and so by Fleet and k3s' add-ons: the manifest in JSON, mostly
	// compressed with gzip and in base64 without padding.
	AnnotationWrangler = "objectset.rio.cattle.io/applied"
	// AnnotationBanzai is written by operators with Banzai Cloud's object matcher: the object in JSON, or compressed with
	// zip and in base64.
	AnnotationBanzai = "banzaicloud.com/last-applied"
)

// AppliedAnnotations returns the annotations that may hold a copy of the whole object.
func AppliedAnnotations() []string {
	return []string{AnnotationKubectl, AnnotationKapp, AnnotationKappDiff, AnnotationKappFullDiff, AnnotationWrangler, AnnotationBanzai}
}
