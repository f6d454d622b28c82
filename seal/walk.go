package seal

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/vmstencil/stencil/seal/internal/inode"
)

const linkNotFollowed = "symbolic links are not followed"

// fileSystem examines the contents of a partition.
func (i *inspection) fileSystem(number int, r *source, k kind) {
	if err := i.limits.check(); err != nil || k.empty {
		return
	}
	problem := k.name + " is not examined"
	if k.open != nil {
		fs, err := k.open(r)
		if err == nil {
			i.tree(walker{inspection: i, partition: number, fs: fs})
			return
		}
		problem = k.name + ": " + err.Error()
	}
	if k.name == "" {
		problem = "there is no known file system"
		if i.limits.reader != nil {
			problem = "reading the disk: " + i.limits.reader.Error()
		}
	}
	i.unexamined(Gap{Partition: number, Reason: problem})
}

// walker applies the rules to a file system.
type walker struct {
	*inspection
	partition int
	fs        fileSystem
}

// tree applies the rules that fit a file system: that of the system, of /var or of /home.
func (i *inspection) tree(w walker) {
	if dirty := w.fs.Dirty(); dirty != "" {
		w.gap("", dirty)
	}
	names := map[string]bool{}
	err := w.fs.ReadDir(w.fs.Root(), func(name string, _ uint64) error {
		switch name {
		case "etc", "ostree", "lib", "cache", "spool":
			names[name] = true
		}
		return i.limits.name()
	})
	mounted := ""
	switch {
	case err != nil:
		w.gap("/", err.Error())
		return
	case names["etc"]:
	case names["ostree"]:
		w.gap("/ostree", "deployments of OSTree are not examined")
		return
	case names["lib"] && (names["cache"] || names["spool"]):
		mounted = "/var"
	default:
		mounted = "/home"
	}
	for _, r := range rules {
		if pattern, fits := strings.CutPrefix(r.path, mounted); fits {
			w.apply(r, "", w.fs.Root(), strings.Split(pattern[1:], "/"))
		}
	}
}

// apply applies a rule to the names of a directory that match the first element of a pattern.
func (w walker) apply(r rule, directory string, number uint64, pattern []string) {
	type match struct {
		name   string
		number uint64
	}
	var matches []match
	err := w.fs.ReadDir(number, func(name string, number uint64) error {
		if fits, _ := path.Match(pattern[0], name); fits {
			if len(matches) == maxMatches {
				return errMatches
			}
			matches = append(matches, match{name, number})
		}
		return w.limits.name()
	})
	if err != nil {
		w.gap(directory+"/", err.Error())
	}
	for _, m := range matches {
		at := directory + "/" + printable(m.name)
		info, err := w.fs.Stat(m.number)
		switch {
		case err != nil:
			w.gap(at, err.Error())
		case len(pattern) == 1:
			found, unknown := r.matches(info)
			if found {
				w.found(Finding{Partition: w.partition, Path: at, Reason: r.reason})
			} else if unknown != "" {
				w.gap(at, unknown)
			}
		case info.Type == inode.Directory:
			w.apply(r, at, m.number, pattern[1:])
		case info.Type == inode.Symlink:
			w.gap(at, linkNotFollowed)
		}
	}
}

// maxMatches is how many names of a directory are examined for a rule, which bounds the memory.
const maxMatches = 10_000

var errMatches = errors.New("there are more than 10000 names to examine")

// gap adds an unexamined path once. When the examination has ended, that is reported for the whole disk instead.
func (w walker) gap(at, reason string) {
	if w.limits.ended != nil {
		return
	}
	g := Gap{Partition: w.partition, Path: at, Reason: reason}
	for _, existing := range w.report.Unexamined {
		if existing == g {
			return
		}
	}
	w.unexamined(g)
}

// printable returns a name with escapes for characters that cannot be printed.
func printable(name string) string {
	quoted := strconv.QuoteToGraphic(name)
	if unquoted := quoted[1 : len(quoted)-1]; unquoted != strings.ReplaceAll(name, `"`, `\"`) {
		return unquoted
	}
	return name
}
