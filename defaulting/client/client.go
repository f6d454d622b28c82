package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/vmstencil/stencil/defaulting"
)

// Timeout bounds a request, its retry included. It is shorter than the timeout of an admission
// webhook.
const Timeout = 1500 * time.Millisecond

// Client sends requests to the defaulter that listens on a socket. It is safe for concurrent
// use.
type Client struct{ connections pool }

// New returns a Client. It connects on first use.
func New(socket string) *Client { return &Client{connections: pool{socket: socket}} }

// Defaults requests the defaults of a VirtualMachine. A rejection is a *defaulting.Problem; any
// other error means that the defaulter was not reachable.
func (c *Client) Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing the request for defaults: %w", err)
	}
	text, err := c.Raw(ctx, body)
	if err != nil {
		return nil, err
	}
	response := &defaulting.Response{}
	if err := json.Unmarshal(text, response); err != nil {
		return nil, fmt.Errorf("reading the defaults: %w", err)
	}
	return response, nil
}

// Raw sends a request as JSON and returns the response as JSON. Its errors are those of
// Defaults.
func (c *Client) Raw(ctx context.Context, body []byte) ([]byte, error) {
	limit := time.Now().Add(Timeout)
	if existing := c.connections.take(); existing != nil {
		text, err := c.send(ctx, limit, existing, asking(body))
		// The connection may belong to a process that has ended.
		if !errors.Is(err, errBroken) {
			return text, err
		}
	}
	return c.sendOnNewConnection(ctx, limit, asking(body))
}

// Environment requests the versions and machine types with which the defaulter answers. It
// returns an error when libvirt is not available.
func (c *Client) Environment(ctx context.Context) (*defaulting.Environment, error) {
	text, err := c.sendOnNewConnection(ctx, time.Time{}, &http.Request{Method: http.MethodGet, URL: address("/v1/environment")})
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	environment := &defaulting.Environment{}
	if err := json.Unmarshal(text, environment); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return environment, nil
}

// address returns the URL of a path. The host is a placeholder: there is one socket.
func address(path string) *url.URL { return &url.URL{Scheme: "http", Host: "defaulter", Path: path} }

var defaultsAddress = address("/v1/defaults")

// asking returns the HTTP request for defaults.
func asking(body []byte) *http.Request {
	return &http.Request{
		Method: http.MethodPost, URL: defaultsAddress, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// sendOnNewConnection sends a request over a new connection.
func (c *Client) sendOnNewConnection(ctx context.Context, limit time.Time, request *http.Request) ([]byte, error) {
	fresh, err := c.connections.dial(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("asking for defaults: %w", err)
	}
	return c.send(ctx, limit, fresh, request)
}

// send sends a request and returns the connection to the pool if it can be reused.
func (c *Client) send(ctx context.Context, limit time.Time, over *connection, request *http.Request) ([]byte, error) {
	got, err := over.roundTrip(ctx, limit, request)
	if err != nil || got.last {
		_ = over.Close()
	} else {
		c.connections.put(over)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for defaults: %w", err)
	}
	if got.code == http.StatusOK {
		return got.text, nil
	}
	problem := &defaulting.Problem{}
	if err := json.Unmarshal(got.text, problem); err != nil || problem.Status != got.code {
		return nil, fmt.Errorf("asking for defaults: the answer is %s", got.status)
	}
	if seconds, err := strconv.Atoi(got.retryAfter); err == nil {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	return nil, problem
}
