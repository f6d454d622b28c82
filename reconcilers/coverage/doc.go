// Package coverage knows which approvals cover which namespaces, for the reconcilers that ask it about the cluster as a
// whole: it watches the TemplateApprovals, and of the Namespaces the metadata.
//
// The webhooks have a cache of their own, package approvalcache, which answers for one namespace. The reconcilers run on the
// leader only, and what wakes them must come from the same watches as what they then read: otherwise they might
// look too early, find nothing changed, and never look again.
package coverage
