package server

import (
	"flag"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// loggingUsage replaces the usage texts of controller-runtime's flags, which omit the defaults of these servers, or have others.
var loggingUsage = map[string]string{
	"zap-devel":            "Log for development: console encoder, level debug, stack traces from warnings on.",
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
