package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A test belongs to the calls that name its package. A mark is a directive above the test that changes this:
//
//	//suite:full    only to calls with marked: full
//	//suite:long    only to calls with marked: long
//	//suite:debian  only to calls with marked: debian
//	//suite:plain   not to those with the race detector, which makes it ten times as slow
const plain = "plain"

var marks = []string{"full", "long", "debian", plain}

var test = regexp.MustCompile(`(?m)^(?://suite:(.*)\n)?func ((?:Test|Fuzz)\w*)\(\w+ \*testing\.[TF]\) `)

// readMarks returns the marks of the tests in a folder of packages, by name; of those without one too.
func readMarks(root string, folders []string) (map[string]string, error) {
	found := map[string]string{}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), "_test.go") {
				continue
			}
			name := filepath.Join(folder, entry.Name())
			content, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return nil, err
			}
			for _, each := range test.FindAllSubmatch(content, -1) {
				mark, function := string(each[1]), string(each[2])
				if mark != "" && !slices.Contains(marks, mark) {
					return nil, fmt.Errorf("%s: %s has the mark suite:%s, want one of %s", name, function, mark, strings.Join(marks, ", "))
				}
				// go test has one -run and one -skip for all packages of a call.
				if before, two := found[function]; two && before != mark {
					return nil, fmt.Errorf("%s: there are two tests %s in a call of test/suites.yaml, with different marks: rename one", name, function)
				}
				found[function] = mark
			}
		}
	}
	return found, nil
}

// selectMarked returns the arguments of go test that choose the tests of a module for their marks.
func (m module) selectMarked(root string) ([]string, error) {
	folders, err := m.folders(root)
	if err != nil {
		return nil, err
	}
	found, err := readMarks(root, folders)
	if err != nil {
		return nil, err
	}
	var run, skip []string
	for name, mark := range found {
		switch {
		case m.Marked != "" && mark == m.Marked:
			run = append(run, name)
		case m.Marked == "" && mark != "" && (mark != plain || m.Race):
			skip = append(skip, name)
		}
	}
	slices.Sort(run)
	slices.Sort(skip)
	switch {
	case m.Marked != "" && len(run) == 0:
		return nil, fmt.Errorf("no test of %s has the mark suite:%s", m.Path, m.Marked)
	case len(run) > 0:
		return []string{"-run=^(" + strings.Join(run, "|") + ")$"}, nil
	case len(skip) > 0:
		return []string{"-skip=^(" + strings.Join(skip, "|") + ")$"}, nil
	}
	return nil, nil
}

// folders of the packages of a module, by its patterns.
func (m module) folders(root string) ([]string, error) {
	patterns := m.Packages
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	var folders []string
	for _, pattern := range patterns {
		pattern, all := strings.CutSuffix(pattern, "...")
		start := filepath.Join(m.Path, pattern)
		if !all {
			folders = append(folders, start)
			continue
		}
		err := filepath.WalkDir(filepath.Join(root, start), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			// Another module.
			if _, missing := os.Stat(filepath.Join(path, "go.mod")); missing == nil && relative != filepath.Clean(m.Path) || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && relative != "." {
				return fs.SkipDir
			}
			folders = append(folders, relative)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return folders, nil
}
