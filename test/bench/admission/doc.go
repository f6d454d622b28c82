// Package admission measures the cost of Stencil's webhooks in the creation of a VirtualMachine, beside a floor: webhooks in a process of their own
// that have the same answers ready. Clients create one after the other, in dry runs, against a real API server, in several set-ups by turns. All
// measurements of one round happen within seconds, and ratios are taken within rounds, so that a host that is slower for a while is not
// mistaken for a slow webhook.
package admission
