// Package profiles fetches Go profiles of a server of Stencil that a benchmark runs. They help to explain a result, and are never taken during a
// measurement.
package profiles

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vmstencil/stencil/test/manager"
)

// Source is a server that serves profiles.
type Source struct {
	address, folder string
}

// New returns a source that writes profiles to a folder, which is made if need be.
func New(folder string) (*Source, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the profiles: %w", err)
	}
	address, err := manager.FreeAddress()
	if err != nil {
		return nil, err
	}
	return &Source{address: address, folder: folder}, nil
}

// Requested returns a source and the arguments of the server for it. Without a folder there is none.
func Requested(folder string) (*Source, []string, error) {
	if folder == "" {
		return nil, nil, nil
	}
	source, err := New(folder)
	if err != nil {
		return nil, nil, err
	}
	return source, []string{source.Argument()}, nil
}

// Argument is the flag that makes a server serve its profiles to this source.
func (s *Source) Argument() string { return "--pprof-bind-address=" + s.address }

// CPU takes a profile of the processor time over the given duration.
func (s *Source) CPU(ctx context.Context, duration time.Duration, file string) error {
	return s.fetch(ctx, fmt.Sprintf("profile?seconds=%.0f", duration.Seconds()), file)
}

// Allocations takes a profile of everything allocated so far.
func (s *Source) Allocations(ctx context.Context, file string) error {
	return s.fetch(ctx, "allocs", file)
}

// AllocationsDuring takes a profile of the allocations over the given duration.
func (s *Source) AllocationsDuring(ctx context.Context, duration time.Duration, file string) error {
	return s.fetch(ctx, fmt.Sprintf("allocs?seconds=%.0f", duration.Seconds()), file)
}

// Heap takes a profile of what is in use after a garbage collection.
func (s *Source) Heap(ctx context.Context, file string) error { return s.fetch(ctx, "heap?gc=1", file) }

func (s *Source) fetch(ctx context.Context, path, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/debug/pprof/"+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("fetching a profile: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("fetching a profile: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("fetching a profile: %s: %s", response.Status, content)
	}
	if err := os.WriteFile(filepath.Join(s.folder, file), content, 0o644); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}
