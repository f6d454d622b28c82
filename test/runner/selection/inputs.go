package selection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// modulePrefix is the start of the import paths of the repository; the rest is the folder.
const modulePrefix = "github.com/vmstencil/stencil"

// Call is one call of `go test`.
type Call struct {
	// Suite is the name of its suite, Module the folder of the module.
	Suite, Module string
	// Packages are patterns; all of the module when empty.
	Packages []string
	Tags     string
	// Flags are further arguments that decide about the results.
	Flags []string
}

// Package is a package of tests in a call.
type Package struct {
	// Folder is its folder in the checkout.
	Folder string
	// Key names it in records: the suite and the folder.
	Key string
	// Inputs are the parts of the tree that its result depends on, sorted.
	Inputs []string
	// Digest of the inputs.
	Digest string
	// StartsPrograms is set if its tests can start Stencil's programs.
	StartsPrograms bool

	// further are lines of the digest that no file has.
	further []string
}

// Again returns the package with the digest of its inputs in this tree.
func (t *Tree) Again(p Package) Package {
	p.Inputs, p.Digest = t.digest(p.Inputs, p.further)
	return p
}

// equipment is the folder of the package through which tests reach Stencil's programs.
const equipment = "test/product"

// Packages lists the packages with tests of a call. Tools are lines with versions of what tests start beside Stencil's programs.
func (t *Tree) Packages(ctx context.Context, call Call, executed Executed, tools []string) ([]Package, error) {
	closures, err := t.closures(ctx, call)
	if err != nil {
		return nil, err
	}
	var product []string
	if call.Module == "test" {
		if product, err = t.product(ctx); err != nil {
			return nil, err
		}
	}
	var packages []Package
	for folder, closure := range closures {
		parts := []string{testsOf(folder), moduleFiles}
		parts = append(parts, t.named(folder)...)
		for _, each := range closure {
			parts = append(parts, sourcesOf(each))
			// The folders that the equipment names are those of the digest of the product.
			if strings.HasPrefix(each, "test/") && each != equipment {
				parts = append(parts, t.named(each)...)
			}
		}
		further := append([]string{call.Tags}, call.Flags...)
		starts := slices.Contains(closure, equipment)
		if starts {
			parts = append(parts, below("charts"), below("docs/examples"))
			further = append(further, tools...)
			for _, each := range product {
				if executed.By(folder, each) {
					parts = append(parts, sourcesOf(each))
				}
			}
		}
		packages = append(packages, t.Again(Package{Folder: folder, Key: call.Suite + " " + folder, Inputs: parts, StartsPrograms: starts, further: further}))
	}
	slices.SortFunc(packages, func(a, b Package) int { return strings.Compare(a.Folder, b.Folder) })
	return packages, nil
}

// Module describes a module as one package whose inputs are all sources that it is compiled from, its tests, and these files or folders, with comments.
func (t *Tree) Module(ctx context.Context, suite, module string, files ...string) (Package, error) {
	all, err := t.list(ctx, module, "-test", "./...")
	if err != nil {
		return Package{}, err
	}
	parts := []string{moduleFiles}
	for _, each := range files {
		parts = append(parts, below(each))
	}
	for _, each := range all {
		for _, folder := range ours([]string{each.ImportPath}) {
			parts = append(parts, sourcesOf(folder), testsOf(folder))
		}
		for _, folder := range ours(each.Deps) {
			parts = append(parts, sourcesOf(folder))
		}
	}
	return t.withComments().Again(Package{Folder: module, Key: suite + " " + module, Inputs: parts}), nil
}

// digest sorts parts, and returns a digest of them and further lines.
func (t *Tree) digest(parts, further []string) (sorted []string, digest string) {
	slices.Sort(parts)
	sorted = slices.Compact(parts)
	lines := append(slices.Clone(further), runtime.Version(), runtime.GOARCH)
	for _, each := range sorted {
		lines = append(lines, each+" "+t.sum(each))
	}
	return sorted, digestOf(lines)
}

// listed is what `go list -json` prints.
type listed struct {
	ImportPath, Name string
	Deps             []string
}

// list lists packages of a module, with tests if the arguments say so.
func (t *Tree) list(ctx context.Context, module string, arguments ...string) ([]listed, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-json=ImportPath,Name,Deps"}, arguments...)...)
	command.Dir = filepath.Join(t.root, module)
	output, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	var all []listed
	for {
		var each listed
		if err := decoder.Decode(&each); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
		}
		all = append(all, each)
	}
}

// closures are, for each folder with tests, the folders of the repository's packages that its test binary is linked with.
func (t *Tree) closures(ctx context.Context, call Call) (map[string][]string, error) {
	patterns := call.Packages
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	all, err := t.list(ctx, call.Module, append([]string{"-test", "-tags=" + call.Tags}, patterns...)...)
	if err != nil {
		return nil, err
	}
	closures := map[string][]string{}
	for _, each := range all {
		if tested, binary := strings.CutSuffix(each.ImportPath, ".test"); binary && each.Name == "main" {
			closures[FolderOf(tested)] = ours(each.Deps)
		}
	}
	return closures, nil
}

// product are the folders of the packages that Stencil's programs are linked with.
func (t *Tree) product(ctx context.Context) ([]string, error) {
	if t.programs != nil {
		return t.programs, nil
	}
	var folders []string
	for module, patterns := range map[string]string{".": "./cmd/...", "cmd/stencil-defaulter": "."} {
		all, err := t.list(ctx, module, "-tags=libvirt_dlopen", patterns)
		if err != nil {
			return nil, err
		}
		for _, each := range all {
			folders = append(folders, ours(append(each.Deps, each.ImportPath))...)
		}
	}
	slices.Sort(folders)
	t.programs = slices.Compact(folders)
	return t.programs, nil
}

// ours are the folders of the repository's packages among import paths.
func ours(paths []string) []string {
	var folders []string
	for _, each := range paths {
		each, _, _ = strings.Cut(each, " ") // A package that is compiled for a test has the test in brackets.
		if strings.HasPrefix(each, modulePrefix) && !strings.HasSuffix(each, ".test") {
			folders = append(folders, strings.TrimSuffix(FolderOf(each), "_test"))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// FolderOf is the folder in the checkout of a package of the repository.
func FolderOf(importPath string) string {
	folder := strings.TrimPrefix(strings.TrimPrefix(importPath, modulePrefix), "/")
	if folder == "" {
		return "."
	}
	return folder
}
