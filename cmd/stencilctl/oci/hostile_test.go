package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	images "github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
	artifacts "github.com/vmstencil/stencil/oci"
)

// TestRegistriesThatLie has everything that a registry can answer instead of an artifact. Nothing may be left.
func TestRegistriesThatLie(t *testing.T) {
	s := newServer(t)
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	var r report
	if err := json.Unmarshal([]byte(succeed(t, "inspect", pinned, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	layer := "/blobs/" + r.Disks[0].Digest
	changed := func(real []byte) []byte {
		real[len(real)/2] ^= 1
		return real
	}
	for what, tc := range map[string]struct {
		path    string
		content func([]byte) []byte
		code    int
		want    string
	}{
		"another layer":      {layer, changed, cli.ExitUsage, "receiving the disk fedora-44: OCI artifact: the blob " + r.Disks[0].Digest + " has the digest sha256:"},
		"a longer layer":     {layer, func(real []byte) []byte { return append(real, 0) }, cli.ExitUsage, "OCI artifact: the blob " + r.Disks[0].Digest + " has more than its"},
		"an endless layer":   {layer, func(real []byte) []byte { return append(real, make([]byte, 16<<20)...) }, cli.ExitUsage, "has more than its"},
		"another manifest":   {"/manifests/" + r.Digest, changed, cli.ExitCluster, "does not match requested digest"},
		"another config":     {"/blobs/", changed, cli.ExitUsage, "has the digest sha256:"},
		"no artifact":        {"/manifests/" + r.Digest, func([]byte) []byte { return []byte("{}") }, cli.ExitCluster, "does not match requested digest"},
		"no artifact, a tag": {"/manifests/v1", func([]byte) []byte { return []byte("{}") }, cli.ExitUsage, "OCI artifact: the manifest has version 0"},
	} {
		t.Run(what, func(t *testing.T) {
			if tc.path == "/blobs/" {
				manifest, err := remote.Get(must(name.ParseReference(strings.TrimPrefix(pinned, scheme))))
				if err != nil {
					t.Fatal(err)
				}
				var has struct {
					Config struct{ Digest string }
				}
				if err := json.Unmarshal(manifest.Manifest, &has); err != nil {
					t.Fatal(err)
				}
				tc.path += has.Config.Digest
			}
			s.answer = lie(tc.path, tc.content)(s.next)
			defer func() { s.answer = nil }()
			from := pinned
			if strings.HasSuffix(tc.path, "/v1") {
				from = s.at("web:v1")
			}
			temp := t.TempDir()
			code, _, messages := run(t.Context(), "pull", from, "--output-folder", filepath.Join(temp, "out"))
			if code != tc.code || !strings.Contains(messages, tc.want) {
				t.Errorf("exit code %d, %s\nwant %d, %s", code, messages, tc.code, tc.want)
			}
			if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}

// TestLayersThatAreNoDisks has layers with the right digest whose content is wrong: it is found when they are expanded, and nothing may be left.
func TestLayersThatAreNoDisks(t *testing.T) {
	config := must(must(artifacts.DecodeResource(artifacts.VirtualMachine, []byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"db"}}`))).Encode())
	image := must(images.OpenRaw(bytes.NewReader(make([]byte, 3<<20)), 3<<20))
	var zeros bytes.Buffer
	must(must(rawzstd.NewEncoder(image, images.Options{})).Write(t.Context(), &zeros))
	s := newServer(t)
	for what, tc := range map[string]struct {
		layer []byte
		size  int64
		want  string
	}{
		"no zstd":       {[]byte("something else"), 1 << 20, "the disk data: zstd: invalid input: magic number mismatch"},
		"a bomb":        {zeros.Bytes(), 1 << 20, "the disk data: zstd: the disk has more than its 1048576 bytes"},
		"a short disk":  {zeros.Bytes(), 4 << 20, "the disk data: zstd: the disk ends at byte 3145728 of 4194304"},
		"a cut in zstd": {zeros.Bytes()[:50], 3 << 20, "the disk data: zstd: unexpected EOF"},
	} {
		t.Run(what, func(t *testing.T) {
			a := must(artifacts.Encode(artifacts.VirtualMachine, config, []artifacts.Disk{{Name: "data", Size: tc.size, Layer: v1.Descriptor{Size: int64(len(tc.layer)), Digest: hash(sha256.Sum256(tc.layer))}}}))
			temp, archive := t.TempDir(), filepath.Join(t.TempDir(), "db.tar")
			file := must(os.Create(archive))
			err := artifacts.WriteTar(file, a, config, "amd64", func(w io.Writer, _ artifacts.Disk) error {
				_, err := w.Write(tc.layer)
				return err
			})
			if err := errors.Join(err, file.Close()); err != nil {
				t.Fatal(err)
			}
			for _, from := range []string{archive, succeed(t, "push", archive, s.at("db:v1"))} {
				code, _, messages := run(t.Context(), "pull", from, "--output-folder", filepath.Join(temp, "out"))
				if code != cli.ExitUsage || !strings.Contains(messages, from+": "+tc.want) {
					t.Errorf("exit code %d, %s\nwant %s", code, messages, tc.want)
				}
				if !strings.Contains(messages, "warning: the disk data belongs to no claim of the VirtualMachine\n") {
					t.Errorf("no warning in %s", messages)
				}
				if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
					t.Errorf("left: %v, %v", entries, err)
				}
			}
		})
	}
}

func TestRegistriesDoNotLeadElsewhere(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	for to, want := range map[string]string{
		"http://registry.example.com/blob":  "registry.example.com does not serve HTTPS, or redirects to an address that does not: --plain-http permits it",
		"https://10.0.0.1/blob":             "redirects to the private address 10.0.0.1",
		"http://169.254.169.254/meta":       "redirects to the private address 169.254.169.254",
		"https://localhost:1/admin":         "redirects to the private address localhost:1",
		"https://[::1]:1/admin":             "redirects to the private address [::1]:1",
		"https://[fe80::1]/admin":           "redirects to the private address [fe80::1]",
		"https://192.168.1.1:8443/upload/x": "redirects to the private address 192.168.1.1:8443",
	} {
		s.answer = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			case r.Method == http.MethodHead:
				// All repositories of this registry have the same blobs.
				http.NotFound(w, r)
			case r.Method == http.MethodPost:
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusAccepted)
			default:
				return false
			}
			return true
		}
		temp := t.TempDir()
		if code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", filepath.Join(temp, "out")); code != cli.ExitCluster || !strings.Contains(messages, want) {
			t.Errorf("pull: exit code %d, %s\nwant %s", code, messages, want)
		}
		if code, _, messages := run(t.Context(), "push", web(t), s.at("other:v1")); code != cli.ExitCluster || !strings.Contains(messages, want) {
			t.Errorf("push: exit code %d, %s\nwant %s", code, messages, want)
		}
	}
}

// TestWhatIsWrongIsReported has everything that can be wrong with files and flags. Nothing may be left.
func TestWhatIsWrongIsReported(t *testing.T) {
	temp := t.TempDir()
	out := filepath.Join(temp, "out")
	archive := filepath.Join(t.TempDir(), "web.tar")
	succeed(t, "push", web(t), archive)
	text := filepath.Join(folderWith(t, map[string]string{"text": "no archive"}), "text")
	damaged := must(os.ReadFile(archive))
	damaged[len(damaged)-4000] ^= 1
	changed := filepath.Join(folderWith(t, map[string]string{"changed.tar": string(damaged)}), "changed.tar")
	truncated := filepath.Join(folderWith(t, map[string]string{"truncated.tar": string(damaged[:len(damaged)/2])}), "truncated.tar")
	pull := func(from string, more ...string) []string {
		return append([]string{"pull", from, "--output-folder", out}, more...)
	}
	push := func(folder string) []string { return []string{"push", folder, out} }
	for what, tc := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"no artifact":            {pull("none.tar"), cli.ExitUsage, "stat none.tar: no such file or directory; an artifact in a registry begins with oci://"},
		"no archive":             {pull(text), cli.ExitUsage, text + ": OCI artifact: the archive cannot be read"},
		"no layout":              {pull(web(t)), cli.ExitUsage, "OCI artifact: oci-layout is missing; want a layout"},
		"a changed layer":        {pull(changed), cli.ExitUsage, "the disk fedora-44: "},
		"a truncated archive":    {pull(truncated), cli.ExitUsage, "OCI artifact: the archive"},
		"a folder that exists":   {[]string{"pull", archive, "--output-folder", temp}, cli.ExitUsage, temp + " exists"},
		"no folder":              {[]string{"pull", archive}, cli.ExitUsage, `required flag(s) "output-folder" not set`},
		"a key and an archive":   {pull(archive, "--key", text), cli.ExitUsage, "--key needs an artifact in a registry"},
		"no reference":           {pull("oci://UPPER/case"), cli.ExitUsage, "want HOST/REPOSITORY:TAG or HOST/REPOSITORY@sha256:DIGITS"},
		"a reference, no tag":    {pull("oci://registry.example.com/web"), cli.ExitUsage, "want HOST/REPOSITORY:TAG"},
		"push, no template":      {push(t.TempDir()), cli.ExitUsage, "has 0 manifests; want one file NAME.yaml"},
		"push, two manifests":    {push(folderWith(t, map[string]string{"a.yaml": template, "b.yaml": vm})), cli.ExitUsage, "has 2 manifests; want one file"},
		"push, no disk":          {push(folderWith(t, map[string]string{"web.yaml": template})), cli.ExitUsage, "the disk of the claim fedora.44: open "},
		"push, an empty disk":    {push(folderWith(t, map[string]string{"web.yaml": template, "fedora.44.raw": ""})), cli.ExitUsage, "fedora.44.raw: a disk of 0 bytes is outside 1 to"},
		"push, another object":   {push(folderWith(t, map[string]string{"a.yaml": "kind: Secret\napiVersion: v1\nmetadata:\n  name: a\n"})), cli.ExitUsage, "a.yaml"},
		"push, a wrong template": {push(folderWith(t, map[string]string{"a.yaml": strings.Replace(template, "name: web", "name: web\n  colour: red", 1)})), cli.ExitUsage, "metadata.colour"},
		"push, no YAML":          {push(folderWith(t, map[string]string{"a.yaml": "a: b: c"})), cli.ExitUsage, "a.yaml: "},
		"push, a file exists":    {[]string{"push", web(t), archive}, cli.ExitUsage, archive + " exists"},
		"push, no source":        {[]string{"push", "none", out}, cli.ExitUsage, "stat none: no such file or directory"},
		"push, no folder":        {[]string{"push", web(t), "registry.example.com/web:v1"}, cli.ExitUsage, "registry.example.com/web:v1: stat registry.example.com: no such file or directory; an artifact in a registry begins with oci://"},
		"push, changed":          {push(changed), cli.ExitUsage, "has the digest sha256:"},
		"push, no reference":     {[]string{"push", web(t), "oci://a b"}, cli.ExitUsage, "want HOST/REPOSITORY:TAG"},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, messages := run(t.Context(), tc.arguments...)
			if code != tc.code || !strings.Contains(messages, tc.want) {
				t.Errorf("exit code %d, %s\nwant %d, %s", code, messages, tc.code, tc.want)
			}
			if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, arguments := range [][]string{pull(archive), push(web(t))} {
		if code, _, messages := run(ctx, arguments...); code == cli.ExitOK || !strings.Contains(messages, "context canceled") {
			t.Errorf("exit code %d, %s", code, messages)
		}
		if entries, err := os.ReadDir(temp); err != nil || len(entries) != 0 {
			t.Errorf("left: %v, %v", entries, err)
		}
	}
}
