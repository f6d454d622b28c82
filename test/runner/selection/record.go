package selection

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Record says which packages have passed, with which inputs. It is stored in test/passed.txt, and committed with each landing.
type Record struct {
	// Landing counts the landings, and Commit is the one that the newest was recorded at.
	Landing int
	Commit  string
	// Passed are results by the keys of packages.
	Passed map[string]Pass
	// Flaky are tests that failed and then passed without a change.
	Flaky []Flake
}

// Pass is a package that passed.
type Pass struct {
	Digest string
	// Landing is the one with which it ran last.
	Landing int
	Seconds float64
}

// Flake is a test that failed and then passed without a change.
type Flake struct {
	Key, Test string
	Landing   int
}

const recordHead = `# Which packages of tests have passed, by a digest of their inputs, with the landing of their last run and its seconds.
# Written by ` + "`make record`" + ` after .ci/run has passed. A run leaves out what has passed with the same inputs; see docs/testing.md.
`

// recordName is the name of the record in the checkout.
const recordName = "test/passed.txt"

func recordFile(root string) string { return filepath.Join(root, recordName) }

// ReadRecord reads the record of a checkout; without one, nothing has passed.
func ReadRecord(root string) (Record, error) {
	record := Record{Passed: map[string]Pass{}}
	content, err := os.ReadFile(recordFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return record, nil
	}
	if err != nil {
		return record, fmt.Errorf("reading the record of what passed: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		if strings.HasPrefix(line, "#") {
			continue
		}
		if err := record.parse(strings.Fields(line)); err != nil {
			return record, fmt.Errorf("%s:%d: %w", recordFile(root), number, err)
		}
	}
	return record, nil
}

func (r *Record) parse(fields []string) (err error) {
	switch {
	case len(fields) == 0:
	case fields[0] == "landing" && len(fields) == 3:
		r.Commit = fields[2]
		r.Landing, err = strconv.Atoi(fields[1])
	case fields[0] == "flaky" && len(fields) == 5:
		flake := Flake{Key: fields[1] + " " + fields[2], Test: fields[3]}
		flake.Landing, err = strconv.Atoi(fields[4])
		r.Flaky = append(r.Flaky, flake)
	case fields[0] == "passed" && len(fields) == 6:
		pass := Pass{Digest: fields[3]}
		var wrong error
		pass.Landing, err = strconv.Atoi(fields[4])
		pass.Seconds, wrong = strconv.ParseFloat(fields[5], 64)
		err = errors.Join(err, wrong)
		r.Passed[fields[1]+" "+fields[2]] = pass
	default:
		err = fmt.Errorf("a line is `landing NUMBER COMMIT`, `passed SUITE FOLDER DIGEST LANDING SECONDS` or `flaky SUITE FOLDER TEST LANDING`, not %q", strings.Join(fields, " "))
	}
	return err
}

// Write stores the record.
func (r Record) Write(root string) error {
	text := recordHead + fmt.Sprintf("landing %d %s\n", r.Landing, r.Commit)
	for _, each := range r.Flaky {
		text += fmt.Sprintf("flaky %s %s %d\n", each.Key, each.Test, each.Landing)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Passed)) {
		pass := r.Passed[key]
		text += fmt.Sprintf("passed %s %s %d %.0f\n", key, pass.Digest, pass.Landing, pass.Seconds)
	}
	return os.WriteFile(recordFile(root), []byte(text), 0o644)
}

// flakyLandings is for how many landings a flake counts.
const flakyLandings = 10

// Store is the results of this machine, a folder. It is safe for concurrent runs: each result is a file of its own.
type Store struct{ Folder string }

// Result is what the store holds of one run of a package.
type Result struct {
	Key, Digest string
	// Landing is the one that the run belonged to: the next after that of the record.
	Landing int
	Seconds float64
	// Flaky are tests that failed at first, with their output in a file of the store.
	Flaky map[string]string `json:",omitempty"`
}

func (s Store) name(key, digest string) string {
	return filepath.Join(s.Folder, strings.NewReplacer("/", "_", " ", "+").Replace(key)+"-"+digest+".json")
}

// Passed stores that a package has passed.
func (s Store) Passed(result Result) error {
	content, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		return fmt.Errorf("storing a result: %w", err)
	}
	name := s.name(result.Key, result.Digest)
	// Another run may write the same result.
	temporary, err := os.CreateTemp(s.Folder, ".new-")
	if err != nil {
		return fmt.Errorf("storing a result: %w", err)
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close(), os.Chmod(temporary.Name(), 0o644)); err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("storing a result: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}

// Of returns the stored result of a package with these inputs.
func (s Store) Of(key, digest string) (Result, bool) {
	content, err := os.ReadFile(s.name(key, digest))
	var result Result
	return result, err == nil && json.Unmarshal(content, &result) == nil
}

// Next is the record after a landing whose packages are these: what the store says of their inputs, and what the record has said before.
func (r Record) Next(packages []Package, store Store, commit string) (next Record, missing []string) {
	next = Record{Landing: r.Landing + 1, Commit: commit, Passed: map[string]Pass{}}
	for _, each := range r.Flaky {
		if each.Landing > next.Landing-flakyLandings {
			next.Flaky = append(next.Flaky, each)
		}
	}
	for _, each := range packages {
		before, recorded := r.Passed[each.Key]
		result, stored := store.Of(each.Key, each.Digest)
		switch {
		case stored:
			next.Passed[each.Key] = Pass{Digest: each.Digest, Landing: min(result.Landing, next.Landing), Seconds: result.Seconds}
			for test := range result.Flaky {
				next.Flaky = append(next.Flaky, Flake{each.Key, test, next.Landing})
			}
		case recorded && before.Digest == each.Digest:
			next.Passed[each.Key] = before
		default:
			missing = append(missing, each.Key)
		}
	}
	slices.SortFunc(next.Flaky, func(a, b Flake) int {
		return cmp.Or(cmp.Compare(a.Landing, b.Landing), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Test, b.Test))
	})
	return next, missing
}

// Choice is the decision about one package.
type Choice struct {
	Package
	// Run is set if it runs, Why says why or why not.
	Run bool
	Why string
}

// The reasons of choices.
const (
	becauseNew  = "has not passed with these inputs"
	becauseTurn = "its turn: each run repeats a quarter of what it could leave out"
	becauseLong = "did not run with the last three landings"
	becauseSame = "passed with the same inputs"
)

// everyLanding is how many landings may pass until everything has run.
const everyLanding = 4

// Choose decides which packages run. Changed are the files that differ from the commit of the record, for the reasons only.
func (r Record) Choose(packages []Package, store Store, changed []string, tree *Tree) []Choice {
	differs := map[string]bool{}
	for _, file := range changed {
		for _, part := range tree.partsOf(file) {
			differs[part] = true
		}
	}
	choices := make([]Choice, len(packages))
	ran := make([]int, len(packages)) // With which landing.
	var left []int
	var total float64
	for i, each := range packages {
		choices[i] = Choice{Package: each, Run: true, Why: becauseNew}
		pass, recorded := r.Passed[each.Key]
		same := recorded && pass.Digest == each.Digest
		ran[i], total = pass.Landing, total+pass.Seconds
		if result, stored := store.Of(each.Key, each.Digest); stored {
			same, ran[i] = true, max(result.Landing, ran[i])
		}
		if same {
			choices[i].Run, choices[i].Why = false, becauseSame
			left = append(left, i)
		} else if recorded {
			choices[i].Why = reason(each.Inputs, differs)
		}
	}
	// Those that have not run for the longest, and those of one landing in an order without meaning.
	slices.SortFunc(left, func(a, b int) int {
		return cmp.Or(cmp.Compare(ran[a], ran[b]), cmp.Compare(shuffled(packages[a].Key), shuffled(packages[b].Key)))
	})
	var share float64
	for _, i := range left {
		seconds := r.Passed[packages[i].Key].Seconds
		switch {
		case ran[i] > r.Landing: // With this landing, in an earlier run.
			continue
		case ran[i]+everyLanding <= r.Landing+1:
			choices[i].Run, choices[i].Why = true, becauseLong
		case share+seconds <= total/everyLanding:
			choices[i].Run, choices[i].Why = true, becauseTurn
		default:
			continue
		}
		share += seconds
	}
	return choices
}

// reason names the inputs that differ.
func reason(inputs []string, differs map[string]bool) string {
	var parts []string
	for _, part := range inputs {
		if differs[part] {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return becauseNew
	}
	return "changed: " + short(parts)
}

// short names a few of many.
func short(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func shuffled(key string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	return hash.Sum32()
}
