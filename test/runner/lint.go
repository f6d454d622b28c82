package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vmstencil/stencil/test/product"
	"github.com/vmstencil/stencil/test/runner/selection"
)

// lintModules are the modules that are linted. The engine of Kyverno is not: it takes ten minutes to compile.
var lintModules = []string{"api", "api/client", "template", "defaulting", ".", "cmd/stencil-defaulter", "hack/release", "hack/fetch", "test", "test/bench/helmengine"}

// lint runs golangci-lint in the modules that have not passed with the present sources.
func (r runner) lint(ctx context.Context, out io.Writer) error {
	root, err := product.Root()
	if err != nil {
		return err
	}
	known, err := newHistory(root)
	if err != nil {
		return err
	}
	modules, err := known.linted(ctx)
	if err != nil {
		return err
	}
	path, err := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool"), "golangci-lint").Output()
	if err != nil {
		return fmt.Errorf("building golangci-lint: %w", err)
	}
	for _, each := range modules {
		_, stored := known.store.Of(each.Key, each.Digest)
		if stored || known.record.Passed[each.Key].Digest == each.Digest {
			fmt.Fprintf(out, "== golangci-lint in %s: passed with the same sources\n", each.Folder)
			continue
		}
		fmt.Fprintf(out, "== golangci-lint in %s\n", each.Folder)
		began := time.Now()
		command := exec.CommandContext(ctx, strings.TrimSpace(string(path)), "run", "--allow-parallel-runners", "--config", filepath.Join(root, ".golangci.yml"), "./...")
		command.Dir, command.Stdout, command.Stderr = filepath.Join(root, each.Folder), out, out
		if each.Folder == "cmd/stencil-defaulter" {
			command.Env = append(os.Environ(), "CGO_ENABLED=1")
		}
		if failed := command.Run(); failed != nil {
			err = errors.Join(err, fmt.Errorf("golangci-lint in %s: %w", each.Folder, failed))
			continue
		}
		passed := selection.Result{Key: each.Key, Digest: each.Digest, Landing: known.record.Landing + 1, Seconds: time.Since(began).Seconds()}
		if err := known.store.Passed(passed); err != nil {
			return err
		}
	}
	return err
}

// linted are the modules that are linted, as packages of a suite lint.
func (h *history) linted(ctx context.Context) ([]selection.Package, error) {
	tree, err := selection.ReadTree(ctx, h.root)
	if err != nil {
		return nil, err
	}
	var modules []selection.Package
	for _, each := range lintModules {
		module, err := tree.Module(ctx, "lint", each, ".golangci.yml", "hack/tools/golangci-lint")
		if err != nil {
			return nil, err
		}
		modules = append(modules, module)
	}
	return modules, nil
}
