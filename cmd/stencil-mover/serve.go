package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/vmstencil/stencil/internal/mover"
)

// shutdownTimeout is how long answers may take after the end.
const shutdownTimeout = 2 * time.Second

// serve works on the task, and serves until the manager has acknowledged the end. It returns the failure of the task.
func serve(ctx context.Context, o options) error {
	folders := mover.Folders{Root: o.root}
	task, err := folders.Task(o.taskDigest)
	if err != nil {
		return err
	}
	token, err := folders.Token()
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(folders.Certificate(), folders.Key())
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	m := mover.New(folders, task)
	endpoints := mover.NewServer(m, token)
	server := &http.Server{
		Handler: endpoints.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		m.Work(work)
	}()
	err = wait(ctx, m, endpoints, worked, served, o.grace)
	cancel()
	ending, stop := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stop()
	if server.Shutdown(ending) != nil {
		_ = server.Close()
	}
	select {
	case <-worked:
	case <-ending.Done():
	}
	return err
}

// errEnded means that the process was ended from outside.
var errEnded = errors.New("ended by a signal")

// wait waits until the mover is to end, and returns its failure.
func wait(ctx context.Context, m *mover.Mover, endpoints *mover.Server, worked <-chan struct{}, served <-chan error, grace time.Duration) error {
	select {
	case <-worked:
	case <-ctx.Done():
		return errEnded
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	}
	failure := m.Failure()
	var late <-chan time.Time
	// A success is reported for as long as the Job exists: the manager may be away for long, and a package is served for hours. A failure is reported by the
	// status of the pod as well.
	if failure != nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-endpoints.Acknowledged():
	case <-late:
	case <-ctx.Done():
		return errEnded
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	}
	if failure != nil {
		return fmt.Errorf("%s: %w", failure.Reason, failure)
	}
	return nil
}
