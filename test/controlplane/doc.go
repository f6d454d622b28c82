// Package controlplane starts a real Kubernetes control plane on loopback, for tests and for the demo, on a host where only Go is installed: etcd,
// kube-apiserver and, optionally, kube-controller-manager, KubeVirt's virt-api and virt-controller, and CDI's controllers and webhooks. All of them
// are processes built from Go modules by hack/tool.
//
// A plane is the API server's side of a cluster. There are no nodes and no container runtime: objects are admitted, stored, watched and reconciled as
// on a cluster, and a Pod stays Pending. With CDI, a CSI driver and the node of CDI's worker pods are simulated (packages csi and kubelet), with
// rules for faults.
//
// Planes are independent of each other. Each has its own folder, certificate authorities and free ports, so test packages, checkouts and developers
// may run as many at once as the host can carry. A test takes the smallest plane it needs: an API server starts in about three seconds, KubeVirt adds
// about six.
//
// No process outlives the one that started it. Stop kills and waits; on Linux the kernel kills them when the test binary is killed before it could
// call Stop (see process.go). The next Start removes the folder that is left behind in that case.
package controlplane
