// Package client requests defaults from the defaulter, over its unix socket.
package client
