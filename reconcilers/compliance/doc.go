// Package compliance says which templates make VirtualMachines that policies object to,
// before a VM owner finds out.
//
// It runs on the leader: when templates, policies or instance types have changed, and every
// few minutes all the same, because labels of namespaces change too.
//
// # Gather
//
// Every template of the cache is rendered with its defaults (package sample). If that
// takes values that nobody knows, the template cannot be judged, and is told so.
//
// # Decide
//
// What comes out is judged as if somebody created it in the template's own namespace, from
// which policies are chosen. Nobody knows who will create it: whom a policy is about
// does not matter. Other admission webhooks, KubeVirt's own among them, have not seen it.
//
// A judgement is remembered until the template, the policies, the instance types or the
// namespace change. A policy that looks at the time is not asked again because time passes.
//
// # Apply
//
//   - The condition PolicyCompliant of every template that a policy applies to. False names
//     the policies that refuse it. Those that only warn or record leave it True.
//   - status.templates of every policy: how many templates it applies to, and which it
//     objects to, whatever its enforcement.
//   - Metrics.
//
// Both are written by server-side apply with a field manager of their own.
package compliance
