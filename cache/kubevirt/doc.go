// Package kubevirt caches the settings of the KubeVirt object that affect what guests see: KubeVirt's version, the default
// machine types and network binding of VMs, and the kinds of host devices and binding plugins.
//
// A reflector of client-go fills the cache. KubeVirt may be missing, or be installed later: until then KubeVirt's own
// defaults apply.
package kubevirt
