// Package tutorials_test runs the commands of the documentation as its readers do: on the control plane of `make demo`, with the users and kubeconfigs
// that it prints.
package tutorials_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/test/harness"
	"github.com/vmstencil/stencil/test/product"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

// root is the checkout.
const root = "../../.."

// kubeconfigs of the demo, by the names of its users.
var kubeconfigs map[string]string

func TestMain(m *testing.M) { harness.Main(m, demo) }

// TestTutorials does each tutorial.
func TestTutorials(t *testing.T) {
	replay(t, "docs/tutorials/owner.md", "docs/tutorials/author.md", "docs/tutorials/admin.md")
}

// TestPages runs what other pages show of the same control plane.
func TestPages(t *testing.T) {
	replay(t, "README.md", "docs/concepts.md", "docs/vm-contract.md", "docs/objects.md", "docs/installation.md", "docs/approvals.md")
}

// replay runs the commands of pages, and compares their output with the page.
func replay(t *testing.T, pages ...string) {
	product.Depend()
	shell := harness.Shell(t, root)
	page := harness.Page{Folder: shell.Folder, Update: *update, Environment: func(user string) []string {
		if user == "" {
			user = "admin"
		}
		config, known := kubeconfigs[user]
		if !known {
			t.Fatalf("the demo has no user %q: %v", user, kubeconfigs)
		}
		return shell.Environment(config)
	}}
	for _, name := range pages {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(root, name)
			content := string(testfile.Read(t, path))
			before := page.Commands
			got := page.Replay(t, content)
			t.Logf("%d commands", page.Commands-before)
			if page.Commands == before {
				t.Error("the page has no command with the mark of this test")
			}
			if *update {
				testfile.Write(t, path, got)
			} else if diff := cmp.Diff(content, got); diff != "" {
				t.Errorf("%s says otherwise (-page +printed), write it with UPDATE=1:\n%s", name, diff)
			}
		})
	}
}

var (
	// exported matches the kubeconfigs that the demo prints.
	exported = regexp.MustCompile(`^  export KUBECONFIG=(\S+/([a-z-]+)-[0-9a-f]+\.kubeconfig)$`)
	// others are users of the demo whose kubeconfigs it does not print.
	others = []string{"bob", "eve"}
)

// demo runs `make demo ARGS="--chapter first"` until the tests have ended.
func demo(ctx context.Context) (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "stencil-demo-")
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(folder, "demo")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./demo")
	build.Dir = filepath.Join(root, "test")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the demo: %w\n%s", err, out)
	}
	command := exec.CommandContext(ctx, binary, "-chapter", "first")
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	printed, ended := make(chan map[string]string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		found := map[string]string{}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Println(lines.Text())
			if match := exported.FindStringSubmatch(lines.Text()); match != nil {
				found[match[2]] = match[1]
				if match[2] == "olga" {
					printed <- found
				}
			}
		}
	}()
	stop = func() error {
		signalled := command.Process.Signal(syscall.SIGTERM)
		<-ended
		return errors.Join(signalled, command.Wait(), os.RemoveAll(folder))
	}
	select {
	case kubeconfigs = <-printed:
	case <-ended:
		return stop, errors.New("the demo ended")
	}
	administrator, known := kubeconfigs["stencil-admin"]
	if !known {
		return stop, errors.New("the demo printed no KUBECONFIG of the administrator")
	}
	kubeconfigs["admin"] = administrator
	for _, user := range others {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(administrator), user+"-*.kubeconfig"))
		if err != nil || len(found) != 1 {
			return stop, fmt.Errorf("the kubeconfigs of %s are %v: %w", user, found, err)
		}
		kubeconfigs[user] = found[0]
	}
	return stop, nil
}
