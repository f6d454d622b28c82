package product

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// CoverVariable is the environment variable with which programs are built that count what they execute. They write into the folder of GOCOVERDIR,
// every other second, because tests kill them.
const CoverVariable = "STENCIL_COVER"

// counting is added to each program of a measurement.
const counting = `package main

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

// coverArguments are those of the build of a program that counts what it executes; none without [CoverVariable].
func (p program) coverArguments(root, bin string) ([]string, error) {
	if os.Getenv(CoverVariable) == "" {
		return nil, nil
	}
	source, overlay := filepath.Join(bin, "counting.go.txt"), filepath.Join(bin, p.name+".overlay.json")
	if err := os.WriteFile(source, []byte(counting), 0o644); err != nil {
		return nil, fmt.Errorf("preparing %s for a measurement: %w", p.name, err)
	}
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, p.module, p.pkg, "zz_counting.go"): source}}
	content, err := json.Marshal(replace)
	if err == nil {
		err = os.WriteFile(overlay, content, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing %s for a measurement: %w", p.name, err)
	}
	return []string{"-cover", "-covermode=atomic", "-coverpkg=github.com/vmstencil/stencil/...", "-overlay=" + overlay}, nil
}
