// Package policydata caches the ConfigMaps whose keys VirtualMachinePolicies read as data.cluster.
//
// They are those of the namespace where Stencil is installed, and of no other: who may write a ConfigMap decides what the policies that read it allow.
// A watch follows them; while it is interrupted, the last known values are used.
package policydata
