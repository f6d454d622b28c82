// Package single makes controllers that know one request only. Whatever happens, their reconcilers look at everything that they are
// about; what differs is what wakes them.
package single
