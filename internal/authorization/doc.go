// Package authorization decides whether a user may do something, mostly with a VirtualMachineTemplate: use it, or see that it exists.
//
// It sends a SubjectAccessReview to the API server, through the delegating authorizer of k8s.io/apiserver, which caches answers for a short while: a
// "yes" for at most AllowTTL, a "no" for at most DenyTTL. A permission that is removed therefore stops working within AllowTTL, and one that is added
// works within DenyTTL.
package authorization
