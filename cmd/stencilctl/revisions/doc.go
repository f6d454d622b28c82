// Package revisions holds the commands of `stencilctl revisions`: they read the report about stored instance types, and set the mode of Stencil's manager
// that migrates them, with the permissions of the user. They write no ControllerRevision themselves.
package revisions
