package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// manual returns the pages for man and the completions of shells, which stencilctl for this platform writes. They are the same for every platform.
func (r release) manual(ctx context.Context, binary []byte) ([]entry, error) {
	folder, err := os.MkdirTemp("", "stencil-release-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the manual: %w", err)
	}
	defer os.RemoveAll(folder)
	program, written := filepath.Join(folder, client), filepath.Join(folder, "manual")
	if err := os.WriteFile(program, binary, 0o700); err != nil {
		return nil, fmt.Errorf("writing %s: %w", client, err)
	}
	if output, err := exec.CommandContext(ctx, program, "manual", written).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("writing the manual of %s: %w\n%s", client, err, output)
	}
	var entries []entry
	err = fs.WalkDir(os.DirFS(written), ".", func(path string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(written, filepath.FromSlash(path)))
		entries = append(entries, entry{name: path, mode: 0o644, content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manual of %s: %w", client, err)
	}
	return entries, nil
}
