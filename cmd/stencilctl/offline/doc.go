// Package offline puts together, from files alone, the requests that policies judge:
// the objects, the templates that they are rendered from, their instance types and
// preferences, their namespaces, and who asks.
//
// A VirtualMachine that names a template and has not been rendered is rendered, by the
// webhook's own code, when a file holds the template.
package offline
