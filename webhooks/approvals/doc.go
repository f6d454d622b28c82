// Package approvals is the validating webhook of TemplateApproval. It compiles each TemplateApproval with package
// approval before it is stored. The cluster admin therefore receives the error, and not the users that the approval
// would affect.
//
// An approval that is valid but has no effect in part is allowed with admission warnings: for example an approval of
// a template that does not exist, or a constraint on a parameter that no approved template declares. A warning
// describes the current state only: the template may be created later.
package approvals
