package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

const document = "docs/stencilctl.md"

// TestDocumentation runs the commands in the document, and compares their output with the
// documented one. With -update it writes the document.
func TestDocumentation(t *testing.T) {
	t.Chdir("../..")
	text := testfile.Read(t, document)
	var got strings.Builder
	console, documented := false, false
	for line := range strings.Lines(string(text)) {
		command, isCommand := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ stencilctl ")
		switch {
		case line == "```console\n":
			console = true
		case line == "```\n":
			console, documented = false, false
		case console && isCommand && !strings.Contains(command, "simulate"):
			var out bytes.Buffer
			run(t.Context(), append([]string{"stencilctl"}, strings.Fields(command)...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			got.WriteString(line + scrub(out.String()))
			documented = true
			continue
		case console && isCommand:
			documented = false // it needs a cluster: test/e2e/cli
		case console && documented:
			continue // what the command printed before
		}
		got.WriteString(line)
	}
	if *update {
		testfile.Write(t, document, got.String())
	}
	if diff := cmp.Diff(string(text), got.String()); diff != "" && !*update {
		t.Errorf("%s (-want +got), write it with -update:\n%s", document, diff)
	}
}
