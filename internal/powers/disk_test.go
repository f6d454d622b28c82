package powers

import (
	"context"
	"errors"
	"testing"

	"github.com/vmstencil/stencil/internal/disks"
)

// leads answers with the namespaces on the way to a disk, and counts questions.
type leads struct {
	through []string
	to      string
	err     error
	asked   int
}

func (l *leads) Resolve(_ context.Context, source disks.Source) (disks.Resolved, error) {
	l.asked++
	source.Namespace = l.to
	return disks.Resolved{Source: source, Through: l.through}, l.err
}

func TestADiskIsFollowedOnlyWhereItIsPermitted(t *testing.T) {
	fault := errors.New("the API server does not answer")
	for name, tc := range map[string]struct {
		first string
		leads
		permitted []string
		outside   string
		questions int
	}{
		"within a namespace":                 {"shop", leads{through: []string{"shop"}, to: "shop"}, []string{"shop"}, "", 1},
		"to one that is permitted":           {"shop", leads{through: []string{"shop"}, to: "golden"}, []string{"shop", "golden"}, "", 1},
		"to one that is not":                 {"shop", leads{through: []string{"shop"}, to: "finance"}, []string{"shop"}, "finance", 1},
		"through one that is not":            {"shop", leads{through: []string{"shop", "finance"}, to: "shop"}, []string{"shop"}, "finance", 1},
		"the first of several that are not":  {"shop", leads{through: []string{"shop", "a"}, to: "b"}, []string{"shop"}, "a", 1},
		"nothing is read where none may":     {"finance", leads{through: []string{"finance"}, to: "shop"}, []string{"shop"}, "finance", 0},
		"an answer that is not given denies": {"shop", leads{err: fault}, []string{"shop"}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, outside, err := Disk(t.Context(), &tc.leads, disks.Source{Kind: disks.DataSourceKind, Namespace: tc.first, Name: "a"}, tc.permitted...)
			if outside != tc.outside || tc.asked != tc.questions || !errors.Is(err, tc.err) {
				t.Errorf("outside %q after %d questions, %v; want %q after %d", outside, tc.asked, err, tc.outside, tc.questions)
			}
		})
	}
}
