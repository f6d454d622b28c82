// Package approvals caches which TemplateApprovals select a namespace. The webhooks query it for every VirtualMachine.
//
// Two reflectors of client-go fill the cache. One watches TemplateApprovals, which are compiled as they arrive. The other
// watches Namespaces and stores only their labels and annotations; policies read both. The label that Stencil sets on
// governed namespaces has no effect here.
//
// The cache fails closed. An approval that does not compile approves nothing in the namespaces that it selects. A namespace
// that has not been observed is treated as selected by an approval that approves nothing, until its labels have arrived.
package approvals
