// Package policies measures the Rego engine with the policies of Stencil's library: what a request costs with 1, 20 and 100 of them,
// how long a thousand take to compile and what they hold, what the exchange of one does to requests, and what policies can do that
// are written to do harm.
//
// Everything runs in this process, without an API server, from what a webhook has in hand, the decoded object, to its decision.
package policies
