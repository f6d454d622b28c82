// Package body reads the bodies of process and create: a ProcessOptions in JSON or in YAML, regardless of the Content-Type, because clients of the
// published API expect that. Errors have a line and a column.
//
// It is read by hand and not into a Go type, because a value of a parameter may be a number or true in the body, and its text is preserved: 1.10 is
// not 1.1. Check is for other objects, which are then decoded elsewhere. No message contains a value; it may be a password.
package body
