// Package approvals measures what the number of TemplateApprovals costs: the API server's processor time for writes with one approval and
// with a thousand, and how long it takes until an approval is active in all namespaces, beside a bare client that patches the same
// namespaces.
package approvals
