package manager

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range of ports that FreeAddress picks from lies below the ephemeral ports of Linux, macOS and the BSDs. A free ephemeral port may become the
// source port of an outgoing connection before a restarted manager uses it again; these ports do not.
const (
	firstPort = 20000
	lastPort  = 29999
	attempts  = 100
)

// FreeAddress returns a loopback address, host:port, on which nothing listens. It reserves nothing: another process may take the port before the
// caller does, which the random choice makes unlikely.
func FreeAddress() (string, error) {
	var failures []error
	for range attempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if err := listener.Close(); err != nil {
			failures = append(failures, err)
			continue
		}
		return address, nil
	}
	return "", fmt.Errorf("no free port between %d and %d in %d attempts: %w",
		firstPort, lastPort, attempts, failures[len(failures)-1])
}
