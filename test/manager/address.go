package manager

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The range of ports that FreeAddress picks from lies below the ephemeral ports of Linux, macOS and the BSDs. A free ephemeral port may become the
// source port of an outgoing connection before a restarted manager uses it again; these ports do not.
const (
	firstPort = 20000
	lastPort  = 29999
	attempts  = 100
)

// FreeAddress returns a loopback address, host:port, on which nothing listens, and reserves it for this process: no other process of this user
// that calls FreeAddress gets the port before this one ends. Some callers listen minutes later, or stop listening for a while.
func FreeAddress() (string, error) {
	folder := filepath.Join(os.TempDir(), "stencil-test-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder for reserved ports: %w", err)
	}
	var failures []error
	for range attempts {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1))
		address := net.JoinHostPort("127.0.0.1", port)
		if err := reserve(filepath.Join(folder, port), address); err != nil {
			failures = append(failures, err)
			continue
		}
		return address, nil
	}
	return "", fmt.Errorf("no free port between %d and %d in %d attempts: %w",
		firstPort, lastPort, attempts, failures[len(failures)-1])
}

// reserve locks the file of a port, if nothing listens on the address. The file stays open: the end of the process releases the lock.
func reserve(path, address string) error {
	file, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := syscall.Flock(file, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("locking %s: %w", path, err), syscall.Close(file))
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, syscall.Close(file))
	}
	return listener.Close()
}
