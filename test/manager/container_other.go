//go:build !linux

package manager

import (
	"errors"
	"syscall"
)

func (*Container) enter() error { return errors.New("containers need Linux") }

func (*Container) attributes() *syscall.SysProcAttr { return nil }
