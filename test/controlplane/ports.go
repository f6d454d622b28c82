package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// portAttempts is how often a component is started with other ports when one is taken.
const portAttempts = 5

// freePorts returns n different loopback ports on which no process listens at this moment.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		// All are held until all are chosen, so that none is chosen twice.
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// portChooser returns n ports that a component may try.
type portChooser func(ctx context.Context, n int) ([]int, error)

// try calls start with n ports. Between the choice and the component's own listen another process may take one; then start fails with an endedError
// with lostPort set, and is called again with other ports.
func (choose portChooser) try(ctx context.Context, n int, start func(ctx context.Context, ports []int) error) error {
	for attempt := 1; ; attempt++ {
		ports, err := choose(ctx, n)
		if err != nil {
			return err
		}
		err = start(ctx, ports)
		var ended *endedError
		if attempt < portAttempts && errors.As(err, &ended) && ended.lostPort {
			continue
		}
		return err
	}
}
