package machine

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestClassNamesDateCoresAndGo(t *testing.T) {
	got := Class(time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC))
	for _, want := range []string{"2026-01-31, ", " cores", runtime.GOARCH, runtime.Version()} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}

func TestMemoryOf(t *testing.T) {
	if runtime.GOOS == "linux" {
		got, err := MemoryOf(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if got.Own < 1<<19 || got.File < 1<<19 || got.Resident < 1<<20 || got.Peak < got.Resident {
			t.Errorf("this process occupies %+v: want at least 1 MiB, of it some of its own and some of its program, and a peak not below", got)
		}
	}
	if _, err := MemoryOf(-1); err == nil {
		t.Error("a process that does not exist occupies no memory: want an error")
	}
}
