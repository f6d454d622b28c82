package engine

import (
	"bytes"
	"encoding/json"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
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

var firmwareUUID = domain.In("domain", "firmware", "uuid").String()

// remember keeps an answer. One with MAC addresses is not kept: they are drawn until the
// machine has none twice.
func (e *Engine) remember(key answerKey, response *defaulting.Response, size int) {
	if size > rememberedAnswer || key.libvirt != response.Environment.Libvirt {
		return
	}
	r := &remembered{}
	for _, set := range response.Set {
		if set.Source != defaulting.FromStencil {
			continue
		}
		uuid, ok := set.Value.(string)
		if set.Path != firmwareUUID || !ok {
			return
		}
		r.uuid = uuid
	}
	again := *response
	if again.Cache == defaulting.Miss {
		again.Cache = defaulting.Hit
	}
	var err error
	if r.text, err = json.Marshal(again); err == nil {
		e.answers.Add(key, r)
	}
}
