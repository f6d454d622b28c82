// Package policydata caches what VirtualMachinePolicies read as data.cluster: keys of ConfigMaps, and numbers of VirtualMachines and ResourceQuotas of the
// namespace of the object that is evaluated.
//
// The ConfigMaps are those of the namespace where Stencil is installed, and of no other: who may write a ConfigMap decides what the policies that read it
// allow. VirtualMachines and ResourceQuotas are read once a policy needs them. Watches follow all of them; while one is interrupted, the last known values
// are used.
package policydata
