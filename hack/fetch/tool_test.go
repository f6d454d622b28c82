package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestToolTakesPublishedBinaries runs hack/tool in a checkout whose etcd is a small program, with mirrors on loopback: it takes the published binary,
// and builds from modules, and says so, when it does not get it.
func TestToolTakesPublishedBinaries(t *testing.T) {
	root := t.TempDir()
	write := func(name string, content []byte, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tool", "fetch/main.go", "fetch/go.mod", "tools/go.mod"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		write("hack/"+name, content, 0o755)
	}
	const tools = "test/controlplane/tools/etcd/"
	write(tools+"go.mod", []byte("module etcd\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 v3.7.0\n\nreplace go.etcd.io/etcd/server/v3 => ./own\n"), 0o600)
	write(tools+"go.sum", nil, 0o600)
	write(tools+"main.go", []byte("//go:build tools\n\npackage main\n\nimport _ \"go.etcd.io/etcd/server/v3\"\n"), 0o600)
	write(tools+"own/go.mod", []byte("module go.etcd.io/etcd/server/v3\n\ngo 1.26.0\n"), 0o600)
	write(tools+"own/main.go", []byte("package main\n\nfunc main() { println(\"built\") }\n"), 0o600)
	content := packed(t, "controller-tools/envtest/etcd")
	lock, err := os.ReadFile(lockFile(t, content, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	write("hack/binaries.lock", bytes.ReplaceAll(lock, []byte("linux-amd64"), []byte(runtime.GOOS+"-"+runtime.GOARCH)), 0o600)

	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	defer good.Close()
	bad := httptest.NewServer(http.NotFoundHandler())
	defer bad.Close()
	for _, tc := range []struct {
		name, binaries, mirror string
		// published is set if the path is that of the published binary, and want is a part of what is said.
		published bool
		want      string
	}{
		{name: "a mirror without the archive", binaries: "download", mirror: bad.URL, want: "building from modules instead: etcd"},
		{name: "a mirror", binaries: "download", mirror: good.URL, published: true},
		{name: "the default", mirror: good.URL, want: "building etcd (v3.7.0)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "tool"), "etcd")
			command.Env = append(os.Environ(), "STENCIL_CACHE="+t.TempDir(), "STENCIL_BINARIES="+tc.binaries, "STENCIL_MIRROR="+tc.mirror, "STENCIL_ASSETS=", "GOFLAGS=")
			var said bytes.Buffer
			command.Stderr = &said
			path, err := command.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			if !strings.Contains(said.String(), tc.want) {
				t.Errorf("it says %q, want %q", said.String(), tc.want)
			}
			ran, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(path))).CombinedOutput()
			if err != nil || strings.Contains(string(ran), "built") == tc.published {
				t.Errorf("%s prints %q, %v", path, ran, err)
			}
		})
	}
}
