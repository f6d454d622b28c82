// Package coverage provides the approvals that select each namespace, for reconcilers that work on the whole cluster. It watches the
// TemplateApprovals and the metadata of the Namespaces.
//
// The webhooks use package approvalcache instead, which answers for one namespace. The reconcilers run on the leader only. The events that
// trigger them must come from the watches that they read: otherwise they might read before a change arrives, and not run again after it.
package coverage
