// Package delegation passes to the admission webhooks the user for which stencil-apiserver creates a VirtualMachine.
//
// The server creates VirtualMachines as itself, because the user may lack the permission. It impersonates itself: the user of the request stays the
// server's own, and the requesting user is added to userInfo.extra, by headers that the API server accepts only with permission to impersonate that
// service account. The object contains none of this, so that users who can write objects cannot forge it, and none of it is stored; and it is
// available to every webhook and every expression of an admission policy.
//
// Server reads it back. The extra of requests of other users is ignored.
package delegation
