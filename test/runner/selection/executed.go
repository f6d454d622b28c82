package selection

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Executed says which packages of the product a package of tests executes in other processes, beyond what starting them executes: folders by
// folders. It is measured, and stored in test/executed.txt.
type Executed map[string][]string

func executedFile(root string) string { return filepath.Join(root, "test", "executed.txt") }

// By reports whether tests in a folder execute a package of the product. Tests that were not measured execute everything, and what no measurement has
// seen is executed by all: packages of declarations, and new ones.
func (e Executed) By(tests, product string) bool {
	measured, known := e[tests]
	if !known || slices.Contains(measured, product) {
		return true
	}
	for _, each := range e {
		if slices.Contains(each, product) {
			return false
		}
	}
	return true
}

// ReadExecuted reads the measurement; without one, all tests execute everything.
func ReadExecuted(root string) (Executed, error) {
	content, err := os.ReadFile(executedFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what tests execute: %w", err)
	}
	executed := Executed{}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") {
			executed[strings.TrimSuffix(fields[0], ":")] = fields[1:]
		}
	}
	return executed, nil
}

// Write stores the measurement.
func (e Executed) Write(root string) error {
	var text strings.Builder
	text.WriteString("# The packages of Stencil that each package of end-to-end tests executes in other processes, beyond what starting these executes.\n" +
		"# Measured by `make measure`: programs built with -cover.\n")
	for _, tests := range slices.Sorted(maps.Keys(e)) {
		fmt.Fprintf(&text, "%s: %s\n", tests, strings.Join(e[tests], " "))
	}
	return os.WriteFile(executedFile(root), []byte(text.String()), 0o644)
}

// Blocks are the executed blocks of a coverage profile, by the folder of their package.
type Blocks map[string]map[string]bool

// ReadProfile reads the executed blocks of a profile in the text format: a line is NAME.go:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func ReadProfile(name string) (Blocks, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	defer file.Close()
	blocks := Blocks{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[2] == "0" {
			continue
		}
		source, _, _ := strings.Cut(fields[0], ":")
		folder := FolderOf(source[:strings.LastIndex(source, "/")])
		if blocks[folder] == nil {
			blocks[folder] = map[string]bool{}
		}
		blocks[folder][fields[0]] = true
	}
	return blocks, lines.Err()
}

// Beyond are the folders with blocks that started has not.
func (b Blocks) Beyond(started Blocks) []string {
	var folders []string
	for folder, blocks := range b {
		for each := range blocks {
			if !started[folder][each] {
				folders = append(folders, folder)
				break
			}
		}
	}
	slices.Sort(folders)
	return folders
}
