package engine

import (
	"encoding/json"

	"github.com/vmstencil/stencil/test/bench/measurement"
)

// helmAnswer is what the command prints that measures Helm's engine.
type helmAnswer struct {
	Document json.RawMessage  `json:"document"`
	Text     measurement.Cost `json:"text"`
	JSON     measurement.Cost `json:"json"`
}
