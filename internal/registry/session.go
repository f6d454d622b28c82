package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// sessionLifetime is the time after which the address of an upload is removed. Registries remove uploads after a week or earlier.
const sessionLifetime = 7 * 24 * time.Hour

// sessions is a folder with the addresses of uploads that commands have not finished. It is a cache: where it cannot be read or written, uploads
// begin with their first byte. If it is empty, nothing is stored.
type sessions string

// file returns the file for an upload of a blob to a repository.
func (s sessions) file(repository, digest string) string {
	sum := sha256.Sum256([]byte(repository + "\n" + digest))
	return filepath.Join(string(s), hex.EncodeToString(sum[:]))
}

// take returns the address of an upload to a repository, and removes it, so that no other command uses it. It is empty if there is none.
func (s sessions) take(repository, digest string) string {
	if s == "" {
		return ""
	}
	path := s.file(repository, digest)
	location, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		return ""
	}
	from, err := url.Parse(repository)
	if err != nil {
		return ""
	}
	at, err := url.Parse(string(location))
	if err != nil || external(from, at) != nil {
		return ""
	}
	return at.String()
}

// store stores the address of an upload, which only this user can read, because some registries accept it without credentials.
func (s sessions) store(repository, digest, location string) {
	if s == "" || os.MkdirAll(string(s), 0o700) != nil {
		return
	}
	s.prune()
	_ = os.WriteFile(s.file(repository, digest), []byte(location), 0o600)
}

// remove removes the address of an upload that has ended.
func (s sessions) remove(repository, digest string) {
	if s != "" {
		_ = os.Remove(s.file(repository, digest))
	}
}

// prune removes addresses that no registry has any more.
func (s sessions) prune() {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > sessionLifetime {
			_ = os.Remove(filepath.Join(string(s), entry.Name()))
		}
	}
}
