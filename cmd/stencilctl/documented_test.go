package main

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

// TestEveryDocumentedCommandLineIsValid parses each command line of stencilctl in the documentation, examples of the help included: the command exists,
// and takes these flags and this number of arguments. Repository files in command lines exist, also in those of kubectl, helm and make. Other tests run
// the commands with printed output.
func TestEveryDocumentedCommandLineIsValid(t *testing.T) {
	t.Chdir("../..")
	checked := 0
	for _, page := range pages(t) {
		for number, line := range documentedLines(string(testfile.Read(t, page))) {
			if strings.HasPrefix(page, "docs/reference/") && !strings.HasPrefix(line, "  ") {
				continue // text of the help
			}
			for _, words := range shellWords(prompt.ReplaceAllString(line, "")) {
				if len(words) > 1 && slices.Contains([]string{"kubectl", "helm", "stencilctl", "make"}, words[0]) {
					if problem := missingFile(words[1:]); problem != "" {
						t.Errorf("%s:%d: %s", page, number, problem)
					}
				}
			}
			for _, arguments := range stencilctlIn(line) {
				checked++
				if problem := parses(arguments); problem != "" {
					t.Errorf("%s:%d: %q: %s", page, number, strings.Join(arguments, " "), problem)
				}
			}
		}
	}
	t.Logf("%d command lines", checked)
	if checked < 100 {
		t.Errorf("%d command lines found: the test does not find them", checked)
	}
}

// pages returns the paths of all documentation.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "SECURITY.md", "CONTRIBUTING.md"}
	for _, folder := range []string{"docs", "charts"} {
		if err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				all = append(all, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var (
	// mark precedes commands: which test runs them, or why none does. It applies until the next mark of the page.
	mark = regexp.MustCompile(`^<!-- commands: (?:run by (Test\w+)|not run: (.+)) -->$`)
	// copied is a command line with a prompt.
	copied = regexp.MustCompile(`^[a-z]*\$ `)
	// tested is the head of a test.
	tested = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// TestEveryDocumentedCommandIsRunOrSaysWhyNot looks at the blocks of console and sh: a mark names the test that runs their commands, or the reason why
// no test does.
func TestEveryDocumentedCommandIsRunOrSaysWhyNot(t *testing.T) {
	t.Chdir("../..")
	tests := map[string]bool{}
	if err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, match := range tested.FindAllSubmatch(testfile.Read(t, path), -1) {
				tests[string(match[1])] = true
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ran, others := 0, 0
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") {
			continue // the help of commands
		}
		var by, why, block string
		for i, line := range strings.Split(string(testfile.Read(t, page)), "\n") {
			if match := mark.FindStringSubmatch(line); match != nil {
				if by, why = match[1], match[2]; by != "" && !tests[by] {
					t.Errorf("%s:%d: there is no test %s", page, i+1, by)
				}
			}
			switch language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
			case fence && block == "":
				block = cmp.Or(language, "text")
			case fence:
				block = ""
			case block == "console" && copied.MatchString(line), block == "sh" && line != "" && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "#"):
				switch {
				case by != "":
					ran++
				case why != "":
					others++
				default:
					t.Errorf("%s:%d: no test runs this command: %s", page, i+1, line)
				}
			}
		}
	}
	t.Logf("tests run %d of %d commands", ran, ran+others)
}

func TestCommandLinesThatAreNotValid(t *testing.T) {
	for line, want := range map[string]string{
		"ada$ stencilctl proces web -n golden":                                         "unknown",
		"stencilctl process web --paramter A=b":                                        "unknown flag: --paramter",
		"admin$ kubectl get vmt | stencilctl approve":                                  "accepts",
		"stencilctl policy":                                                            "it is a group of commands",
		"stencilctl policy check docs/examples/policies/none.yaml":                     "no such file",
		"stencilctl lint -f 'docs/examples/golden/none.yaml' > out.yaml":               "no such file",
		"$ stencilctl process golden/fedora -p 'NAME=a b' # as a file | stencilctl x":  "",
		"kubectl stencil process golden/fedora -p NAME=web-1 | kubectl create -f - -q": "",
	} {
		got := ""
		for _, arguments := range stencilctlIn(line) {
			got += parses(arguments) + missingFile(arguments)
		}
		if got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// documentedLines returns the lines of the fenced blocks of a page, by their number, joined where they continue.
func documentedLines(page string) map[int]string {
	lines, fenced, from := map[int]string{}, false, 0
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case !fenced:
		case from > 0:
			lines[from] += " " + strings.TrimSuffix(line, `\`)
		default:
			lines[i+1] = strings.TrimSuffix(line, `\`)
		}
		switch continues := fenced && strings.HasSuffix(line, `\`); {
		case !continues:
			from = 0
		case from == 0:
			from = i + 1
		}
	}
	return lines
}

var (
	prompt = regexp.MustCompile(`^\s*(\w*\$ )?`)
	// usage are lines of the help that are no command lines, and placeholders.
	usage = regexp.MustCompile(`\[flags\]|\[command\]|…|\.\.\.`)
)

// stencilctlIn returns the arguments of stencilctl in a line, which may be a pipeline.
func stencilctlIn(line string) (found [][]string) {
	line = prompt.ReplaceAllString(line, "")
	if usage.MatchString(line) {
		return nil
	}
	for _, words := range shellWords(line) {
		if len(words) > 1 && (words[0] == "stencilctl" || words[0] == "bin/stencilctl") {
			found = append(found, words[1:])
		} else if len(words) > 2 && words[0] == "kubectl" && words[1] == "stencil" {
			found = append(found, words[2:])
		}
	}
	return found
}

// shellWords splits a line into the words of its commands, without redirections and comments.
func shellWords(line string) (commands [][]string) {
	var words []string
	var word strings.Builder
	quote, started := rune(0), false
	end := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == ' ':
			end()
		case r == '#' && !started:
			return append(commands, words)
		case strings.ContainsRune("|;&", r):
			end()
			commands, words = append(commands, words), nil
		case r == '>' || r == '<':
			// What follows is a file.
			end()
			commands, words = append(commands, words), nil
		default:
			word.WriteRune(r)
			started = true
		}
	}
	end()
	return append(commands, words)
}

// parses returns what is wrong with a command line.
func parses(arguments []string) string {
	var out bytes.Buffer
	root := newCommand("stencilctl", cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	command, rest, err := root.Find(arguments)
	if err != nil {
		return err.Error()
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if help, _ := command.Flags().GetBool("help"); help {
		return ""
	}
	if command.HasSubCommands() && command.Name() != "defaults" && command.Name() != "revisions" {
		if command != root {
			return "it is a group of commands"
		}
		return ""
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		return err.Error()
	}
	if err := command.ValidateRequiredFlags(); err != nil {
		return err.Error()
	}
	return ""
}

// repository matches paths below the folders of this repository.
var repository = regexp.MustCompile(`(?:^|=|,)((?:docs|cmd|charts|test|ovf|oci)/[\w./-]+)`)

// missingFile returns the error of the first repository file in the words of a command that does not exist.
func missingFile(words []string) string {
	for _, word := range words {
		for _, found := range repository.FindAllStringSubmatch(word, -1) {
			if _, err := os.Stat(found[1]); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}
