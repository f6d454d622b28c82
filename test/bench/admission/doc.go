// Package admission measures what Stencil's webhooks take of the creation of a VirtualMachine, beside a floor: webhooks in a process of their
// own that have the same answers ready. Clients create one after the other, in dry runs, against a real API server, in several set-ups by
// turns. Everything that happens in one round happens within seconds, and ratios are taken within rounds, so that a machine that is slower
// for a while does not pass for a webhook that is.
package admission
