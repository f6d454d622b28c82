package virtualmachine

import corev1 "k8s.io/api/core/v1"

// Annotations in which clients keep a copy of what they applied, so that it has whatever was sent, sensitive parameters too.
const (
	// AnnotationKubectl is of `kubectl apply`, and of clients that do as it does, such as Argo CD: the manifest in JSON.
	AnnotationKubectl = corev1.LastAppliedConfigAnnotation
	// AnnotationKapp is of Carvel's kapp and kapp-controller: the manifest in JSON.
	AnnotationKapp = "kapp.k14s.io/original"
	// AnnotationKappMD5 identifies the difference between AnnotationKapp and what was stored. kapp ignores AnnotationKapp without it, and
	// compares with what is stored.
	AnnotationKappMD5 = "kapp.k14s.io/original-diff-md5"
	// AnnotationKappDiff and AnnotationKappFullDiff have that difference itself, in the versions of kapp that write them.
	AnnotationKappDiff     = "kapp.k14s.io/original-diff"
	AnnotationKappFullDiff = "kapp.k14s.io/original-diff-full"
	// AnnotationWrangler is of Rancher's wrangler, and so of Fleet and of k3s' add-ons: the manifest in JSON, mostly compressed with gzip
	// and in base64 without padding.
	AnnotationWrangler = "objectset.rio.cattle.io/applied"
	// AnnotationBanzai is of operators with Banzai Cloud's object matcher: the object in JSON, or compressed with zip and in base64.
	AnnotationBanzai = "banzaicloud.com/last-applied"
)

// AppliedAnnotations returns the annotations that may hold a copy of the whole object.
func AppliedAnnotations() []string {
	return []string{AnnotationKubectl, AnnotationKapp, AnnotationKappDiff, AnnotationKappFullDiff, AnnotationWrangler, AnnotationBanzai}
}
