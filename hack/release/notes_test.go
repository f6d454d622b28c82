package main

import (
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const changes = "# Changes\n\n## v1.3.0\n\nLater.\n\n## v1.2.3 (2026-11-26)\n\n### New\n\n- All of it.\n\n## v1.2.2\n\n## v1.2.1\n\nFirst.\n"

func TestNotesHaveTheSectionOfTheVersion(t *testing.T) {
	root := t.TempDir()
	write(t, root, changelog, changes)
	r := of(t, root)
	digests := map[string]v1.Hash{"stencil-manager": {Algorithm: "sha256", Hex: strings.Repeat("a", 64)}}
	text, err := r.notes(digests)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Stencil v1.2.3\n\n### New\n\n- All of it.\n\n[Install](https://github.com/vmstencil/stencil/blob/v1.2.3/docs/installation.md)",
		"registry.example.com/stencil/stencil-manager:1.2.3@sha256:" + strings.Repeat("a", 64) + "\n",
		"oci://registry.example.com/stencil/charts/stencil --version 1.2.3\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, other := range []string{"Later.", "First."} {
		if strings.Contains(string(text), other) {
			t.Errorf("%q of another version is in\n%s", other, text)
		}
	}
}

func TestAReleaseNeedsNotes(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	write(t, full, changelog, changes)
	for _, each := range []struct {
		root, version string
		fails         bool
	}{
		{empty, "v1.2.3", true},
		{empty, "v1.2.3-rc.1", false},
		{full, "v1.2.2", true}, // without text
		{full, "v1.2", true},   // a part of another version
		{full, "v1.2.4", true},
		{full, "v1.2.4-rc.1", false},
		{full, "v1.2.1", false},
	} {
		r := of(t, each.root)
		r.version = each.version
		_, err := r.notes(nil)
		if got, want := "", `CHANGELOG.md has no text under a heading "## `+each.version+`": describe there what is new and what admins have to do before an upgrade`; each.fails {
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", each.version, got, want)
			}
		} else if err != nil {
			t.Errorf("%s: %v", each.version, err)
		}
	}
}
