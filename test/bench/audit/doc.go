// Package audit measures the cost of evaluating stored VirtualMachines: one of them, compared with its template, and the audit of very many by a
// stencil-manager. It needs Linux, for /proc.
package audit
