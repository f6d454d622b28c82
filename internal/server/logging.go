package server

import (
	"flag"
	"strconv"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// loggingUsage are the usage texts of the flags. Those of controller-runtime omit the defaults of these servers, or have others.
var loggingUsage = map[string]string{
	"v":                    "Verbosity as virt-operator gives it to KubeVirt's components: up to 2 is the same as --zap-log-level=info, 3 is debug, and more is more than debug.",
	"zap-devel":            "Log for development: console encoder, level debug, stack traces from warnings on.",
	"zap-encoder":          "Encoding of log lines: json or console. Default json.",
	"zap-log-level":        "Least severe level that is logged: debug, info, error, panic, or a number for more than debug. Default info.",
	"zap-stacktrace-level": "Least severe level that is logged with a stack trace: info, error or panic. Default error.",
	"zap-time-encoding":    "Encoding of times in the log: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano. Default rfc3339.",
}

// kubeVirtVerbosity is the verbosity with which KubeVirt's components log by default.
const kubeVirtVerbosity = 2

// BindLogging registers the flags of the log.
func BindLogging(flags *flag.FlagSet, options *zap.Options) {
	options.BindFlags(flags)
	flags.Func("v", "", func(text string) error {
		verbosity, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		level := "info"
		if verbosity > kubeVirtVerbosity {
			level = strconv.Itoa(verbosity - kubeVirtVerbosity)
		}
		return flags.Set("zap-log-level", level)
	})
	for name, usage := range loggingUsage {
		flags.Lookup(name).Usage = usage
	}
}

// quiet leaves out the line of controller-runtime about each failed probe, which has no reason: "statuses": [{},{}]. The checks log name and reason.
type quiet struct{ zapcore.Core }

// Check implements zapcore.Core.
func (q quiet) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message == "healthz check failed" {
		return checked
	}
	return q.Core.Check(entry, checked)
}

// With implements zapcore.Core.
func (q quiet) With(fields []zapcore.Field) zapcore.Core { return quiet{q.Core.With(fields)} }
