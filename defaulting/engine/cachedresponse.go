package engine

import (
	"bytes"
	"encoding/json"

	"github.com/vmstencil/stencil/defaulting"
)

// cachedResponse is a cached response, identical on each use except for random values.
type cachedResponse struct {
	text []byte
	// uuid is the generated firmware UUID in the text, if any.
	uuid string
}

// again returns the response with its own UUID.
func (r *cachedResponse) again(identities Identities) []byte {
	if r.uuid == "" {
		return r.text
	}
	// The UUID occurs nowhere else in the text: it was drawn after the request was written.
	return bytes.ReplaceAll(r.text, []byte(r.uuid), []byte(identities.UUID()))
}

// cache caches a response that can be reused.
func (e *Engine) cache(key answerKey, response *defaulting.Response, size int) {
	if size > maxCachedResponseBytes || key.libvirt != response.Environment.Libvirt {
		return
	}
	uuid, repeatable := response.Repeatable()
	if !repeatable {
		return
	}
	again := *response
	if again.Cache == defaulting.Miss {
		again.Cache = defaulting.Hit
	}
	if text, err := json.Marshal(again); err == nil {
		e.answers.Add(key, &cachedResponse{text: text, uuid: uuid})
	}
}
