// Package controlplane starts a real Kubernetes control plane on loopback, for tests and for the demo, on a machine where
// nothing but Go is installed: etcd, kube-apiserver and, where asked for, kube-controller-manager and KubeVirt's virt-api and
// virt-controller, and CDI's controllers and webhooks. All of them are processes built from Go modules by hack/tool.
//
// A plane is the API server's side of a cluster. There are no nodes and no container runtime: an object is admitted,
// stored, watched and reconciled as everywhere, and a Pod stays Pending. With CDI a CSI driver and the node of its worker pods are
// played (packages csi and kubelet), with switches for what may go wrong.
//
// Planes are independent of each other. Each has a folder, certificate authorities and free ports of its own, so test
// packages, checkouts and developers may run as many at once as the machine carries. A test takes the smallest plane it
// needs: an API server starts in about three seconds, KubeVirt adds about six.
//
// No process outlives the one that started it. Stop kills and waits; and on Linux the kernel does so when the test binary is
// killed before it could call Stop (see process.go). The folder that such an end leaves behind is removed by the next Start.
package controlplane
