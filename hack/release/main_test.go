package main

import (
	"strings"
	"testing"
)

func TestArgumentsThatNameNoRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		version, images, clients string
		problem                  string
	}{
		"no version":             {problem: `-version is ""`},
		"a version without v":    {version: "1.2.3", problem: `-version is "1.2.3": want a version such as v0.1.0`},
		"a short version":        {version: "v1.2", problem: "want a version"},
		"build metadata":         {version: "v1.2.3+linux", problem: "want a version"},
		"an empty pre-release":   {version: "v1.2.3-", problem: "want a version"},
		"a platform without OS":  {version: "v1.2.3-rc.1", images: "arm64", problem: `-platforms: platform "arm64": want OS/ARCHITECTURE`},
		"a platform too much":    {version: "v1.2.3", images: "linux/amd64,", problem: `-platforms: platform ""`},
		"no platform of clients": {version: "v1.2.3", images: "linux/amd64", problem: `-client-platforms: platform ""`},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), release{origin: origin{version: tc.version}, root: t.TempDir()}, tc.images, tc.clients, false, false)
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %v, want %s", err, tc.problem)
			}
		})
	}
}
