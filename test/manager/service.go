package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// probeInterval is the interval at which a Service probes the readiness of its replicas.
const probeInterval = 100 * time.Millisecond

// Service distributes connections to several replicas as a Kubernetes Service does: it has one address, and connects each new connection to a ready
// replica. Existing connections stay, ready or not. Its address is fixed, so that a webhook configuration can name it before, between and after the
// replicas.
type Service struct {
	listener net.Listener
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mutex    sync.Mutex
	replicas []*replica
	next     int
}

// replica is a member of a Service.
type replica struct {
	process *Process
	ready   bool
	probe   context.CancelFunc
}

// NewService starts a Service without replicas. It ends when ctx does, or with Close.
func NewService(ctx context.Context) (*Service, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the replicas: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Service{listener: listener, cancel: cancel}
	s.work.Go(func() { s.accept(ctx) })
	s.work.Go(func() {
		<-ctx.Done()
		_ = listener.Close()
	})
	return s, nil
}

// URL is the https URL, without a path, at which the replicas are reached.
func (s *Service) URL() string { return "https://" + s.Address() }

// Address is the host:port at which the replicas are reached.
func (s *Service) Address() string { return s.listener.Addr().String() }

// Add makes a process a replica. It gets connections as soon as it is ready.
func (s *Service) Add(ctx context.Context, process *Process) {
	ctx, cancel := context.WithCancel(ctx)
	member := &replica{process: process, probe: cancel}
	s.mutex.Lock()
	s.replicas = append(s.replicas, member)
	s.mutex.Unlock()
	s.work.Go(func() { s.watch(ctx, member) })
}

// Remove removes a replica.
func (s *Service) Remove(process *Process) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.replicas = slices.DeleteFunc(s.replicas, func(member *replica) bool {
		if member.process == process {
			member.probe()
		}
		return member.process == process
	})
}

// Close ends the Service and every connection through it.
func (s *Service) Close() {
	s.mutex.Lock()
	for _, member := range s.replicas {
		member.probe()
	}
	s.mutex.Unlock()
	s.cancel()
	s.work.Wait()
}

// watch probes a replica, as the kubelet does, until ctx or the process ends.
func (s *Service) watch(ctx context.Context, member *replica) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		ready := member.process.Ready(ctx) == nil
		s.mutex.Lock()
		member.ready = ready
		s.mutex.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-member.process.Done():
			s.Remove(member.process)
			return
		case <-ticker.C:
		}
	}
}

func (s *Service) accept(ctx context.Context) {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() { s.serve(ctx, connection) })
	}
}

// serve connects a connection to a replica. Without a replica it is closed.
func (s *Service) serve(ctx context.Context, front net.Conn) {
	defer func() { _ = front.Close() }()
	address := s.pick()
	if address == "" {
		return
	}
	var dialer net.Dialer
	back, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = back.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(front.Close(), back.Close()) })
	defer stop()

	var directions sync.WaitGroup
	directions.Go(func() { forward(back, front) })
	directions.Go(func() { forward(front, back) })
	directions.Wait()
}

// forward copies one direction of a connection and forwards its end.
func forward(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// pick returns the address of the next ready replica in turn, or an empty one.
func (s *Service) pick() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for range s.replicas {
		s.next++
		if member := s.replicas[s.next%len(s.replicas)]; member.ready {
			return member.process.WebhookAddress()
		}
	}
	return ""
}
