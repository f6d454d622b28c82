package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/identity"
)

const (
	// cacheLifetime is how long a response is reused: long enough for the VirtualMachines that one
	// template creates at a time, and short enough that a replaced defaulter of another version
	// takes effect soon.
	cacheLifetime = 10 * time.Second
	// maxCachedResponses bounds the number of cached responses, of a few KiB each.
	maxCachedResponses = 256
)

// Defaulter fills in defaults. Client implements it.
type Defaulter interface {
	Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error)
}

// CachingDefaulter caches responses for a while, because waking the defaulter takes longer than
// computing the response. Each response receives its own UUID. It is safe for concurrent use.
type CachingDefaulter struct {
	defaulter Defaulter
	clock     clock.PassiveClock
	answers   *lru.Cache
}

// NewCachingDefaulter returns a cache in front of a defaulter.
func NewCachingDefaulter(defaulter Defaulter, clock clock.PassiveClock) *CachingDefaulter {
	return &CachingDefaulter{defaulter: defaulter, clock: clock, answers: lru.New(maxCachedResponses)}
}

// cachedResponse is a cached response.
type cachedResponse struct {
	response *defaulting.Response
	// uuid is the generated firmware UUID in the response, if any.
	uuid  string
	until time.Time
}

// Defaults returns the defaults of a VirtualMachine, as a Defaulter does. The caller must not
// change the response.
func (r *CachingDefaulter) Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing the request for defaults: %w", err)
	}
	key := sha256.Sum256(body)
	if found, ok := r.answers.Get(key); ok {
		if k := found.(*cachedResponse); r.clock.Now().Before(k.until) {
			return k.again(), nil
		}
	}
	response, err := r.defaulter.Defaults(ctx, request)
	if err != nil {
		return nil, err
	}
	// A response with the VirtualMachine itself contains the UUID inside its text and is not
	// cached.
	if uuid, ok := response.Repeatable(); ok && len(response.VM) == 0 {
		r.answers.Add(key, &cachedResponse{response: response, uuid: uuid, until: r.clock.Now().Add(cacheLifetime)})
	}
	return response, nil
}

// again returns the response with its own UUID.
func (k *cachedResponse) again() *defaulting.Response {
	response := *k.response
	if response.Cache == defaulting.Miss {
		response.Cache = defaulting.Hit
	}
	if k.uuid == "" {
		return &response
	}
	uuid := identity.Random{}.UUID()
	response.Set = slices.Clone(response.Set)
	for i := range response.Set {
		if response.Set[i].Value == k.uuid {
			response.Set[i].Value = uuid
		}
	}
	response.Patch = slices.Clone(response.Patch)
	for i := range response.Patch {
		if response.Patch[i].Value == k.uuid {
			response.Patch[i].Value = uuid
		}
	}
	return &response
}
