package attacks_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/gen"
	"github.com/vmstencil/stencil/test/harness"
)

// TestATeamHasExactlyOneCatalogueNamespace runs the commands of docs/approvals.md for an admin, then those of the team, compares the output with the
// page, and tries to bypass the restriction.
func TestATeamHasExactlyOneCatalogueNamespace(t *testing.T) {
	ben := harness.User(t, stencil.Plane, "ben", gen.Group("team-b"))
	t.Cleanup(func() {
		mustKubectl(t, nil, "", "delete", "templateapproval", "team-b", "--ignore-not-found")
		mustKubectl(t, nil, "", "delete", "rolebinding", "team-b-uses-templates", "team-b-sees-templates", "--namespace=golden", "--ignore-not-found")
		mustKubectl(t, nil, "", "delete", "namespace", "team-b", "--ignore-not-found", "--wait=false")
	})
	section := documented(t, "## Give a team exactly one catalogue namespace")
	for _, c := range commands(t, fenced(t, section, "sh")) {
		run := kubectl(t, nil, "", c.args...)
		if run.Code != 0 {
			t.Fatalf("%s: %s%s", c.line, run.Stdout, run.Stderr)
		}
	}
	for _, c := range commands(t, fenced(t, section, "console")) {
		if c.as != "ben" {
			t.Fatalf("%s: only ben shows what he sees here", c.line)
		}
		// A new permission takes effect a moment later.
		eventually(t, c.line+" prints what the page says", func() string {
			run := kubectl(t, ben, "", c.args...)
			if got := strings.TrimSpace(run.Stdout + harness.WithoutReadiness(run.Stderr)); got != c.output {
				return c.line + " printed:\n" + got + "\nand the page says:\n" + c.output
			}
			return ""
		})
	}

	fedora := testfile.Read(t, stencil.Example("golden/fedora.yaml"))
	own := strings.Replace(string(fedora), "namespace: golden", "namespace: team-b", 1)
	mustKubectl(t, nil, own, "create", "--namespace=team-b", "-f", "-")
	for role, user := range map[string]*controlplane.User{"stencil-template-user": ben, "kubevirt.io:edit": mallory} {
		harness.Bind(t, stencil.Plane, user, "team-b", role)
	}
	attack := func(ref string) string { return vm("attack", ref) }
	for _, tc := range []struct {
		name     string
		as       *controlplane.User
		manifest string
		want     string
	}{
		{"a template of the team's own, though it may use it", ben, attack("team-b/fedora"), "does not approve template team-b/fedora"},
		{"a template of a namespace that is not its catalogue", ben, attack(namespaces.Of(t) + "/fedora"), "may not use it"},
		{"somebody of another team, who may use the catalogue", mallory, attack("golden/fedora"), `approval "team-b"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eventually(t, "the machine is refused", func() string {
				out := kubectl(t, tc.as, tc.manifest, "create", "--namespace=team-b", "-f", "-")
				if out.Code == 0 || !strings.Contains(out.Stderr, tc.want) {
					return "standard error lacks " + tc.want + ":\n" + out.Stdout + out.Stderr
				}
				return ""
			})
		})
	}
	if left := mustKubectl(t, nil, "", "get", "virtualmachines", "--namespace=team-b", "-o", "name").Stdout; strings.Contains(left, "attack") {
		t.Errorf("something was created: %s", left)
	}
}

// documented returns the section of docs/approvals.md under the heading.
func documented(t *testing.T, heading string) string {
	t.Helper()
	page := testfile.Read(t, filepath.Join(stencil.Example(".."), "approvals.md"))
	_, section, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/approvals.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// fenced returns the first block of code in that language.
func fenced(t *testing.T, section, language string) string {
	t.Helper()
	_, block, found := strings.Cut(section, "\n```"+language+"\n")
	if !found {
		t.Fatalf("the section has no block of %s", language)
	}
	block, _, _ = strings.Cut(block, "\n```")
	return block
}

// command is a line of a block of code that calls kubectl.
type command struct {
	line string
	// as is the user of the prompt, empty in a block without prompts.
	as   string
	args []string
	// output is the output of the command on the page.
	output string
}

func commands(t *testing.T, block string) []command {
	t.Helper()
	var all []command
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
		line = strings.TrimRight(line, "\n")
		as, call, prompted := strings.Cut(line, "$ ")
		if !prompted {
			as, call = "", line
		}
		call, isCall := strings.CutPrefix(call, "kubectl ")
		switch {
		case isCall:
			call = strings.ReplaceAll(strings.ReplaceAll(call, "'", ""), "docs/examples", stencil.Example(""))
			args := strings.Fields(call)
			all = append(all, command{line: line, as: as, args: args})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.output = strings.TrimSpace(last.output + "\n" + line)
		case strings.TrimSpace(line) != "":
			t.Fatalf("%q is no call of kubectl", line)
		}
	}
	if len(all) == 0 {
		t.Fatal("the block calls nothing")
	}
	return all
}
