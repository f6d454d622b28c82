// Package approvals is the validating webhook of TemplateApproval. It compiles what
// is about to be stored with the room that will judge by it, so that a mistake is
// met by the cluster admin and not by everybody whose machines it would refuse.
//
// What is allowed and yet does not do what it seems to (an approval of a template
// that does not exist, a constraint on a parameter that no approved template has,
// …) comes back as an admission warning. Warnings speak of this moment only: the
// template may be created a second later.
package approvals
