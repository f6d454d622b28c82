package machine

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	for name, tc := range map[string]struct {
		line    string
		want    process
		wantErr bool
	}{
		"an ordinary line": {
			line: "42 (etcd) S 7 42 42 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 9 0 100 0",
			want: process{pid: 42, parent: 7, name: "etcd", cpu: 1750 * time.Millisecond},
		},
		"a name with spaces and parentheses": {
			line: "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 1 0 0 0 20 0 9 0 100 0",
			want: process{pid: 42, parent: 7, name: "a) b (c", cpu: 10 * time.Millisecond},
		},
		"a line without a name":  {line: "42 S 7", wantErr: true},
		"a line that is cut off": {line: "42 (etcd) S 7 42", wantErr: true},
		"a field that is no number": {
			line:    "42 (etcd) S x 42 42 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 9 0 100 0",
			wantErr: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(tc.line)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want one: %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(process{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCPUSeesThisProcessAndItsChildrenAndNobodyElses(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // There is no /proc to read.
	}
	child := exec.CommandContext(t.Context(), "cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	before, err := CPU()
	if err != nil {
		t.Error(err)
	}
	got, err := CPU("cat", "init", "")
	if err != nil {
		t.Error(err)
	}
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if used := got[""] - before[""]; used < 0 || used > time.Second {
		t.Errorf("reading twice took this process %s of processor time", used)
	}
	for name, want := range map[string]bool{"": true, "cat": true, "init": false} {
		if _, found := got[name]; found != want {
			t.Errorf("process %q found: %v, want %v", name, found, want)
		}
	}
}
