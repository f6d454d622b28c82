// Package exceptionstatus writes the conditions of PolicyExceptions: Active, whether the exception has not ended, and Ready, whether the
// policies that it names exist. It runs on the leader, when an exception or a policy changes, and when an exception ends. The audit writes
// status.audit.
//
// The conditions are for users. Whether an exception applies is decided from its spec and the clock.
package exceptionstatus
