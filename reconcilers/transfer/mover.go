package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/vmstencil/stencil/transfer"
)

// moverTimeout limits one request to a mover.
const moverTimeout = 10 * time.Second

// moverClient speaks to movers.
type moverClient interface {
	// state returns how far a mover is.
	state(ctx context.Context, who *identity, ip string) (*transfer.State, error)
	// acknowledge lets a mover that has ended exit.
	acknowledge(ctx context.Context, who *identity, ip string) error
}

// movers speaks to movers over HTTPS.
type movers struct{}

func (movers) call(ctx context.Context, method string, who *identity, ip, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, moverTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://"+net.JoinHostPort(ip, strconv.Itoa(transfer.Port))+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+who.token)
	transport := &http.Transport{TLSClientConfig: who.client(), DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	// An acknowledgement has no content.
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNoContent {
		return nil, fmt.Errorf("the mover returned %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, transfer.MaxStateBytes+1))
	if err == nil && len(body) > transfer.MaxStateBytes {
		err = fmt.Errorf("the mover returned more than %d bytes", transfer.MaxStateBytes)
	}
	return body, err
}

// state returns how far a mover is.
func (m movers) state(ctx context.Context, who *identity, ip string) (*transfer.State, error) {
	body, err := m.call(ctx, http.MethodGet, who, ip, transfer.StatePath)
	if err != nil {
		return nil, err
	}
	state := &transfer.State{}
	if err := json.Unmarshal(body, state); err != nil {
		return nil, fmt.Errorf("reading the state of the mover: %w", err)
	}
	return state, nil
}

// acknowledge lets a mover that has ended exit.
func (m movers) acknowledge(ctx context.Context, who *identity, ip string) error {
	_, err := m.call(ctx, http.MethodPost, who, ip, transfer.AcknowledgePath)
	return err
}
