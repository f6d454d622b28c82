package chart

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the table of values into the chart's README.md")

// The table of values in README.md is generated from values.yaml: go test ./chart -run README -update
func TestREADMEListsEveryValue(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chartFolder(t), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	rows := valueRows(t, "", document.Content[0])
	table := "| Value | Default | Meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"

	const begin, end = "<!-- values:begin -->\n", "<!-- values:end -->"
	path := filepath.Join(chartFolder(t), "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(readme), begin)
	got, tail, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s lacks the lines %s and %s", path, strings.TrimSpace(begin), end)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table, got); diff != "" {
		t.Errorf("README.md is not current; run go test ./chart -run README -update (-values.yaml +README.md):\n%s", diff)
	}
}

// valueRows returns a row for every value in a mapping. A node with a comment is one value, however large; one without must be a mapping of values.
func valueRows(t *testing.T, prefix string, mapping *yaml.Node) []string {
	t.Helper()
	var rows []string
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		path := prefix + key.Value
		if key.HeadComment == "" {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				t.Errorf("values.yaml: %s has no comment", path)
				continue
			}
			rows = append(rows, valueRows(t, path+".", value)...)
			continue
		}
		var decoded any
		if err := value.Decode(&decoded); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		comment := strings.Join(strings.Fields(strings.ReplaceAll(key.HeadComment, "#", "")), " ")
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", path, encoded, comment))
	}
	return rows
}
