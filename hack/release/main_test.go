package main

import (
	"strings"
	"testing"
)

func TestPlatforms(t *testing.T) {
	for name, tc := range map[string]struct {
		images, clients, problem string
	}{
		"a platform without OS":  {images: "arm64", problem: `-platforms: platform "arm64": want OS/ARCHITECTURE`},
		"a platform too much":    {images: "linux/amd64,", problem: `-platforms: platform ""`},
		"no platform of clients": {images: "linux/amd64", problem: `-client-platforms: platform ""`},
	} {
		t.Run(name, func(t *testing.T) {
			err := build(t.Context(), release{root: t.TempDir()}, tc.images, tc.clients, false)
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %v, want %s", err, tc.problem)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-rc.1": true, "": false, "1.2.3": false, "v1.2": false, "v1.2.3+linux": false, "v1.2.3-": false, "v01.2.3": false,
	} {
		if got := versionPattern.MatchString(version); got != want {
			t.Errorf("%q is a version: %t", version, got)
		}
	}
}
