package product

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// CoverVariable is the environment variable with which programs are built that count what they execute. They write into the folder of GOCOVERDIR,
// every other second, because tests kill them.
const CoverVariable = "STENCIL_COVER"

// counting is added to a package of each program of a measurement.
const counting = `

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"time"
)

func init() {
	folder := os.Getenv("GOCOVERDIR")
	if folder == "" {
		return
	}
	name := filepath.Join(folder, fmt.Sprintf("%d-%d-", os.Getpid(), time.Now().UnixNano()))
	go func() {
		// One of two folders is complete at each moment.
		for n := 0; ; n = 1 - n {
			time.Sleep(2 * time.Second)
			own := name + fmt.Sprint(n)
			_ = os.RemoveAll(own)
			if os.Mkdir(own, 0o777) == nil && coverage.WriteMetaDir(own) == nil {
				_ = coverage.WriteCountersDir(own)
			}
		}
	}()
}
`

// coverArguments of the build of a program that counts what it executes; none without [CoverVariable].
func (p program) coverArguments(bin, root string) ([]string, error) {
	if os.Getenv(CoverVariable) == "" {
		return nil, nil
	}
	arguments := []string{"-cover", "-covermode=atomic", "-coverpkg=github.com/vmstencil/stencil/..."}
	if p.counts == "" {
		return arguments, nil // It ends by itself, and writes its counts then.
	}
	list := exec.Command("go", "list", "-deps", "-tags="+p.tags, p.pkg)
	list.Dir = filepath.Join(root, p.module)
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", p.name, err)
	}
	// The cover tool does not find a file that an overlay adds.
	const prefix = "github.com/vmstencil/stencil/"
	packages := slices.DeleteFunc(strings.Fields(string(listed)), func(each string) bool { return !strings.HasPrefix(each, prefix) || each == prefix+p.counts })
	arguments[2] = "-coverpkg=" + strings.Join(packages, ",")
	source, overlay := filepath.Join(bin, p.name+".counting.go.txt"), filepath.Join(bin, p.name+".overlay.json")
	content, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, p.counts, "zz_counting.go"): source}})
	if err == nil {
		err = errors.Join(os.WriteFile(source, []byte("package "+filepath.Base(p.counts)+counting), 0o644), os.WriteFile(overlay, content, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("preparing %s for a measurement: %w", p.name, err)
	}
	return append(arguments, "-overlay="+overlay), nil
}
