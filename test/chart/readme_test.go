package chart

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "write the tables of values into the README.md of the charts")

// The table of values in README.md is generated from values.yaml: go test ./chart -run README -update
func TestREADMEListsEveryValue(t *testing.T) {
	for _, folder := range []string{chartFolder(t), catalogueFolder(t)} {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var document yaml.Node
			if err := yaml.Unmarshal(testfile.Read(t, filepath.Join(folder, "values.yaml")), &document); err != nil {
				t.Fatal(err)
			}
			rows := valueRows(t, "", document.Content[0])
			table := "| Value | Default | Meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n"

			testfile.Generated{
				Path: filepath.Join(folder, "README.md"), Begin: "<!-- values:begin -->\n", End: "<!-- values:end -->",
				Update: *update, Command: "go test ./chart -run README -update",
			}.Compare(t, table)
		})
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

// TestTheReadmeNamesEveryDefinition compares the table of objects with the CustomResourceDefinitions that the chart installs.
func TestTheReadmeNamesEveryDefinition(t *testing.T) {
	folder := chartFolder(t)
	definitions, err := filepath.Glob(filepath.Join(folder, "files", "crds", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatal(definitions, err)
	}
	readme := string(testfile.Read(t, filepath.Join(folder, "README.md")))
	for _, path := range definitions {
		group, resource, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "_")
		if name := "`" + resource + "." + group + "`"; !strings.Contains(readme, name) {
			t.Errorf("README.md does not name the CustomResourceDefinition %s", name)
		}
	}
}
