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

// Timeout is how long a request may take, with its retry: less than an admission
// webhook has.
const Timeout = 1500 * time.Millisecond

// Client asks the defaulter that listens on a socket. It is safe for concurrent use.
type Client struct{ connections pool }

// New makes a Client. It connects when it is used.
func New(socket string) *Client { return &Client{connections: pool{socket: socket}} }

// Defaults asks for the defaults of a VirtualMachine. A refusal is a
// *defaulting.Problem; any other error means that the defaulter could not be asked.
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

// Raw does that with a request and a response as JSON.
func (c *Client) Raw(ctx context.Context, body []byte) ([]byte, error) {
	limit := time.Now().Add(Timeout)
	if known := c.connections.take(); known != nil {
		text, err := c.ask(ctx, limit, known, asking(body))
		// The connection may be one of a process that is gone.
		if !errors.Is(err, errBroken) {
			return text, err
		}
	}
	return c.askAnew(ctx, limit, asking(body))
}

// Environment asks with what the defaulter makes its answers. It fails when libvirt
// cannot be asked.
func (c *Client) Environment(ctx context.Context) (*defaulting.Environment, error) {
	text, err := c.askAnew(ctx, time.Time{}, &http.Request{Method: http.MethodGet, URL: address("/v1/environment")})
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	environment := &defaulting.Environment{}
	if err := json.Unmarshal(text, environment); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return environment, nil
}

// address is what is asked. The host says nothing: there is one socket.
func address(path string) *url.URL { return &url.URL{Scheme: "http", Host: "defaulter", Path: path} }

var defaultsAddress = address("/v1/defaults")

// asking is a request for defaults.
func asking(body []byte) *http.Request {
	return &http.Request{
		Method: http.MethodPost, URL: defaultsAddress, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// askAnew asks over a connection that nobody has used.
func (c *Client) askAnew(ctx context.Context, limit time.Time, request *http.Request) ([]byte, error) {
	fresh, err := c.connections.dial(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("asking for defaults: %w", err)
	}
	return c.ask(ctx, limit, fresh, request)
}

// ask sends a request and keeps the connection if it can be used again.
func (c *Client) ask(ctx context.Context, limit time.Time, over *connection, request *http.Request) ([]byte, error) {
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
