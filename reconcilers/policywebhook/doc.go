// Package policywebhook keeps the webhook configuration of the policies: it says which requests are sent to be judged by them.
// Without policies it holds no webhook, and no request costs anything.
//
// It runs on the leader. Gather: the policies that are in force, from package policycache; the configuration as it is; and
// the configuration of Stencil's other validating webhooks, where new entries take their caBundle from. Decide ([decide],
// pure): one entry for each kind and operation that some policy judges. Apply: a patch of the entries, conditional on
// the resource version that was read.
//
// # What an entry says
//
//   - It fails closed when one of its policies refuses, and would also refuse what it could not judge; otherwise requests pass
//     while no manager can be reached.
//   - It is limited to the namespaces and objects that its policies select where they all select the same.
//   - VirtualMachines that refer to a template, or that have rules, are evaluated by a webhook of the chart, so they are not sent again.
//     VirtualMachines from templates have entries of their own for the namespaces that this webhook excludes.
//   - Updates that change neither spec nor labels nor annotations are not sent, nor is bookkeeping of KubeVirt's own controllers,
//     nor the end of an object that is being deleted.
//
// # Who else writes there
//
// The chart creates the configuration without webhooks, package selfprotection creates it again when somebody deletes it, and
// package cabundle or cert-manager keep the caBundles. Whoever changes anything else of an entry finds it restored, with an
// event and a metric.
package policywebhook
