// Package engine measures the template engine on the golden Fedora template, beside Helm's own engine on a chart that renders the same object. Rounds
// of both alternate, so that a host that gets slower gets slower for both.
package engine
