package node

import (
	"context"
	"io"
	"net"
	"sync"
)

// Forward accepts connections of a listener until it is closed, and copies between each and a new connection to an address.
func Forward(ctx context.Context, listener net.Listener, network, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return
			}
			defer to.Close()
			var copies sync.WaitGroup
			for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
				copies.Go(func() {
					// An error of a connection ends it, and its two sides receive that.
					_, _ = io.Copy(ends[0], ends[1])
					_ = closeWrite(ends[0])
				})
			}
			copies.Wait()
		}()
	}
}

func closeWrite(connection net.Conn) error {
	if half, ok := connection.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return connection.Close()
}
