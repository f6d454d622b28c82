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
	// freshness is how long an answer is given again: long enough for the machines that
	// one template makes at a time, and short enough that nobody notices a defaulter
	// that was replaced by one of another version.
	freshness = 10 * time.Second
	// rememberedAnswers bounds how many there are; one is a few KiB.
	rememberedAnswers = 256
)

// Defaulter fills in defaults; a Client does.
type Defaulter interface {
	Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error)
}

// Remembering gives the answer to a request again for a while, without asking: waking up
// the defaulter takes longer than its answer. Each answer has a UUID of its own. It is
// safe for concurrent use.
type Remembering struct {
	asked   Defaulter
	clock   clock.PassiveClock
	answers *lru.Cache
}

// NewRemembering makes one that asks a defaulter what it does not know.
func NewRemembering(asked Defaulter, clock clock.PassiveClock) *Remembering {
	return &Remembering{asked: asked, clock: clock, answers: lru.New(rememberedAnswers)}
}

// known is an answer that is remembered.
type known struct {
	response *defaulting.Response
	// uuid is that of the firmware in it, if one was made.
	uuid  string
	until time.Time
}

// Defaults asks for the defaults of a VirtualMachine, as a Defaulter does. The caller must
// not change the response.
func (r *Remembering) Defaults(ctx context.Context, request *defaulting.Request) (*defaulting.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing the request for defaults: %w", err)
	}
	key := sha256.Sum256(body)
	if found, ok := r.answers.Get(key); ok {
		if k := found.(*known); r.clock.Now().Before(k.until) {
			return k.again(), nil
		}
	}
	response, err := r.asked.Defaults(ctx, request)
	if err != nil {
		return nil, err
	}
	// The machine itself, where it was asked for, is a text with the UUID in it.
	if uuid, ok := response.Repeatable(); ok && len(response.VM) == 0 {
		r.answers.Add(key, &known{response: response, uuid: uuid, until: r.clock.Now().Add(freshness)})
	}
	return response, nil
}

// again is the answer with an identity of its own.
func (k *known) again() *defaulting.Response {
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
