// Package lib holds the Rego helpers that policies use as data.lib. The rules with METADATA are for policies; all other rules are internal.
//
// Each is documented by its METADATA, tested in rego/lib, and described in
// docs/policies/helpers.md.
package lib

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.rego
var files embed.FS

// Sources are the modules by their file names.
func Sources() (map[string]string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	sources := map[string]string{}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.rego") {
			continue
		}
		content, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the helpers of policies: %w", err)
		}
		sources[entry.Name()] = string(content)
	}
	return sources, nil
}
