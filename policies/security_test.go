package policies_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maximumSecurity is the size of SECURITY.md in bytes that is read in about ten minutes: 1800 words.
const maximumSecurity = 12 << 10

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`(?: \\(([a-z0-9/]+)\\))?")
	function = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// TestSecurityClaimsOnlyWhatATestShows reads the pages about security: each threat names a test, and each named test exists, in the folder that is named.
func TestSecurityClaimsOnlyWhatATestShows(t *testing.T) {
	folders := map[string]map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range function.FindAllStringSubmatch(string(source), -1) {
			if folders[found[1]] == nil {
				folders[found[1]] = map[string]bool{}
			}
			folders[found[1]][filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"SECURITY.md", "docs/security/powers.md", "docs/security/threats.md"} {
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		if page == "SECURITY.md" && len(text) > maximumSecurity {
			t.Errorf("SECURITY.md has %d bytes, and is read in ten minutes up to %d: move details to docs/security", len(text), maximumSecurity)
		}
		threats := false
		for number, line := range strings.Split(string(text), "\n") {
			tests := testName.FindAllStringSubmatch(line, -1)
			for _, named := range tests {
				in, exists := folders[named[1]]
				if !exists {
					t.Errorf("%s, line %d: there is no test %s", page, number+1, named[1])
				} else if named[2] != "" && !in[named[2]] {
					t.Errorf("%s, line %d: %s is not in %s", page, number+1, named[1], named[2])
				}
			}
			if strings.HasPrefix(line, "|") {
				heads := strings.Contains(line, "| shown by |") || strings.Contains(line, "| test |")
				if threats = threats || heads; threats && !heads && !strings.HasPrefix(line, "|---") && len(tests) == 0 && !strings.Contains(line, "no test: ") {
					t.Errorf("%s, line %d: no test shows it: %s", page, number+1, line)
				}
			} else {
				threats = false
			}
		}
	}
}
