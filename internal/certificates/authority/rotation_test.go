package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/vmstencil/stencil/internal/certificates/certificatestest"
	"github.com/vmstencil/stencil/internal/certificates/publication"
)

func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), time.Minute)
}

// caller simulates an API server that observes a changed caBundle with a delay.
type caller struct {
	lag      time.Duration
	mutex    sync.Mutex
	received []bundleAt
}

type bundleAt struct {
	at    time.Time
	roots *x509.CertPool
}

func (c *caller) notify(authorities ...*certificatestest.Authority) {
	roots := x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority.Certificate)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.received = append(c.received, bundleAt{time.Now(), roots})
}

// roots returns the authorities that the caller trusts: the last bundle that it has had time to observe.
func (c *caller) roots() *x509.CertPool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	last := c.received[0].roots
	for _, bundle := range c.received {
		if time.Since(bundle.at) >= c.lag {
			last = bundle.roots
		}
	}
	return last
}

// call makes one connection and returns the certificate that was served.
func (c *caller) call(address string) (*x509.Certificate, error) {
	connection, err := tls.Dial("tcp", address, &tls.Config{RootCAs: c.roots(), ServerName: "localhost"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// Under a steady stream of connections the authority is replaced several times. The certificate library uses each new authority at once, the caBundle
// follows later, the caller observes that still later, and no connection fails.
func TestRotationLosesNoConnection(t *testing.T) {
	const (
		rotations    = 2
		publishDelay = 150 * time.Millisecond
		lag          = 200 * time.Millisecond
		// Much longer than the lag, so that the test does not depend on how busy the host is.
		settling = 2 * time.Second
	)
	ctx, cancel := testContext(t)
	defer cancel()

	newAuthority := func() *certificatestest.Authority {
		return certificatestest.NewAuthority(t, time.Now().Add(-time.Minute), time.Hour)
	}
	newServing := func(authority *certificatestest.Authority) *tls.Certificate {
		return authority.Serving(t, time.Now().Add(-time.Minute), time.Hour)
	}

	api := &caller{lag: lag}
	signer, published := &fakeSigner{}, newFakePublication()
	source := newSource(Options{Settling: settling, Publication: published, Logger: logr.Discard()}, signer)

	present := newAuthority()
	api.notify(present)
	published.publish(publishes(render, publication.Authority{Certificate: present.Certificate, Since: time.Now()}))
	signer.sign(newServing(present))

	stopped := make(chan error, 1)
	go func() { stopped <- source.Start(ctx) }()
	address := listen(t, source)
	waitFor(ctx, t, "readiness", func() bool { return source.Ready(nil) == nil })

	calls := make(chan callResult, 1)
	callsCtx, stopCalls := context.WithCancel(ctx)
	go func() { calls <- callUntil(callsCtx, api, address) }()

	for range rotations {
		former, next := present, newAuthority()
		certificate := newServing(next)
		signer.sign(certificate)
		// The leader needs some time.
		waitFor(ctx, t, "the delay of the leader", elapsed(publishDelay))
		now := time.Now()
		api.notify(next, former)
		published.publish(publishes(render,
			publication.Authority{Certificate: next.Certificate, Since: now},
			publication.Authority{Certificate: former.Certificate, Since: now.Add(-time.Hour)},
		))
		waitFor(ctx, t, "the new certificate", func() bool {
			serving, err := source.GetCertificate(nil)
			return err == nil && serving == certificate
		})
		present = next
	}
	stopCalls()
	result := <-calls
	if result.failed > 0 {
		t.Errorf("%d of %d connections failed, the first one with: %v", result.failed, result.made, result.first)
	}
	if len(result.seen) < rotations {
		t.Errorf("the connections saw %d certificates, want at least %d", len(result.seen), rotations)
	}
	t.Logf("%d connections saw %d certificates", result.made, len(result.seen))
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("stopping the source: %v", err)
	}
}

// callResult is the result of the calls.
type callResult struct {
	made, failed int
	first        error
	seen         map[string]bool
}

func callUntil(ctx context.Context, api *caller, address string) callResult {
	result := callResult{seen: map[string]bool{}}
	for ctx.Err() == nil {
		result.made++
		served, err := api.call(address)
		if err != nil {
			result.failed++
			result.first = cmp.Or(result.first, err)
			continue
		}
		result.seen[served.SerialNumber.String()] = true
	}
	return result
}

// listen serves TLS with the certificates of the source and closes every connection after its handshake.
func listen(t *testing.T, source *Source) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: source.GetCertificate})
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { greet(connection) })
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-accepting
		connections.Wait()
	})
	return listener.Addr().String()
}

func greet(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	// Reading makes the handshake and lasts until the caller closes.
	_, _ = io.Copy(io.Discard, connection)
}

func waitFor(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		case <-ticker.C:
		}
	}
}

func elapsed(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
