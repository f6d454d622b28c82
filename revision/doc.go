// Package revision decides what happens to the copies of instance types and preferences that KubeVirt stores in
// ControllerRevisions: it decodes and classifies them, converts old ones to the version that KubeVirt reads, and proves that the
// conversion changes no VirtualMachine.
//
// KubeVirt has written four formats. The oldest, SpecRevision, holds apiVersion and the spec as base64, without kind or name. The
// others hold the whole object in v1alpha1, v1alpha2 or v1beta1. The JSON of each version is a subset of the next one: a conversion
// rewrites apiVersion, kind and metadata, and retains the spec as it is. The types here are frozen copies of KubeVirt's, because
// kubevirt.io/api no longer has the old ones. A copy with a field that they do not have is never touched.
//
// The package is pure.
package revision
