package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
	"github.com/vmstencil/stencil/test/product"
)

// Page runs the commands on a page of the documentation.
type Page struct {
	// Folder is the working directory, with the folders of the repository that the commands name.
	Folder string
	// Environment returns the environment variables of the user whose name is before the prompt; "" is a prompt without a name.
	Environment func(user string) []string
	// Update repeats no command until it prints what the page shows. An output that differs only in what varies between runs, such as UIDs and ages,
	// or in lines for which the page has "[...]", stays as it is on the page.
	Update bool
	// Commands counts what has run.
	Commands int
}

// opensDocument matches the word that ends the standard input of a command.
var opensDocument = regexp.MustCompile(`<<(\w+)`)

// prompted matches a command line with its prompt.
var prompted = regexp.MustCompile(`^([a-z]*)\$ (.+)$`)

// The marks of a page, in comments that readers do not see. A mark applies to the commands after it, until the next one.
var (
	// ranBy names the test that runs the commands, or says why none does.
	ranBy = regexp.MustCompile(`^<!-- commands: (.+) -->$`)
	// first is a command that prepares what the page assumes.
	first = regexp.MustCompile(`^<!-- first: ([a-z]*)\$ (.+) -->$`)
)

// Replay runs the console blocks that the mark assigns to the calling test, in order, and returns the page with the present output.
func (p *Page) Replay(t *testing.T, content string) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	var text, block strings.Builder
	runs, inside := false, false
	for line := range strings.Lines(content) {
		bare := strings.TrimSuffix(line, "\n")
		switch {
		case inside && bare == "```":
			inside = false
			text.WriteString(p.block(t, block.String()) + line)
			block.Reset()
			continue
		case inside:
			block.WriteString(line)
			continue
		case runs && bare == "```console":
			inside = true
		}
		if match := ranBy.FindStringSubmatch(bare); match != nil {
			runs = match[1] == "run by "+name
		} else if match := first.FindStringSubmatch(bare); match != nil && runs {
			if out, err := p.run(t, shown{user: match[1], call: match[2]}); err != nil {
				t.Fatalf("%s: %v\n%s", bare, err, out)
			}
		}
		text.WriteString(line)
	}
	return text.String()
}

// block returns a block of console with the present output of its commands.
func (p *Page) block(t *testing.T, content string) string {
	t.Helper()
	var text strings.Builder
	for i, part := range commands(content) {
		if i > 0 {
			text.WriteString("\n")
		}
		text.WriteString(part.line + "\n" + p.printed(t, part))
	}
	return text.String()
}

// shown is a command with its output on the page.
type shown struct{ line, user, call, output string }

func commands(block string) (all []shown) {
	document := ""
	for line := range strings.Lines(block) {
		bare := strings.TrimSuffix(line, "\n")
		match := prompted.FindStringSubmatch(bare)
		switch {
		case document != "":
			last := &all[len(all)-1]
			last.line, last.call = last.line+"\n"+bare, last.call+"\n"+bare
			if bare == document {
				document = ""
			}
		case match != nil:
			all = append(all, shown{line: match[0], user: match[1], call: match[2]})
			if opened := opensDocument.FindStringSubmatch(match[2]); opened != nil {
				document = opened[1]
			}
		case len(all) > 0:
			all[len(all)-1].output += line
		}
	}
	for i := range all {
		all[i].output = ended(all[i].output)
	}
	return all
}

// ended ends text with one newline, if there is any.
func ended(text string) string {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	return text
}

// printed returns the output of a command. The cluster observes a change a moment after it is stored, so a command with another output than the page is
// repeated if the repetition changes nothing.
func (p *Page) printed(t *testing.T, command shown) string {
	t.Helper()
	p.Commands++
	got, _ := p.run(t, command)
	switch {
	case !harmless(command.call, got):
	case p.Update:
		time.Sleep(time.Second)
		got, _ = p.run(t, command)
	default:
		// The caller compares the page with the output of the last attempt.
		_ = deadline.Wait(t.Context(), command.line+" prints what the page shows", Limit, func(context.Context) error {
			if same(command.output, got) || !harmless(command.call, got) {
				return nil
			}
			got, _ = p.run(t, command)
			return errDiffers
		})
	}
	if same(command.output, got) {
		return command.output
	}
	return got
}

var errDiffers = errors.New("it prints something else")

// run returns the output of a command without the warnings about images that this plane lacks. The page shows a failure as part of the text.
func (p *Page) run(t *testing.T, command shown) (string, error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "bash", "-c", command.call)
	run.Dir = p.Folder
	run.Env = append(os.Environ(), p.Environment(command.user)...)
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	err := run.Run()
	return ended(WithoutReadiness(out.String())), err
}

// reading are the subcommands that change nothing.
var reading = []string{"get", "wait", "diff", "auth", "explain", "process", "lint", "policy"}

// harmless reports whether a command can be repeated: it reads, or it was denied.
func harmless(call, got string) bool {
	words := strings.Fields(call)
	return len(words) > 1 && slices.Contains(reading, words[1]) || strings.Contains(call, "--dry-run") || strings.HasPrefix(got, "Error from server") ||
		strings.Contains(got, " is invalid: ")
}

// varying are the parts of an output that differ between runs.
var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b(\d+m)?\d+s\b`), "AGE"},
	{regexp.MustCompile(`"[a-z0-9]{12}\\?"|"([a-z0-9]{4}-){2}[a-z0-9]{4}"`), "GENERATED"},
	{regexp.MustCompile(` +`), " "},
	// The duration of an evaluation, before the age of a policy.
	{regexp.MustCompile(`\d+ AGE\b`), "DURATION AGE"},
}

// omission stands for what a page leaves out: lines, or a part of one.
const omission = "[...]"

// same reports whether an output is the one of the page, but for what varies.
func same(page, got string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(scrub(page)) {
		if strings.TrimSpace(line) == omission {
			line = omission
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), regexp.QuoteMeta(omission), `(?s:.*)`))
	}
	return regexp.MustCompile("^" + pattern.String() + "$").MatchString(scrub(got))
}

func scrub(text string) string {
	for _, each := range varying {
		text = each.pattern.ReplaceAllString(text, each.replacement)
	}
	return text
}

// Terminal is where the commands of a page run.
type Terminal struct {
	// Folder is the working directory: it has the documentation, and commands may leave files.
	Folder string
	// programs is a folder with kubectl, helm and stencilctl; home is the home directory of the user.
	programs, home string
}

// Shell returns a terminal for the commands that the documentation of the checkout at root shows.
func Shell(t *testing.T, root string) Terminal {
	t.Helper()
	terminal := Terminal{Folder: t.TempDir(), programs: t.TempDir(), home: t.TempDir()}
	cli, err := product.Binary(t.Context(), "stencilctl")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := controlplane.Tools(t.Context(), "kubectl", "helm")
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"stencilctl": cli, "kubectl-stencil": cli, "kubectl": tools["kubectl"], "helm": tools["helm"]}
	for name, path := range links {
		link(t, path, filepath.Join(terminal.programs, name))
	}
	for _, folder := range []string{"docs", "charts"} {
		path, err := filepath.Abs(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		link(t, path, filepath.Join(terminal.Folder, folder))
	}
	return terminal
}

func link(t *testing.T, path, name string) {
	t.Helper()
	if err := os.Symlink(path, name); err != nil {
		t.Fatal(err)
	}
}

// Environment returns the variables of a user with this kubeconfig.
func (s Terminal) Environment(kubeconfig string) []string {
	return []string{"KUBECONFIG=" + kubeconfig, "PATH=" + s.programs + ":" + os.Getenv("PATH"), "HOME=" + s.home, "LC_ALL=C.UTF-8"}
}
