// Package macaddresses knows which MAC addresses the VirtualMachines of a namespace
// have, and whether a MAC pool manager gives them theirs, for the webhook that makes
// addresses.
//
// A watch keeps nothing of a VirtualMachine but its addresses: lists are read page by
// page, and what a watch delivers is reduced before it is stored. It may be a moment
// behind. An address is random, of 46 bits, so that two that are made at the same
// moment differ all the same; what is looked up here is that it is nobody's already.
package macaddresses
