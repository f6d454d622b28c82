package library_test

import (
	"bytes"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
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
	cli := filepath.Join(t.TempDir(), "stencilctl")
	build := exec.Command("go", "build", "-o", cli, "./cmd/stencilctl")
	build.Dir = stencil.Example("../..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building stencilctl: %v\n%s", err, out)
	}
	for _, name := range []string{"README.md", "input.md"} {
		content := testfile.Read(t, page(name))
		got := include(t, replay(t, string(content), cli))
		if *update {
			testfile.Write(t, page(name), got)
			continue
		}
		if diff := cmp.Diff(string(content), got); diff != "" {
			t.Errorf("%s says otherwise (-page +printed):\n%s", name, diff)
		}
	}
}

// replay returns a page with the present output of its commands.
func replay(t *testing.T, content, cli string) string {
	t.Helper()
	var text strings.Builder
	for rest := content; ; {
		before, after, found := strings.Cut(rest, "```console\n")
		text.WriteString(before)
		if !found {
			return text.String()
		}
		block, tail, _ := strings.Cut(after, "```")
		text.WriteString("```console\n")
		first := true
		for line := range strings.Lines(block) {
			as, call, isCommand := strings.Cut(strings.TrimRight(line, "\n"), "$ ")
			if !isCommand || strings.Contains(as, " ") {
				continue
			}
			if !first {
				text.WriteString("\n")
			}
			first = false
			text.WriteString(line)
			text.WriteString(printed(t, as, call, cli, output(block, line)))
		}
		text.WriteString("```")
		rest = tail
	}
}

// output returns the output of a command line on the page.
func output(block, line string) string {
	_, after, _ := strings.Cut(block, line)
	text, _, _ := strings.Cut(after, "\n\n")
	return strings.TrimRight(text, "\n") + "\n"
}

// printed returns the output of a command. The cluster observes policies and VirtualMachines a moment after they are stored, so a command with an
// output that differs from the page is repeated, if that does no harm.
func printed(t *testing.T, as, call, cli, want string) string {
	t.Helper()
	words := strings.Fields(call)
	var got string
	run := func() string {
		var user *controlplane.User
		if as == "ada" {
			user = ada
		}
		if words[0] == "stencilctl" {
			command := exec.Command(cli, words[1:]...)
			command.Dir = stencil.Example("../..")
			var out bytes.Buffer
			command.Stdout, command.Stderr = &out, &out
			// The page shows the exit code as part of the text.
			_ = command.Run()
			return out.String()
		}
		args := make([]string, len(words)-1)
		for i, word := range words[1:] {
			args[i] = strings.ReplaceAll(strings.Trim(word, "'"), "docs/examples", strings.TrimSuffix(stencil.Example(""), "/"))
		}
		out := kubectl(t, user, "", args...)
		return strings.ReplaceAll(harness.WithoutReadiness(out.Stderr)+out.Stdout, stencil.Example("")+"/", "docs/examples/")
	}
	got = run()
	if got != want && harmless(words, got) {
		eventuallyOr(t, func() bool { got = run(); return got == want || !harmless(words, got) })
	}
	return strings.TrimRight(got, "\n") + "\n"
}

// harmless reports whether a command can be repeated: it reads, or it was denied.
func harmless(words []string, got string) bool {
	return len(words) > 1 && (words[1] == "get" || words[1] == "wait" || words[1] == "create" && strings.Contains(got, "Error from server"))
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
