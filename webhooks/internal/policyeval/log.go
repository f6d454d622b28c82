package policyeval

import (
	"math/rand/v2"

	"github.com/go-logr/logr"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	policyinput "github.com/vmstencil/stencil/policies/input"
	"github.com/vmstencil/stencil/rego"
)

// Log writes a sample of the decisions, one line each.
type Log struct {
	logger logr.Logger
	sample float64
	random func() float64
}

// NewLog returns a Log that writes the given fraction of the decisions, between 0 and 1. If sample is 0, it returns
// nil, which writes none. random returns a number in [0, 1); if nil, rand.Float64 is used.
func NewLog(logger logr.Logger, sample float64, random func() float64) *Log {
	if sample <= 0 {
		return nil
	}
	if random == nil {
		random = rand.Float64
	}
	return &Log{logger, sample, random}
}

func (l *Log) write(c *policyinput.Case, uid string, d policyset.Decision, document rego.Document, input *rego.Input) {
	if l == nil || l.random() >= l.sample {
		return
	}
	record, err := c.Record(uid, d, document, input)
	if err != nil {
		l.logger.Error(err, "a decision could not be logged", "requestID", uid)
		return
	}
	l.logger.Info("decided about a request", "decision", record)
}
