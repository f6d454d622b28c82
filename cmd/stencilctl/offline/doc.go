// Package offline builds, from files alone, the requests that policies evaluate: the objects,
// the templates that they are rendered from, their instance types and preferences, their
// namespaces, and the user.
//
// A VirtualMachine that references a template and has not been rendered is rendered by the code
// of the webhook if a file holds the template.
package offline
