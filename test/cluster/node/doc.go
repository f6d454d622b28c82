// Package node runs a Kubernetes node on this host, in namespaces of its own: a control plane, containerd and runc of this host, kubelet, kube-scheduler,
// kube-proxy and a registry of images. Nothing of it is simulated. Pods have a network that ends at the node, and what the node writes is in its folder.
//
// Run is called as process 2 of new mount, network, PID, UTS and IPC namespaces; Init is process 1.
package node
