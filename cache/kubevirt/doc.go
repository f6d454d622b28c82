// Package kubevirt knows what the KubeVirt object of the cluster says that
// decides what guests see: KubeVirt's version, the machine types and the network
// binding that it gives to machines which name none, and what the names of host
// devices and binding plugins stand for.
//
// A reflector of client-go keeps it. KubeVirt may be missing, or be installed
// later: then KubeVirt's own defaults hold, until it is.
package kubevirt
