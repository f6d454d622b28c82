// Package macaddresses caches the MAC addresses of the VirtualMachines of a namespace, and whether a MAC pool manager
// assigns addresses in it, for the webhook that generates addresses.
//
// The cache stores only the addresses of a VirtualMachine. Lists are read page by page, and what a watch delivers is reduced
// before it is stored. The cache may be slightly behind. Addresses have 46 random bits, so two that are generated at the
// same moment differ in practice; the cache serves to detect addresses that a VM already has.
package macaddresses
