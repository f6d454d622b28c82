// Package decision converts the decisions of approvals, policies and rules into an admission response. The render
// webhook and the validating webhook evaluate the same VM at different times, and must return the same messages. One
// response contains the objections of all approvals, policies and rules to a VM.
package decision
