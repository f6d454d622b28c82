package selection

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is the files of a checkout: those that git tracks, and new ones that it does not ignore.
type Tree struct {
	root  string
	files []string
	// sums are digests of files, of Go files without comments, and known those of parts. whole are digests of all that files have.
	sums, known, whole map[string]string
	// packages are the folders with Go files.
	packages map[string]bool
	// programs are the folders of the product, once they have been listed.
	programs []string
	// literals are the strings of the Go files of a folder, see named.
	literals map[string][]string
}

// ReadTree reads the files of the checkout at root.
func ReadTree(ctx context.Context, root string) (*Tree, error) {
	command := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = root
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of the checkout: %w", err)
	}
	t := &Tree{root: root, sums: map[string]string{}, whole: map[string]string{}, known: map[string]string{}, packages: map[string]bool{}, literals: map[string][]string{}}
	for name := range strings.SplitSeq(string(bytes.TrimRight(listed, "\x00")), "\x00") {
		if name == recordName { // Results are no inputs.
			continue
		}
		content, err := read(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) { // Removed, and not yet from the index.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the checkout: %w", err)
		}
		t.whole[name], t.sums[name] = sumOf(content), sumOf(code(name, content))
		t.files = append(t.files, name)
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			t.packages[path.Dir(name)] = true
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	return t, nil
}

// read returns the content of a file, or where a link leads.
func read(path string) ([]byte, error) {
	if target, err := os.Readlink(path); err == nil {
		return []byte(target), nil
	}
	return os.ReadFile(path)
}

// With returns the tree with another content of one of its files.
func (t *Tree) With(file string, content []byte) *Tree {
	other := *t
	other.sums = maps.Clone(t.sums)
	other.sums[file] = sumOf(code(file, content))
	other.known = map[string]string{}
	return &other
}

// withComments returns the tree for what reads comments, too.
func (t *Tree) withComments() *Tree {
	other := *t
	other.sums, other.known = t.whole, map[string]string{}
	return &other
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// code returns what of a file decides about results: of a Go file, all but comments that are no directives. Those before an import of C are code.
func code(name string, content []byte) []byte {
	if !strings.HasSuffix(name, ".go") || bytes.Contains(content, []byte(`import "C"`)) {
		return content
	}
	var found bytes.Buffer
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", -1, len(content)), content, nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return found.Bytes()
		case kind != token.COMMENT || directive.MatchString(literal):
			fmt.Fprintf(&found, "%d %q\n", kind, literal)
		}
	}
}

// directive is the beginning of a comment that programs read, such as //go:embed and //suite:long.
var directive = regexp.MustCompile(`^//[a-z]+:[a-z]`)

// owner is the folder of the package that a file belongs to, and whether only its tests read it. A file above all packages has none.
func (t *Tree) owner(file string) (folder string, test bool) {
	test = strings.HasSuffix(file, "_test.go") || strings.Contains("/"+file, "/testdata/")
	for folder = path.Dir(file); !t.packages[folder]; folder = path.Dir(folder) {
		if folder == "." {
			return "", false
		}
	}
	return folder, test
}

// Parts of the tree have names that a list shows.
func sourcesOf(folder string) string { return folder }
func testsOf(folder string) string   { return folder + " (tests)" }
func below(name string) string       { return name + " (files)" }

// partsOf are the parts that a file belongs to.
func (t *Tree) partsOf(file string) []string {
	var parts []string
	if folder, test := t.owner(file); folder != "" {
		if test {
			parts = append(parts, testsOf(folder))
		} else {
			parts = append(parts, sourcesOf(folder))
		}
	}
	if base := path.Base(file); base == "go.mod" || base == "go.sum" {
		parts = append(parts, moduleFiles)
	}
	for name := file; name != "."; name = path.Dir(name) {
		parts = append(parts, below(name))
	}
	return parts
}

// moduleFiles is the part with all go.mod and go.sum.
const moduleFiles = "module files"

// sum is the digest of a part, empty if it has no file.
func (t *Tree) sum(part string) string {
	if len(t.known) == 0 {
		lines := map[string][]string{}
		for _, file := range t.files {
			for _, each := range t.partsOf(file) {
				lines[each] = append(lines[each], file+" "+t.sums[file])
			}
		}
		for each, of := range lines {
			t.known[each] = digestOf(of)
		}
	}
	return t.known[part]
}

func digestOf(lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

// named are the parts outside of packages that the Go files of a folder name in strings: paths below charts, docs or hack, files at the root, paths that
// start with "../", and words of a path that follow each other, as arguments of a function that joins them.
func (t *Tree) named(folder string) []string {
	if found, ok := t.literals[folder]; ok {
		return found
	}
	found := []string{}
	for _, file := range t.files {
		if path.Dir(file) != folder || !strings.HasSuffix(file, ".go") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			continue
		}
		words := stringsOf(content)
		for i, word := range words {
			name := t.joined(folder, words[i:])
			if name == "" {
				name = t.resolve(folder, word)
			}
			if name != "" {
				found = append(found, below(name))
			}
		}
	}
	slices.Sort(found)
	t.literals[folder] = slices.Compact(found)
	return t.literals[folder]
}

// resolve returns the name of a file or folder that a string means; empty if it means none.
func (t *Tree) resolve(folder, word string) string {
	if !isPath(word) {
		return ""
	}
	name := path.Clean(word)
	up := strings.HasPrefix(word, "../")
	if up {
		name = path.Clean(path.Join(folder, word))
	}
	first, _, deep := strings.Cut(name, "/")
	known := first == "charts" || first == "docs" || first == "hack" || up
	if !known && (deep || !strings.Contains(name, ".")) || t.sum(below(name)) == "" {
		return ""
	}
	return name
}

// joined returns the name of the file or folder that words mean which begin with "..", from the folder, or with a folder at the root.
func (t *Tree) joined(folder string, words []string) string {
	name := ""
	if words[0] == ".." {
		name = folder
	}
	const least = 2 // One word at the root is any word.
	for i, word := range words {
		if !isPath(word) {
			break
		}
		next := path.Join(name, word)
		if next == "." || strings.HasPrefix(next, "..") || word != ".." && t.sum(below(next)) == "" {
			if i < least {
				return ""
			}
			break
		}
		name = next
	}
	if !strings.Contains(name, "/") || words[0] == ".." && strings.HasPrefix(folder+"/", name+"/") {
		return ""
	}
	return name
}

// isPath reports whether a string may be a path, or a part of one.
func isPath(word string) bool {
	return word != "" && len(word) <= 200 && !strings.ContainsAny(word, " \n*{}%")
}

// stringsOf are the string literals of a Go file.
func stringsOf(source []byte) []string {
	var found []string
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", -1, len(source)), source, nil, 0)
	for {
		_, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return found
		case token.STRING:
			if text, err := strconv.Unquote(literal); err == nil {
				found = append(found, text)
			}
		}
	}
}
