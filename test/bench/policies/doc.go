// Package policies measures the Rego engine with the policies of Stencil's library: the cost of a request with 1, 20 and 100 of them, the compile
// time and the memory of a thousand, the effect of an exchange of one on requests, and the effect of hostile policies.
//
// Everything runs in this process, without an API server, from the decoded object that a webhook receives to its decision.
package policies
