package node

import (
	"context"
	"errors"
	"io"
	"net"
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
			ended := make(chan error, 2)
			for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, err := io.Copy(ends[0], ends[1])
					ended <- errors.Join(err, closeWrite(ends[0]))
				}()
			}
			// Errors of a connection end it, and its two sides receive that.
			<-ended
			<-ended
		}()
	}
}

func closeWrite(connection net.Conn) error {
	if half, ok := connection.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return connection.Close()
}
