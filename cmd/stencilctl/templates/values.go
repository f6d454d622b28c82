package templates

import (
	"errors"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/source"
)

// Values merges the parameter values of a file and of the command line, which takes precedence.
func Values(reader *source.Reader, given []string, path string) (map[string]string, error) {
	all := map[string]string{}
	if path != "" {
		content, err := reader.Content(path)
		if err != nil {
			return nil, err
		}
		if path == source.Stdin {
			path = source.StdinName
		}
		if all, err = readValues(content); err != nil {
			return nil, cli.Usage(fmt.Errorf("%s%w", path, err))
		}
	}
	seen := map[string]bool{}
	for _, each := range given {
		name, value, found := strings.Cut(each, "=")
		switch {
		case !found || name == "":
			// It is not printed: it may be a value without a name.
			return nil, cli.Usage(errors.New("--param: want NAME=VALUE"))
		case seen[name]:
			return nil, cli.Usage(fmt.Errorf("--param: %s is given twice", name))
		}
		seen[name], all[name] = true, value
	}
	return all, nil
}

// readValues parses a file of values: a YAML or JSON map, or lines NAME=VALUE. Errors begin
// with the position, and contain no value.
func readValues(content []byte) (map[string]string, error) {
	if isLines(string(content)) {
		return readLines(string(content))
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(content, &root); err != nil {
		return nil, fmt.Errorf(": neither YAML nor lines NAME=VALUE: %w", err)
	}
	read := map[string]string{}
	if len(root.Content) == 0 {
		return read, nil
	}
	pairs := root.Content[0]
	if pairs.Kind != yamlv3.MappingNode {
		return nil, placed(pairs, "want a map of names and values")
	}
	for i := 0; i+1 < len(pairs.Content); i += 2 {
		key, value := pairs.Content[i], pairs.Content[i+1]
		if value.Kind == yamlv3.AliasNode {
			value = value.Alias
		}
		if _, twice := read[key.Value]; twice {
			return nil, placed(key, "%s is given twice", key.Value)
		}
		if value.Kind != yamlv3.ScalarNode {
			return nil, placed(value, "the value of %s must be text, a number, true or false", key.Value)
		}
		// A number is used as it is written: 1.10 is not 1.1.
		read[key.Value] = value.Value
		if value.Tag == "!!null" {
			read[key.Value] = ""
		}
	}
	return read, nil
}

func placed(at *yamlv3.Node, format string, arguments ...any) error {
	return fmt.Errorf(":%d:%d: %s", at.Line, at.Column, fmt.Sprintf(format, arguments...))
}

// isLines reports whether the first line with content is NAME=VALUE.
func isLines(content string) bool {
	for line := range strings.Lines(content) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			name, _, found := strings.Cut(line, "=")
			return found && strings.Trim(name, nameCharacters) == ""
		}
	}
	return false
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func readLines(content string) (map[string]string, error) {
	read, row := map[string]string{}, 0
	for line := range strings.Lines(content) {
		row++
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" {
			return nil, fmt.Errorf(":%d:1: want NAME=VALUE", row)
		}
		if _, twice := read[name]; twice {
			return nil, fmt.Errorf(":%d:1: %s is given twice", row, name)
		}
		read[name] = value
	}
	return read, nil
}
