package library_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/harness"
)

var update = flag.Bool("update", false, "write what the commands print into docs/policies")

// page is a file of docs/policies.
func page(name string) string { return filepath.Join(stencil.Example(".."), "policies", name) }

// TestTheFirstPolicyInFiveMinutes runs every command of docs/policies/README.md and
// input.md, and compares what is printed with the page.
func TestTheFirstPolicyInFiveMinutes(t *testing.T) {
	t.Cleanup(func() {
		must(t, "", "delete", "vmpol", "owners", "mistaken", "--ignore-not-found")
		harness.Must(t, stencil.Plane, ada, "", "delete", "vm", "--all", "--namespace=team-a")
	})
	shell := harness.Shell(t, "../../..")
	replayed := harness.Page{Folder: shell.Folder, Update: *update, Environment: func(user string) []string {
		if user == "ada" {
			return shell.Environment(ada.Kubeconfig)
		}
		return shell.Environment(stencil.Plane.Kubeconfig())
	}}
	for _, name := range []string{"README.md", "input.md"} {
		content := testfile.Read(t, page(name))
		got := include(t, replayed.Replay(t, string(content)))
		if *update {
			testfile.Write(t, page(name), got)
			continue
		}
		if diff := cmp.Diff(string(content), got); diff != "" {
			t.Errorf("%s says otherwise (-page +printed):\n%s", name, diff)
		}
	}
}

// include inserts the files and documents that a page shows.
func include(t *testing.T, content string) string {
	t.Helper()
	for name, text := range map[string]func() string{
		"owners":  func() string { return manifest(t, "policies/owners.yaml") },
		"example": func() string { return decision(t) },
	} {
		begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
		head, rest, found := strings.Cut(content, begin)
		if !found {
			continue
		}
		_, tail, _ := strings.Cut(rest, end)
		content = head + begin + text() + end + tail
	}
	return content
}

// manifest is an example as a block of code, without its leading comment.
func manifest(t *testing.T, name string) string {
	t.Helper()
	content := testfile.Read(t, stencil.Example(name))
	_, body, _ := strings.Cut(string(content), "\n")
	return "\n```yaml\n" + body + "```\n\n"
}
