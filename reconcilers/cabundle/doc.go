// Package cabundle publishes Stencil's certificate authority: it sets the caBundle of each of Stencil's webhook configurations to the
// current authority and the former ones that may have signed certificates in use.
//
// It runs on the leader, and only when Stencil is its own authority. Beside it, every replica adds the current authority where a configuration lacks
// it: during an upgrade the leader is the old replica, which does not know the configurations that the upgrade adds, and a new one is not ready
// before they are trusted. Gather: the Secret of the authority, the named webhook
// configurations, and the authorities that this process has read before. Decide ([decide], pure): the one bundle for all of them. Apply: a
// patch of the caBundle fields only, conditional on the resource version that was read, so that no concurrent change is lost.
//
// Helm, which applies server-side since version 4, and kubectl apply do not change the field, because the chart does not contain it. If
// another client resets the field, it is restored.
//
// A former authority stays published for as long as a serving certificate that it signed may be in use: until it expires, or until the
// duration of a serving certificate has passed since it was replaced. An authority that an administrator rotates because its key has leaked
// is therefore trusted for at most that long.
package cabundle
