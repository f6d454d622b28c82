package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// packed is an archive with these files.
func packed(t *testing.T, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, name := range names {
		text := "#!/bin/sh\necho " + name + "\n"
		if err := archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func lockFile(t *testing.T, content []byte, names ...string) string {
	t.Helper()
	sum := sha256.Sum256(content)
	file := filepath.Join(t.TempDir(), "lock")
	line := fmt.Sprintf("# comment\ntools-v1-linux-amd64.tar.gz %s https://192.0.2.1/never %s\n", hex.EncodeToString(sum[:]), strings.Join(names, " "))
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestMirrors downloads from mirrors on loopback, good and bad ones.
func TestMirrors(t *testing.T) {
	content, other := packed(t, "tools/bin/etcd", "tools/bin/kubectl", "tools/README"), packed(t, "tools/bin/etcd")
	ends := make(chan struct{})
	serve := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL + "/folder/"
	}
	t.Cleanup(func() { close(ends) })
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	for _, tc := range []struct {
		name, mirror string
		binaries     []string
		// want is a part of the reason; empty if the binaries are there.
		want string
	}{
		{name: "reachable", mirror: serve(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/folder/tools-v1-linux-amd64.tar.gz" {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(content)
		})},
		{name: "absent", mirror: serve(http.NotFound), want: "tools-v1-linux-amd64.tar.gz answers 404 Not Found"},
		{name: "unreachable", mirror: "http://" + closed.Addr().String(), want: "connection refused"},
		{name: "without an answer", mirror: serve(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-ends:
			}
		}), want: "no answer from http://127.0.0.1"},
		{name: "that stalls", mirror: serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:10])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-ends:
			}
		}), want: "no more of it came from http://127.0.0.1"},
		{name: "slow, but not stalled", mirror: serve(func(w http.ResponseWriter, _ *http.Request) {
			for part := range slicesOf(content, 5) {
				_, _ = w.Write(part)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(30 * time.Millisecond)
			}
		})},
		{name: "with another digest", mirror: serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(other) }), want: "has SHA-256 "},
		{name: "truncated", mirror: serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
		}), want: "unexpected EOF"},
		{name: "truncated, and it says so", mirror: serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content[:len(content)/2]) }), want: "has SHA-256 "},
		{name: "of an archive without a binary of the lock file", binaries: []string{"etcd", "kube-apiserver"}, mirror: serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }), want: "it has no kube-apiserver"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.binaries == nil {
				tc.binaries = []string{"etcd", "kubectl"}
			}
			var out, problems bytes.Buffer
			f := fetcher{folder: t.TempDir(), mirror: tc.mirror, platform: "linux-amd64", connect: 500 * time.Millisecond, stall: 500 * time.Millisecond, progress: &problems}
			if err := f.run(t.Context(), lockFile(t, content, tc.binaries...), []string{"etcd", "kubectl", "helm"}, &out); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(f.folder)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != "" {
				if !strings.Contains(problems.String(), tc.want) || out.Len() > 0 || len(entries) > 0 {
					t.Errorf("got %q and output %q, want %q, no output and nothing left of %v", problems.String(), out.String(), tc.want, entries)
				}
				return
			}
			lines := strings.Fields(out.String())
			if len(lines) != 4 || lines[0] != "etcd" || lines[2] != "kubectl" || len(entries) != 1 {
				t.Fatalf("got %q, problems %q, and %v", out.String(), problems.String(), entries)
			}
			info, err := os.Stat(lines[1])
			if err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("etcd is %v, %v", info, err)
			}
			// A second call needs no mirror.
			f.mirror = "http://" + closed.Addr().String()
			var again bytes.Buffer
			if err := f.run(t.Context(), lockFile(t, content, tc.binaries...), []string{"etcd", "kubectl"}, &again); err != nil || again.String() != out.String() {
				t.Errorf("the second call prints %q, %v", again.String(), err)
			}
		})
	}
}

// slicesOf yields n parts of the content.
func slicesOf(content []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range n {
			if !yield(content[i*len(content)/n : (i+1)*len(content)/n]) {
				return
			}
		}
	}
}

// TestTheLockFile reads the one that hack/tool uses.
func TestTheLockFile(t *testing.T) {
	for _, platform := range []string{"linux-amd64", "linux-arm64"} {
		archives, err := readLock("../binaries.lock", platform)
		if err != nil || len(archives) != 2 {
			t.Errorf("%s: %v, %v", platform, archives, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(bad, []byte("\ntools.tar.gz 1234 https://example.com etcd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readLock(bad, "linux-amd64"); err == nil || !strings.Contains(err.Error(), "lock:2: a line is an archive, its SHA-256") {
		t.Error(err)
	}
}
