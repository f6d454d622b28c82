package server

import (
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// loggingUsage says in our words what the flags of controller-runtime do: its own texts
// leave out what is the default here, or name another.
var loggingUsage = map[string]string{
	"zap-devel":            "Log for people: console encoder, level debug, stack traces from warnings on.",
	"zap-encoder":          "Encoding of log lines: json or console. Default json.",
	"zap-log-level":        "Least severe level that is logged: debug, info, error, panic, or a number for more than debug. Default info.",
	"zap-stacktrace-level": "Least severe level that is logged with a stack trace: info, error or panic. Default error.",
	"zap-time-encoding":    "Encoding of times in the log: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano. Default rfc3339.",
}

// BindLogging registers the flags of the log.
func BindLogging(flags *flag.FlagSet, options *zap.Options) {
	options.BindFlags(flags)
	for name, usage := range loggingUsage {
		flags.Lookup(name).Usage = usage
	}
}
