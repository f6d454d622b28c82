package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
)

var update = flag.Bool("update", false, "write the table of flags into docs/operations.md")

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
	testfile.Generated{
		Path: "../../docs/operations.md", Begin: "<!-- flags: begin -->\n", End: "<!-- flags: end -->",
		Update: *update, Command: "go test ./cmd/stencil-manager -update",
	}.Compare(t, table())
}
