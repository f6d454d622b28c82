// Package compliance reports which templates create VirtualMachines that violate policies, before a VM owner uses them.
//
// It runs on the leader: when templates, policies or instance types have changed, and at an interval of several minutes, because labels of
// namespaces change too.
//
// # Gather
//
// Every template of the cache is rendered with its defaults (package sample). If that requires parameter values that are not available, the
// template is not evaluated, and its condition reports this.
//
// # Decide
//
// The result is evaluated as a creation in the template's own namespace, which also selects the policies. The user who will create it is
// unknown, so policies apply whatever their subjects. Other admission webhooks, KubeVirt's own among them, have not processed it.
//
// A decision is cached until the template, the policies, the instance types or the namespace change. A policy that depends on the current
// time is not evaluated again when time passes.
//
// # Apply
//
//   - The condition PolicyCompliant of every template that a policy applies to. False names
//     the policies that deny it. With policies that only warn or audit it stays True.
//   - status.templates of every policy: how many templates it applies to, and which of them
//     violate it, whatever its enforcement.
//   - Metrics.
//
// Both statuses are written by server-side apply, each with a separate field manager.
package compliance
