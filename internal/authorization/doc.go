// Package authorization answers whether a person may do something, mostly with a
// VirtualMachineTemplate: use it, or see that it exists.
//
// It asks the API server with a SubjectAccessReview, through the delegating
// authorizer of k8s.io/apiserver, which keeps answers for a short while: a
// "yes" for at most AllowTTL, a "no" for at most DenyTTL. A right that is taken
// away therefore stops working within AllowTTL, and one that is given works
// within DenyTTL.
package authorization
