package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"
)

// socketMode permits access by the group of the socket's folder, which the containers of the
// manager and of the defaulter share.
const socketMode = 0o660

// Serve serves a handler on a unix socket until the context ends. It replaces a socket that an
// earlier process left.
func Serve(ctx context.Context, socket string, handler http.Handler) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket of an earlier process: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening on the socket: %w", err)
	}
	if err := os.Chmod(socket, socketMode); err != nil {
		return errors.Join(fmt.Errorf("opening the socket to its group: %w", err), listener.Close())
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return fmt.Errorf("ending: %w", err)
	}
	return nil
}
