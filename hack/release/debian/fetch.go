package debian

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// Source is from where packages are downloaded, and where they are cached.
type Source struct {
	// Mirror is the address of Debian's archives, such as https://deb.debian.org. It has only the newest versions; others are downloaded from
	// Archive.
	Mirror string
	// Archive is the address of all versions, such as https://snapshot.debian.org/archive.
	Archive string
	// Cache is a folder, which is created if it does not exist.
	Cache string
}

// Read returns the file of a package, whose checksum is that of the lock file.
func (s Source) Read(ctx context.Context, lock *Lock, p Package) ([]byte, error) {
	cached := filepath.Join(s.Cache, p.SHA256+".deb")
	content, err := os.ReadFile(cached)
	if err == nil {
		if err := p.verify(content); err != nil {
			return nil, fmt.Errorf("%s: %w; remove the file, so that it is downloaded again", cached, err)
		}
		return content, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the package %s: %w", p.Name, err)
	}
	content, err = s.download(ctx, lock, p)
	if err != nil {
		return nil, err
	}
	return content, s.keep(cached, content)
}

// verify compares the size and the checksum of the file of a package.
func (p Package) verify(content []byte) error {
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != p.SHA256 || int64(len(content)) != p.Size {
		return fmt.Errorf("package %s %s has %d bytes with SHA-256 %s, and the lock file has %d bytes with %s", p.Name, p.Version, len(content), sum, p.Size, p.SHA256)
	}
	return nil
}

// download tries the mirror first.
func (s Source) download(ctx context.Context, lock *Lock, p Package) ([]byte, error) {
	archive, path := p.archive()
	var problems error
	for _, address := range []string{s.Mirror + "/" + p.Path, s.Archive + "/" + archive + "/" + lock.Snapshot + "/" + path} {
		content, err := get(ctx, address, p.Size)
		if err == nil {
			err = p.verify(content)
		}
		if err == nil {
			return content, nil
		}
		problems = errors.Join(problems, fmt.Errorf("%s: %w", address, err))
	}
	return nil, fmt.Errorf("downloading the package %s %s, which Debian may have replaced: update the lock file with `make debian-lock`: %w", p.Name, p.Version, problems)
}

// get downloads a file of at most size bytes, and one more of a larger one.
func get(ctx context.Context, address string, size int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, size+1))
}

// keep writes a file of the cache, which exists as a whole or not at all.
func (s Source) keep(path string, content []byte) error {
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return fmt.Errorf("creating the cache of packages: %w", err)
	}
	file, err := os.CreateTemp(s.Cache, "download-")
	if err != nil {
		return fmt.Errorf("writing to the cache of packages: %w", err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing to the cache of packages: %w", err), os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("writing to the cache of packages: %w", err), os.Remove(file.Name()))
	}
	return nil
}
