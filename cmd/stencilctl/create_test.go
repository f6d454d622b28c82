package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

// script is a Prompter with prepared lines, which marks hidden ones.
type script struct {
	lines []string
	to    io.Writer
}

func (s *script) read(mark string) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	fmt.Fprintf(s.to, "%s%s", mark, line)
	return line, nil
}

func (s *script) Line(context.Context) (string, error) {
	line, err := s.read("<")
	fmt.Fprintln(s.to)
	return line, err
}

func (s *script) Hidden(_ context.Context, ask func()) (string, error) {
	ask()
	return s.read("<hidden ")
}

// asking is a template that needs values of all kinds.
const asking = `{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, metadata: {name: asking}, spec: {message: "hello ${NAME}", parameters: [
	{name: NAME, displayName: Name, description: "what it is\ncalled", required: true, pattern: "[a-z-]+"},
	{name: CORES, type: int, minimum: 1, maximum: 4, required: true},
	{name: TIER, enum: [front, back], required: true},
	{name: LOUD, type: bool, required: true},
	{name: PASSWORD, displayName: PASSWORD, description: of root, sensitive: true, required: true, pattern: "[a-z ]{8,}"},
	{name: SIZE, value: small}],
	virtualMachine: {metadata: {name: "${NAME}", labels: {tier: "${TIER}", loud: "${LOUD}", size: "${SIZE}"}}, spec: {runStrategy: Halted, template: {spec: {domain: {cpu: {cores: "${{CORES}}"}, devices: {}},
	volumes: [{name: a, cloudInitNoCloud: {userData: "${PASSWORD}"}}]}}}}}}`

func TestCreate(t *testing.T) {
	t.Chdir("testdata")
	const made = `{"message": "hello", "virtualMachine": {"metadata": {"name": "web-1"}}}`
	for name, tc := range map[string]struct {
		line    string
		stdin   string
		typed   []string
		answers map[string][]string
	}{
		"create, asked for": {
			line: "create -f - -n shop", stdin: asking,
			typed:   []string{"Web", "", "web-b", "many", " 2 ", "side", "2", "maybe", "y", "short", " a password"},
			answers: map[string][]string{"POST " + vmAt: {`{"metadata": {"name": "web-b"}}`}},
		},
		"create, some are given": {
			line: "create -f - -n shop -p NAME=web-a -p CORES=1 -p TIER=back -p LOUD=true --dry-run=server", stdin: asking,
			typed:   []string{"long enough"},
			answers: map[string][]string{"POST " + vmAt: {`{"metadata": {"name": "web-a"}}`}},
		},
		"create, the input ends":         {line: "create -f - -n shop", stdin: asking, typed: []string{"web"}},
		"create, no terminal":            {line: "create -f - -n shop", stdin: asking},
		"create, a dry run":              {line: "create -f - --dry-run=client -o name -p NAME=web -p CORES=1 -p TIER=front -p LOUD=false --params-file values/password.env", stdin: asking},
		"create, in the cluster":         {line: "create golden/web -p NAME=web-1 --target-namespace shop", answers: map[string][]string{"POST " + created: {made}}},
		"create, in the namespace of -n": {line: "create golden/web -n shop -p NAME=web-1", answers: map[string][]string{"POST " + created: {made}}},
		"create, beside the template":    {line: "create web -n golden -p NAME=web-1", answers: map[string][]string{"POST " + created: {made}}},
		"create, away from the template": {line: "create web -n golden --target-namespace shop -p NAME=web-1", answers: map[string][]string{"POST " + created: {made}}},
		"create, a rehearsal":            {line: "create golden/web -p NAME=web-1 --dry-run=server -o yaml", answers: map[string][]string{"POST " + created: {made}}},
		"create, asked in a cluster":     {line: "create golden/web", typed: []string{"web-1"}, answers: map[string][]string{"GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + created: {made}}},
		"create, may not be read":        {line: "create golden/web", typed: []string{"unasked"}, answers: map[string][]string{"GET " + templateAt: {respondWithError(403, "Forbidden", "ada cannot get it")}, "POST " + created: {respondWithError(422, "Invalid", "NAME is missing")}}},
		"create, is not there":           {line: "create golden/web", typed: []string{"unasked"}},
		"create, denied":                 {line: "create golden/web", answers: map[string][]string{"POST " + created: {respondWithError(403, "Forbidden", "no: a: b, c: d", "a: b", "c: d")}}},
		"create, denied here":            {line: "create golden/web -n shop --local -p NAME=a -p TOKEN=t", answers: map[string][]string{"GET " + templateAt: {"FILE templates/web.yaml"}, "POST " + vmAt: {respondWithError(409, "AlreadyExists", "there is one")}}},
		"create, objects":                {line: "create -f - -n shop -p NAME=web-1 --dry-run=client", stdin: accompanied},
		"create, objects in the cluster": {line: "create golden/web -n shop -p NAME=web-1 --dry-run=client", answers: map[string][]string{"POST " + rendered: {`{"virtualMachine": {"metadata": {"name": "web-1"}}, "objects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-1-db"}, "stringData": {"a": "s3cret"}}]}`}}},
		"create, another namespace":      {line: "create -f - --target-namespace shop", stdin: `{apiVersion: template.kubevirt.io/v1beta1, kind: VirtualMachineTemplate, spec: {parameters: [{name: NS, value: bank}], virtualMachine: {metadata: {name: a, namespace: "${NS}"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &fakeCluster{test: t, answers: tc.answers}
			server := httptest.NewServer(c)
			defer server.Close()
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

			var out, problems bytes.Buffer
			streams := cli.Streams{In: strings.NewReader(tc.stdin), Out: &out, Err: &problems}
			if tc.typed != nil {
				streams.Prompt = &script{lines: tc.typed, to: &problems}
			}
			code := run(t.Context(), append([]string{"stencilctl"}, append(strings.Fields(tc.line), "--server", server.URL)...), streams)
			got := fmt.Sprintf("$ stencilctl %s\n%s", tc.line, out.String())
			if problems.Len() > 0 {
				got += "--- standard error\n" + problems.String()
			}
			compare(t, name, got+fmt.Sprintf("--- exit code %d\n", code)+c.log.String())
		})
	}
}

// TestCreateOnATerminal uses the form through a pseudo-terminal, which echoes input unless it
// is sensitive.
func TestCreateOnATerminal(t *testing.T) {
	c := &fakeCluster{test: t, answers: map[string][]string{"POST " + vmAt: {`{"metadata": {"name": "web-b"}}`}}}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keyboard.Close() }()

	const manifest = `{"apiVersion": "template.kubevirt.io/v1beta1", "kind": "VirtualMachineTemplate", "metadata": {"name": "a"}, "spec": {"parameters": [
		{"name": "NAME", "required": true}, {"name": "PASSWORD", "sensitive": true, "required": true}, {"name": "COLOUR", "required": true, "enum": ["red", "blue"]}],
		"virtualMachine": {"metadata": {"name": "${NAME}", "labels": {"colour": "${COLOUR}"}}, "spec": {"template": {"spec": {"domain": {"devices": {}}, "volumes": [{"name": "a", "cloudInitNoCloud": {"userData": "${PASSWORD}"}}]}}}}}}`
	file := filepath.Join(t.TempDir(), "template.json")
	testfile.Write(t, file, manifest)

	ended := make(chan int, 1)
	go func() {
		streams := cli.Streams{In: terminal, Out: terminal, Err: terminal, Prompt: cli.Terminal(terminal)}
		ended <- run(t.Context(), []string{"stencilctl", "create", "-f", file, "-n", "shop", "--server", server.URL}, streams)
		_ = terminal.Close()
	}()
	shown := make(chan string)
	go func() {
		defer close(shown)
		buffer := make([]byte, 4096)
		for {
			n, err := keyboard.Read(buffer)
			if n > 0 {
				shown <- string(buffer[:n])
			}
			if err != nil {
				return // the terminal is closed
			}
		}
	}()

	screen, deadline := "", time.After(30*time.Second)
	expect := func(text string) {
		t.Helper()
		for !strings.Contains(screen, text) {
			select {
			case more, open := <-shown:
				if !open {
					t.Fatalf("the command has ended without %q:\n%s", text, screen)
				}
				screen += more
			case <-deadline:
				t.Fatalf("%q was not shown:\n%s", text, screen)
			}
		}
	}
	answer := func(prompt, text string) {
		t.Helper()
		expect(prompt)
		if _, err := keyboard.WriteString(text + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	answer("NAME: ", "web-b")
	answer("PASSWORD: ", "hunter2-hunter2")
	answer("COLOUR: ", "2")
	expect("virtualmachine.kubevirt.io shop/web-b created")
	select {
	case code := <-ended:
		if code != cli.ExitOK {
			t.Errorf("exit code %d", code)
		}
	case <-deadline:
		t.Fatal("the command does not end")
	}
	if !strings.Contains(screen, "NAME: web-b") {
		t.Errorf("what was typed is not shown:\n%s", screen)
	}
	if strings.Contains(screen, "hunter2") {
		t.Errorf("the password is shown:\n%s", screen)
	}
	if sent := c.log.String(); !strings.Contains(sent, `"userData":"hunter2-hunter2"`) || !strings.Contains(sent, `"colour":"blue"`) {
		t.Errorf("sent: %s", sent)
	}
}

// TestAQuestionEndsWithItsContext simulates Ctrl-C: the terminal echoes input again.
func TestAQuestionEndsWithItsContext(t *testing.T) {
	for name, ask := range map[string]func(cli.Prompter, context.Context) (string, error){
		"line":   cli.Prompter.Line,
		"hidden": func(p cli.Prompter, ctx context.Context) (string, error) { return p.Hidden(ctx, func() {}) },
	} {
		// They are not closed here: the abandoned reader still uses them.
		keyboard, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		before, err := term.GetState(int(terminal.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := ask(cli.Terminal(terminal), ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if after, err := term.GetState(int(terminal.Fd())); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the terminal was left in another state, %v", name, err)
		}
		if _, err := keyboard.WriteString("for the reader that still waits\n"); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open("create_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if cli.Terminal(file) != nil {
		t.Error("a file is no terminal")
	}
}
