package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

const (
	// idleTimeout exceeds the 90 s after which an API server closes an idle connection to a webhook.
	idleTimeout = 3 * time.Minute
	// readHeaderTimeout and readTimeout limit how long a slow client may hold a connection.
	readHeaderTimeout = 10 * time.Second
	readTimeout       = longestTimeout
	// writeTimeout starts at the end of the request's header. It allows for the longest call and its response.
	writeTimeout = longestTimeout + 10*time.Second
	// maximumHeader is the maximum size of a request's header, in bytes. It is far above the size that an API server
	// sends.
	maximumHeader = 64 << 10
)

// Options are the dependencies and the configuration of a Server.
type Options struct {
	// BindAddress is the host:port to listen on. Required.
	BindAddress string
	// Certificates supplies the serving certificate. Required.
	Certificates CertificateSource
	// LimitTLS limits versions and cipher suites. Default: TLS 1.2 and later.
	LimitTLS func(*tls.Config)
	// Callers restricts the clients. The zero value allows all.
	Callers Callers
	// HTTP2 enables HTTP/2 beside HTTP/1.1.
	HTTP2 bool
	// ShutdownTimeout is the time for requests in flight after Start's context has ended.
	ShutdownTimeout time.Duration
	// Registerer registers the metrics. Required.
	Registerer prometheus.Registerer
	// Logger logs errors and changes of state.
	Logger logr.Logger
	// Clock measures durations. Default: the real clock.
	Clock clock.PassiveClock
}

// Server serves webhooks over HTTPS. It is a manager.Runnable that runs on every replica.
type Server struct {
	options  Options
	listener net.Listener
	mux      *http.ServeMux
	metrics  *metrics
	draining atomic.Bool
}

// New returns a server that already listens, so that an address in use is reported before any component starts.
// Connections wait until Start serves them.
func New(options Options) (*Server, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	metrics, err := newMetrics(options.Registerer)
	if err != nil {
		return nil, fmt.Errorf("registering the webhook metrics: %w", err)
	}
	listener, err := net.Listen("tcp", options.BindAddress)
	if err != nil {
		return nil, fmt.Errorf("listening for webhook calls: %w", err)
	}
	return &Server{options: options, listener: listener, mux: http.NewServeMux(), metrics: metrics}, nil
}

// Register adds a webhook. It must not be called after Start, and panics when the path is taken.
func (s *Server) Register(webhook Webhook) {
	s.mux.Handle(webhook.Path, newHandler(webhook, s.metrics, s.options.Clock, s.options.Logger, s.draining.Load))
}

// Address returns the address that the server listens on, as host:port.
func (s *Server) Address() string {
	return s.listener.Addr().String()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks are served by every replica.
func (s *Server) NeedLeaderElection() bool {
	return false
}

// Drain begins the shutdown: from now on Ready fails and every response requests the client to close the connection.
// Requests are still served.
func (s *Server) Drain() {
	s.draining.Store(true)
}

// Start serves until ctx ends, then closes the listener and waits for the requests in flight, at most for
// ShutdownTimeout. The contexts of these requests do not end with ctx.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:           s.options.Callers.admit(s.mux),
		TLSConfig:         s.options.Callers.restrict(tlsConfig(s.options.Certificates, s.options.LimitTLS)),
		Protocols:         protocols(s.options.HTTP2),
		IdleTimeout:       idleTimeout,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    maximumHeader,
		ErrorLog:          log.New(connectionLog{s.options.Logger}, "", 0),
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		s.Drain()
		stopped <- s.shutdown(server)
	}()

	s.options.Logger.Info("serving webhooks", "address", s.Address(), "http2", s.options.HTTP2)
	// The TLS configuration supplies the certificate, so no files are named.
	if err := server.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return <-stopped
}

// shutdown waits for the requests in flight and closes the connections of those that exceed the timeout.
func (s *Server) shutdown(server *http.Server) error {
	s.options.Logger.Info("no longer accepting webhook calls, waiting for those in flight", "timeout", s.options.ShutdownTimeout.String())
	// Not derived from Start's context, which has ended.
	ctx, cancel := context.WithTimeout(context.Background(), s.options.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("waiting for webhook calls in flight: %w", err), server.Close())
	}
	return nil
}

// connectionLog receives the messages of net/http about single connections: mostly handshakes that probes and port
// scans abort. Users cannot act on them.
type connectionLog struct {
	logger logr.Logger
}

// Write implements io.Writer.
func (l connectionLog) Write(line []byte) (int, error) {
	l.logger.V(1).Info("webhook connection", "event", strings.TrimSpace(string(line)))
	return len(line), nil
}
