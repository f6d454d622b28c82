// Package transfer is the contract between the manager and the data mover (stencil-mover), which imports templates from packages and exports them:
// what the manager requests in the mover's task, and what the mover reports while it works.
//
// A mover is the pod of one Job. It has no credentials of the cluster. The manager mounts a Secret into it with the task, a token and a certificate, and
// reads its State over HTTPS, with that certificate and token. The mover reads untrusted data; what it reports is checked by the manager like any input
// of a user.
//
// The package is pure: it uses no client, no files, no network and no clock.
package transfer
