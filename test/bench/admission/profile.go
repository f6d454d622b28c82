package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/vmstencil/stencil/test/manager"
)

// profileTime is how long the manager is profiled.
const profileTime = 10 * time.Second

// profiling returns the flag with which the manager serves profiles, and where, when any are wanted.
func profiling(options Options) (arguments []string, address string, err error) {
	if options.Profile == "" {
		return nil, "", nil
	}
	if address, err = manager.FreeAddress(); err != nil {
		return nil, "", err
	}
	return []string{"--pprof-bind-address=" + address}, address, nil
}

// profile takes a CPU and an allocation profile of the manager while 8 clients have it render. It is no part of the measurements.
func (b *bench) profile(ctx context.Context, options Options) error {
	if options.Profile == "" {
		return nil
	}
	options.Progress("admission: profiling")
	if err := os.MkdirAll(options.Profile, 0o755); err != nil {
		return fmt.Errorf("making the folder of the profiles: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := load{clients: targetClients, requests: 1 << 30, limit: profileTime + time.Second}.measure(ctx, b.send(withRef))
		done <- err
	}()
	err := b.download(ctx, fmt.Sprintf("profile?seconds=%.0f", profileTime.Seconds()), filepath.Join(options.Profile, "manager-cpu.pprof"))
	if err = errors.Join(err, <-done); err != nil {
		return err
	}
	return b.download(ctx, "allocs", filepath.Join(options.Profile, "manager-allocs.pprof"))
}

func (b *bench) download(ctx context.Context, path, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.profiles+"/debug/pprof/"+path, nil)
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
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}
