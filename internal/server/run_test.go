package server

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/vmstencil/stencil/internal/buildinfo"
)

func TestRun(t *testing.T) {
	// The settings of the tests belong to the whole process.
	environment := func(string) (string, bool) { return "100", true }
	settings := func(config func() (*rest.Config, error), serve func(context.Context, *rest.Config, logr.Logger) error) func() (Settings, error) {
		return func() (Settings, error) { return Settings{Log: &zap.Options{}, Config: config, Serve: serve}, nil }
	}
	found := func() (*rest.Config, error) { return &rest.Config{}, nil }
	fails := func(err error) func() (Settings, error) { return func() (Settings, error) { return Settings{}, err } }
	for name, tc := range map[string]struct {
		parse                  func() (Settings, error)
		want                   int
		wantStdout, wantStderr string
	}{
		"help of package flag is asked for":  {parse: fails(flag.ErrHelp)},
		"help of package pflag is asked for": {parse: fails(pflag.ErrHelp)},
		"the flags are wrong":                {parse: fails(errors.New("--user: must not be empty")), want: ExitUsage, wantStderr: "stencil-test: --user: must not be empty\n"},
		"the version is asked for":           {parse: func() (Settings, error) { return Settings{Version: true}, nil }, wantStdout: "stencil-test v1.2.3 (revision "},
		"there is no API server": {
			parse: settings(func() (*rest.Config, error) { return nil, errors.New("no configuration") }, nil),
			want:  ExitFailure, wantStderr: `"msg":"finding the API server failed","error":"no configuration"`,
		},
		"serving fails": {
			parse: settings(found, func(context.Context, *rest.Config, logr.Logger) error { return errors.New("the port is taken") }),
			want:  ExitFailure, wantStderr: `"msg":"stencil-test failed","error":"the port is taken"`,
		},
		"it serves, as itself, and ends": {
			parse: settings(found, func(_ context.Context, config *rest.Config, _ logr.Logger) error {
				if config.UserAgent != "stencil-test/v1.2.3" {
					return errors.New(config.UserAgent)
				}
				return nil
			}),
			wantStderr: `"msg":"stopped"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			got := Run(t.Context(), buildinfo.Current("stencil-test", "v1.2.3"), tc.parse, environment, &stdout, &stderr)
			if got != tc.want || !strings.HasPrefix(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("exit code %d, want %d; output %q, error output %q", got, tc.want, stdout.String(), stderr.String())
			}
		})
	}
}

func TestTheFlagsOfTheLogAreDescribedInOneStyle(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	BindLogging(flags, &zap.Options{})
	flags.VisitAll(func(f *flag.Flag) {
		if f.Usage != loggingUsage[f.Name] {
			t.Errorf("--%s is described by its library: %s", f.Name, f.Usage)
		}
	})
}
