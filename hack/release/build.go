package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// build returns a program for a platform.
func (r release) build(ctx context.Context, p program, on platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "stencil-release-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for %s: %w", p.name, err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, p.name)
	in, pkg := p.folder()
	// The flags of the programs that the tests run, so that packages are compiled once for both.
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags=-s -w -X main.version="+r.version, "-tags="+p.tags, "-o", path, pkg)
	command.Dir = filepath.Join(r.root, in)
	command.Env = append(os.Environ(), r.environment(p, on)...)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building %s for %s: %w\n%s", p.name, on, err, output)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s for %s: %w", p.name, on, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading how %s for %s was built: %w", p.name, on, err)
	}
	for _, setting := range info.Settings {
		if setting.Key == "GOEXPERIMENT" {
			return nil, fmt.Errorf("%s was built with GOEXPERIMENT=%s, which others do not have: unset it, in the environment and by `go env -u`", p.name, setting.Value)
		}
	}
	if p.cgo {
		if err := r.checkLinked(p, on, content); err != nil {
			return nil, fmt.Errorf("checking %s for %s: %w", p.name, on, err)
		}
	}
	return content, nil
}

// environment fixes what a program depends on. None of the values is empty: for an empty one the Go command reads the file of `go env -w`.
func (r release) environment(p program, on platform) []string {
	toolchain, _, _ := strings.Cut(runtime.Version(), " ")
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	return append([]string{
		cgo, "CGO_CFLAGS=-O2", "CGO_LDFLAGS=-O2", "GOOS=" + on.os, "GOARCH=" + on.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOTOOLCHAIN=" + toolchain, "GOFIPS140=off",
	}, r.toolchain.environment(on)...)
}
