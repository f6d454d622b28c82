// Package available has the commands about what a user may create in a namespace: templates, and the schema of their parameters.
package available
