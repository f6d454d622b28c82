package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/vmstencil/stencil/defaulting"
)

// Timeout is how long a request may take, with its retry: less than an admission
// webhook has.
const Timeout = 1500 * time.Millisecond

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 8 << 20

// Client asks the defaulter that listens on a socket. It is safe for concurrent use.
type Client struct {
	pooled *http.Client
	fresh  *http.Client
}

// New makes a Client. It connects when it is used.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", socket)
	}
	return &Client{
		pooled: &http.Client{Transport: &http.Transport{
			DialContext: dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
		}},
		fresh: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}},
	}
}

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
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	text, err := post(ctx, c.pooled, body)
	var problem *defaulting.Problem
	if err == nil || errors.As(err, &problem) || ctx.Err() != nil {
		return text, err
	}
	// The connection may be one of a process that is gone.
	return post(ctx, c.fresh, body)
}

// Environment asks with what the defaulter makes its answers. It fails when libvirt
// cannot be asked.
func (c *Client) Environment(ctx context.Context) (*defaulting.Environment, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://defaulter/v1/environment", nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	text, err := do(c.fresh, request)
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	environment := &defaulting.Environment{}
	if err := json.Unmarshal(text, environment); err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return environment, nil
}

func post(ctx context.Context, client *http.Client, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://defaulter/v1/defaults", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking for defaults: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	return do(client, request)
}

func do(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking for defaults: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := readAll(response)
	if err != nil {
		return nil, fmt.Errorf("reading the defaults: %w", err)
	}
	if response.StatusCode == http.StatusOK {
		return text, nil
	}
	problem := &defaulting.Problem{}
	if err := json.Unmarshal(text, problem); err != nil || problem.Status != response.StatusCode {
		return nil, fmt.Errorf("asking for defaults: the answer is %s", response.Status)
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		problem.RetryAfter = time.Duration(seconds) * time.Second
	}
	return nil, problem
}

func readAll(response *http.Response) ([]byte, error) {
	if size := response.ContentLength; size >= 0 && size <= maxAnswer {
		text := make([]byte, size)
		_, err := io.ReadFull(response.Body, text)
		return text, err
	}
	return io.ReadAll(io.LimitReader(response.Body, maxAnswer))
}
