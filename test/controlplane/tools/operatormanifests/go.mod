module github.com/vmstencil/stencil/test/controlplane/tools/operatormanifests

go 1.26.0

// The modules of KubeVirt's versions that use this one decide the version.
require kubevirt.io/kubevirt v1.8.2
