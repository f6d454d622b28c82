// Package delegation is how stencil-apiserver tells the admission webhooks for
// whom it creates a VirtualMachine.
//
// The server creates machines as itself, because the person may have no right to. It
// impersonates itself: the user stays the server's own, and the person is put into
// userInfo.extra, by headers that the API server takes from those only who may
// impersonate that very service account. Nothing of it is in the object, so nobody who
// can write an object can forge it, and nothing of it is stored; and it is there for
// every webhook and for every expression of an admission policy.
//
// Server reads it back. What a request of any other user has in its extra is ignored.
package delegation
