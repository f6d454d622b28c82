// Package body reads what people send to process and create: a ProcessOptions in JSON
// or in YAML, whatever the Content-Type says, because that is what clients of the
// published API do. What is wrong with it is said with line and column.
//
// It is read by hand and not into a Go type, because a value of a parameter may be
// written as a number or as true, and is kept as it was written: 1.10 is not 1.1. No
// message holds a value; it may be a password.
package body
