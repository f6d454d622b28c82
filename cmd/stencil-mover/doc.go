// Command stencil-mover moves the bytes of one import or export of a template: it is the one container of a Job, which the manager starts and reads over
// HTTPS. It has no credentials of the cluster. See package transfer for the contract, and internal/mover for what it does.
package main
