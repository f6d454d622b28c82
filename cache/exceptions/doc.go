// Package exceptions caches the PolicyExceptions. The webhooks and the audit query it for every VirtualMachine that violates a policy.
//
// A reflector of client-go fills the cache. Whether an exception has ended is compared with the clock at each use, so that no write is
// needed at its end. Until the first list has arrived there are no exceptions, and policies apply to all VirtualMachines.
package exceptions
