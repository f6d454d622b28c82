// Package policywebhook writes the webhook configuration of the policies, which selects the requests that they evaluate. Without policies
// it contains no webhook, and requests are not delayed.
//
// It runs on the leader. Gather: the active policies, from package policycache; the current configuration; and the configuration of
// Stencil's other validating webhooks, from which new entries take their caBundle. Decide ([desired], pure): one entry for each kind and
// operation that a policy evaluates. Apply: a patch of the entries, conditional on the resource version that was read.
//
// # Entries
//
//   - An entry fails closed if one of its policies denies, and also denies what it cannot evaluate; otherwise requests are admitted
//     while no manager can be reached.
//   - It is limited to the namespaces and objects that its policies select if all of them have the same selector.
//   - VirtualMachines that refer to a template, or that have rules, are evaluated by a webhook of the chart, so they are not sent again.
//     VirtualMachines from templates have separate entries for the namespaces that this webhook excludes.
//   - Not sent are updates that change neither spec nor labels nor annotations, updates by KubeVirt's own controllers, except what
//     virt-api writes for a user, and updates of an object that is being deleted that do not change its spec.
//
// # Other writers
//
// The chart creates the configuration without webhooks, package selfprotection creates it again after a deletion, and package cabundle or
// cert-manager write the caBundles. Any other change of an entry is reverted, with an event and a metric.
package policywebhook
