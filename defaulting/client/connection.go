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
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 8 << 20
	// maxIdle and idleTime bound how many connections are kept, and for how long. The
	// defaulter ends those that are not used for two minutes.
	maxIdle  = 64
	idleTime = time.Minute
)

// errBroken says that a connection ended before there was an answer.
var errBroken = errors.New("the defaulter has ended the connection")

// connection carries one request at a time, which is written and whose answer is read
// by the goroutine that asks. The Transport of net/http has two goroutines of its own
// for each connection; that the three wake each other up takes as long as everything
// else about an answer that the defaulter knows already.
type connection struct {
	net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	// used is when it was last used.
	used time.Time
}

// answer is one that was read to its end.
type answer struct {
	code               int
	status, retryAfter string
	text               []byte
	// last says that the defaulter ends the connection.
	last bool
}

// roundTrip sends a request and reads the whole answer. A limit of zero is none.
func (c *connection) roundTrip(ctx context.Context, limit time.Time, request *http.Request) (*answer, error) {
	if deadline, ok := ctx.Deadline(); ok && (limit.IsZero() || deadline.Before(limit)) {
		limit = deadline
	}
	if err := c.SetDeadline(limit); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	// What is waited for ends at once when nobody wants it any more.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	got, err := c.exchange(request)
	switch {
	case !stop():
		// It may be about to end whatever the connection carries next.
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

// pool keeps the connections that are not in use.
type pool struct {
	socket string

	mutex sync.Mutex
	// idle is sorted by when they were used last.
	idle []*connection
}

func (p *pool) dial(ctx context.Context, limit time.Time) (*connection, error) {
	made, err := (&net.Dialer{Deadline: limit}).DialContext(ctx, "unix", p.socket)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: made, reader: bufio.NewReader(made), writer: bufio.NewWriter(made)}, nil
}

// take returns the connection that was used last, or nil.
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

// prune closes those that were not used for long, and those that are too many.
func (p *pool) prune(now time.Time) {
	for len(p.idle) > maxIdle || len(p.idle) > 0 && now.Sub(p.idle[0].used) > idleTime {
		_ = p.idle[0].Close()
		p.idle = p.idle[1:]
	}
}
