// Package oci reads and writes the OCI artifacts in which KubeVirt 1.9 exports VirtualMachines and VirtualMachineTemplates
// (https://github.com/kubevirt/kubevirt/blob/v1.9.0/pkg/storage/oci/oci.go), and the layouts that hold them: folders and tar archives
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md).
//
// Artifacts are untrusted: sizes, names, types and digests are checked before anything is done with their content.
package oci
