package serving

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// requestLogger is the logger of a request. It knows of the request what controller-runtime's own logger would say, but asks only when
// a line is written: the sink encodes values as soon as it has them, and most requests write no line.
func requestLogger(base logr.Logger, request *admission.Request) logr.Logger {
	if request == nil || base.GetSink() == nil {
		return base
	}
	return base.WithSink(lateSink{LogSink: base.GetSink(), logger: func() logr.Logger {
		return admission.DefaultLogConstructor(base, request)
	}})
}

// lateSink is a sink whose values are added when it is first needed. What it embeds says which levels are enabled.
type lateSink struct {
	logr.LogSink
	logger func() logr.Logger
}

// sink is the sink with its values. Callers are one frame further away than it assumes.
func (s lateSink) sink() logr.LogSink { return s.logger().WithCallDepth(1).GetSink() }

// Info implements logr.LogSink.
func (s lateSink) Info(level int, message string, values ...any) {
	s.sink().Info(level, message, values...)
}

// Error implements logr.LogSink.
func (s lateSink) Error(err error, message string, values ...any) {
	s.sink().Error(err, message, values...)
}

// WithValues implements logr.LogSink.
func (s lateSink) WithValues(values ...any) logr.LogSink {
	return s.logger().GetSink().WithValues(values...)
}

// WithName implements logr.LogSink.
func (s lateSink) WithName(name string) logr.LogSink { return s.logger().GetSink().WithName(name) }
