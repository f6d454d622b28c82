package harness

import "testing"

func TestRaced(t *testing.T) {
	const exists = `Error from server (AlreadyExists): error when creating "fedora.yaml": virtualmachinetemplates.template.kubevirt.io "fedora" already exists` + "\n"
	for name, tc := range map[string]struct {
		stderr string
		want   bool
	}{
		"somebody else was faster":              {exists, true},
		"with several objects":                  {exists + exists, true},
		"beside a warning":                      {"Warning: a parameter\n" + exists, true},
		"something else is wrong as well":       {exists + "Error from server (Forbidden): no\n", false},
		"something else is wrong":               {"error: the path \"x\" does not exist\n", false},
		"nothing is said":                       {"", false},
		"it was changed between read and write": {"Error from server (Conflict): error when applying patch\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := raced(tc.stderr); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
