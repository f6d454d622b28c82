package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of flags into docs/operations.md")

const (
	documentation = "../../docs/operations.md"
	tableBegin    = "<!-- flags: begin -->\n"
	tableEnd      = "<!-- flags: end -->"
)

// table returns the expected table of flags of docs/operations.md.
func table() string {
	flags := flag.NewFlagSet("stencil-manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	(&options{}).bind(flags)
	var text strings.Builder
	text.WriteString("| flag | environment | default | meaning |\n|---|---|---|---|\n")
	flags.VisitAll(func(f *flag.Flag) {
		value := ""
		if f.DefValue != "" {
			value = "`" + f.DefValue + "`"
		}
		environment := "`" + variable(f.Name) + "`"
		if f.Name == versionFlag {
			environment = ""
		}
		fmt.Fprintf(&text, "| `--%s` | %s | %s | %s |\n", f.Name, environment, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
	return text.String()
}

func TestDocumentationListsEveryFlag(t *testing.T) {
	content, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), tableBegin)
	present, after, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the table of flags", documentation)
	}
	if *update {
		if err := os.WriteFile(documentation, []byte(before+tableBegin+table()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table(), present); diff != "" {
		t.Errorf("the table of flags is not current; go test ./cmd/stencil-manager -update writes it (-want +got):\n%s", diff)
	}
}
