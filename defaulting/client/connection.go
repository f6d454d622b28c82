package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// maxAnswer bounds a response, in bytes.
	maxAnswer = 8 << 20
	// maxIdle and idleTime bound how many idle connections are retained, and for how long. The
	// defaulter closes connections that are idle for two minutes.
	maxIdle  = 64
	idleTime = time.Minute
)

// errBroken means that a connection ended before a response was read.
var errBroken = errors.New("the defaulter has ended the connection")

// connection carries one request at a time. The calling goroutine writes the request and reads
// the response. The Transport of net/http runs two goroutines for each connection; waking them
// takes as long as the rest of a response that the defaulter has cached.
type connection struct {
	net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	// used is the time of last use.
	used time.Time
}

// answer is a response that was read to its end.
type answer struct {
	code               int
	status, retryAfter string
	text               []byte
	// last reports whether the defaulter closes the connection.
	last bool
}

// roundTrip sends a request and reads the whole response. A limit of zero means no deadline.
func (c *connection) roundTrip(ctx context.Context, limit time.Time, request *http.Request) (*answer, error) {
	if deadline, ok := ctx.Deadline(); ok && (limit.IsZero() || deadline.Before(limit)) {
		limit = deadline
	}
	if err := c.SetDeadline(limit); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	// Cancelling the context ends the wait at once.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	got, err := c.exchange(request)
	switch {
	case !stop():
		// The deadline that AfterFunc sets could end the next request on this connection.
		return nil, ctx.Err()
	case err == nil:
		return got, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, context.DeadlineExceeded
	}
	return nil, fmt.Errorf("%w: %w", errBroken, err)
}

func (c *connection) exchange(request *http.Request) (*answer, error) {
	if err := request.Write(c.writer); err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := readAll(response)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return &answer{
		code: response.StatusCode, status: response.Status, retryAfter: response.Header.Get("Retry-After"), text: text, last: response.Close,
	}, nil
}

func readAll(response *http.Response) ([]byte, error) {
	if size := response.ContentLength; size >= 0 && size <= maxAnswer {
		text := make([]byte, size)
		_, err := io.ReadFull(response.Body, text)
		return text, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(text) > maxAnswer {
		err = fmt.Errorf("it has more than %d bytes", maxAnswer)
	}
	return text, err
}

// pool holds the idle connections.
type pool struct {
	socket string

	mutex sync.Mutex
	// idle is sorted by the time of last use.
	idle []*connection
}

func (p *pool) dial(ctx context.Context, limit time.Time) (*connection, error) {
	made, err := (&net.Dialer{Deadline: limit}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: made, reader: bufio.NewReader(made), writer: bufio.NewWriter(made)}, nil
}

// take returns the most recently used connection, or nil.
func (p *pool) take() *connection {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.prune(time.Now())
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	taken := p.idle[last]
	p.idle = p.idle[:last]
	return taken
}

func (p *pool) put(used *connection) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	used.used = time.Now()
	p.idle = append(p.idle, used)
	p.prune(used.used)
}

// prune closes connections that were idle for too long or that exceed the limit.
func (p *pool) prune(now time.Time) {
	for len(p.idle) > maxIdle || len(p.idle) > 0 && now.Sub(p.idle[0].used) > idleTime {
		_ = p.idle[0].Close()
		p.idle = p.idle[1:]
	}
}
