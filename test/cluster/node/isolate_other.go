//go:build !linux

package node

import (
	"context"
	"errors"
)

// Namespaces are those that a node runs in.
const Namespaces = 0

var errLinux = errors.New("a node runs on Linux only")

// Init returns an error: there are no namespaces.
func Init(string, ...string) error { return errLinux }

func (Config) isolate(context.Context) error { return errLinux }
