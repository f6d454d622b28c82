// Package client asks the defaulter for defaults, over its unix socket.
package client
