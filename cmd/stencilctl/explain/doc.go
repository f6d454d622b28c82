// Package explain holds the command explain: what would happen to a VirtualMachine that
// is created, and why.
//
// The cluster says what would happen, in a dry run with the rights of the person. What
// can be found out beside that, about the template, its parameters and the permissions,
// is asked one by one, so that a refusal does not hide the next one.
package explain
