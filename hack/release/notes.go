package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	changelog = "CHANGELOG.md"
	notesFile = "notes.md"
)

// notes returns the release notes: the section of the version in the changelog, and the images with their digests. A pre-release needs no section.
func (r release) notes(digests map[string]v1.Hash) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(r.root, changelog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the changelog: %w", err)
	}
	section := section(string(content), r.version)
	if section == "" && !strings.Contains(r.version, "-") {
		return nil, fmt.Errorf("%s has no text under a heading \"## %s\": describe there what is new and what admins have to do before an upgrade", changelog, r.version)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# Stencil %s\n\n", r.version)
	if section != "" {
		fmt.Fprintf(&text, "%s\n\n", section)
	}
	documentation := source + "/blob/" + r.version + "/docs/"
	fmt.Fprintf(&text, "[Install](%sinstallation.md), [upgrade](%sinstallation.md#upgrade), [verify](%sverify.md).\n\n## Images\n\n```\n%s```\n\n## Charts\n\n```\n", documentation, documentation, documentation, r.list(digests))
	for _, each := range charts {
		fmt.Fprintf(&text, "oci://%s/%s/%s --version %s\n", r.repository, chartFolder, each, r.tag())
	}
	text.WriteString("```\n")
	return []byte(text.String()), nil
}

// section returns the text under the heading of a version, such as "## v0.1.0" or "## v0.1.0 (2026-11-26)".
func section(text, version string) string {
	var found bool
	var lines []string
	for line := range strings.Lines(text) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			if found {
				break
			}
			name, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			found = name == version
			continue
		}
		if found {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
