package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/registry"
)

func TestUploadsContinueAfterCuts(t *testing.T) {
	s := newServer(t)
	s.cutUpload = []int{100_000, 0, 0, 0, 200_000, 0}
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	var ranges []string
	for _, request := range s.did("PATCH") {
		if parts := strings.Split(request, " "); len(parts) == 3 {
			ranges = append(ranges, strings.Split(parts[2], "-")[0])
		}
	}
	if diff := cmp.Diff([]string{"100000", "100000", "100000", "100000", "300000", "300000"}, ranges); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", pinned, "--output-folder", out)
	isWeb(t, out)
}

func TestUploadsBeginAgainWhereTheRegistryHasForgotten(t *testing.T) {
	s := newServer(t)
	s.forgetful = true
	s.cutUpload = []int{100_000, 0, 1}
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	// One for each upload of the layer, and one of the config.
	if sessions := s.did("POST"); len(sessions) != 5 {
		t.Errorf("requests %v", sessions)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", pinned, "--output-folder", out)
	isWeb(t, out)
	// Cuts without end are an error.
	broken := newServer(t)
	broken.cutUpload = []int{0, 0, 0, 0, 0, 0}
	code, _, messages := run(t.Context(), "push", web(t), broken.at("web:v1"))
	if code != cli.ExitCluster || !strings.Contains(messages, "sending the disk fedora-44: ") {
		t.Errorf("exit code %d, %s", code, messages)
	}
}

func TestAnotherPushContinues(t *testing.T) {
	s := newServer(t)
	options := registry.Options{Wait: noWait, Uploads: filepath.Join(t.TempDir(), "caches", "uploads")}
	source := web(t)
	push := func() (code int, out string) {
		code, out, _ = runWith(t.Context(), options, "push", source, s.at("web:v1"))
		return code, strings.TrimSpace(out)
	}
	stored := func() []string {
		entries, err := os.ReadDir(options.Uploads)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
			names = append(names, entry.Name())
		}
		return names
	}
	s.cutUpload = []int{250_000, 0, 0, 0, 0, 0, 0}
	if code, _ := push(); code != cli.ExitCluster {
		t.Fatalf("exit code %d", code)
	}
	if files := stored(); len(files) != 1 {
		t.Fatalf("stored: %v", files)
	}
	s.forget()
	code, pinned := push()
	if code != cli.ExitOK {
		t.Fatalf("exit code %d", code)
	}
	if sent := s.did("PATCH"); len(sent) != 2 || !strings.Contains(sent[0], " 250000-") {
		t.Errorf("requests %v", sent)
	}
	// One session for the config; that of the layer was there.
	if sessions := s.did("POST"); len(sessions) != 1 {
		t.Errorf("requests %v", sessions)
	}
	if files := stored(); len(files) != 0 {
		t.Errorf("stored: %v", files)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", pinned, "--output-folder", out)
	isWeb(t, out)
}

func TestAddressesOfUploadsThatAreOfNoUse(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *server, path string){
		"a session that the registry does not have": func(t *testing.T, s *server, path string) {
			write(t, path, "http://"+s.host+"/v2/web/blobs/uploads/none")
		},
		"another private host": func(t *testing.T, _ *server, path string) {
			write(t, path, "http://127.0.0.2:1/v2/web/blobs/uploads/1")
		},
		"no address": func(t *testing.T, _ *server, path string) { write(t, path, "\x00") },
		"an old one that is removed": func(t *testing.T, _ *server, path string) {
			old := time.Now().Add(-8 * 24 * time.Hour)
			if err := os.Rename(path, path+"0"); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path+"0", old, old); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			options := registry.Options{Wait: noWait, Uploads: t.TempDir()}
			source := web(t)
			s.cutUpload = []int{250_000, 0, 0, 0, 0, 0, 0}
			if code, _, _ := runWith(t.Context(), options, "push", source, s.at("web:v1")); code != cli.ExitCluster {
				t.Fatalf("exit code %d", code)
			}
			entries, err := os.ReadDir(options.Uploads)
			if err != nil || len(entries) != 1 {
				t.Fatalf("stored: %v, %v", entries, err)
			}
			change(t, s, filepath.Join(options.Uploads, entries[0].Name()))
			s.forgetful = true
			code, pinned, messages := runWith(t.Context(), options, "push", source, s.at("web:v1"))
			if code != cli.ExitOK {
				t.Fatalf("exit code %d, %s", code, messages)
			}
			if entries, err := os.ReadDir(options.Uploads); err != nil || len(entries) != 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
			out := filepath.Join(t.TempDir(), "out")
			succeed(t, "pull", strings.TrimSpace(pinned), "--output-folder", out)
			isWeb(t, out)
		})
	}
}

// A session that has other bytes than the layer is used once.
func TestASessionThatTheRegistryRejectsIsNotStored(t *testing.T) {
	s := newServer(t)
	options := registry.Options{Wait: noWait, Uploads: t.TempDir()}
	source := web(t)
	s.cutUpload = []int{250_000, 0, 0, 0, 0, 0, 0}
	if code, _, _ := runWith(t.Context(), options, "push", source, s.at("web:v1")); code != cli.ExitCluster {
		t.Fatalf("exit code %d", code)
	}
	// As if the registry had lost some bytes of it.
	s.mutex.Lock()
	for path := range s.received {
		s.received[path] += 1000
	}
	s.mutex.Unlock()
	code, _, messages := runWith(t.Context(), options, "push", source, s.at("web:v1"))
	if code != cli.ExitCluster || !strings.Contains(messages, "sending the disk fedora-44: ") {
		t.Errorf("exit code %d, %s", code, messages)
	}
	if entries, err := os.ReadDir(options.Uploads); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if code, _, messages := runWith(t.Context(), options, "push", source, s.at("web:v1")); code != cli.ExitOK {
		t.Errorf("exit code %d, %s", code, messages)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
