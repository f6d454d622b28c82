package engine

import (
	"bytes"
	"encoding/json"

	"github.com/vmstencil/stencil/defaulting"
)

// remembered is an answer that will be the same the next time, but for what is random.
type remembered struct {
	text []byte
	// uuid is that of the firmware in the text, if one was made.
	uuid string
}

// again is the answer with an identity of its own.
func (r *remembered) again(identities Identities) []byte {
	if r.uuid == "" {
		return r.text
	}
	// Nothing else reads the same: it was drawn after the request was written.
	return bytes.ReplaceAll(r.text, []byte(r.uuid), []byte(identities.UUID()))
}

// remember keeps an answer that can be given again.
func (e *Engine) remember(key answerKey, response *defaulting.Response, size int) {
	if size > rememberedAnswer || key.libvirt != response.Environment.Libvirt {
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
		e.answers.Add(key, &remembered{text: text, uuid: uuid})
	}
}
