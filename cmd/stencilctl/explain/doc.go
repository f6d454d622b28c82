// Package explain holds the command explain: it reports what would happen to a VirtualMachine
// on creation, and why.
//
// The cluster evaluates the creation in a dry run with the user's permissions. The template,
// its parameters and the permissions are also checked one by one, so that one rejection does
// not hide the next.
package explain
