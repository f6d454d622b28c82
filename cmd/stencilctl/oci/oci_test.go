package oci

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/oci/registry"
	images "github.com/vmstencil/stencil/disk"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/internal/cosign"
	artifacts "github.com/vmstencil/stencil/oci"
)

const template = `apiVersion: template.kubevirt.io/v1beta1
kind: VirtualMachineTemplate
metadata:
  name: web
  namespace: golden
spec:
  parameters:
  - name: NAME
    required: true
  virtualMachine:
    apiVersion: kubevirt.io/v1
    kind: VirtualMachine
    metadata:
      name: ${NAME}
    spec:
      dataVolumeTemplates:
      - metadata:
          name: ${NAME}-root
        spec:
          source:
            pvc:
              name: fedora.44
              namespace: golden
          storage: {}
      runStrategy: Always
      template:
        spec:
          domain:
            devices:
              disks:
              - disk:
                  bus: virtio
                name: root
            memory:
              guest: 1Gi
          volumes:
          - dataVolume:
              name: ${NAME}-root
            name: root
`

const vm = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: db
spec:
  template:
    spec:
      architecture: arm64
      volumes:
      - name: root
        persistentVolumeClaim:
          claimName: data
`

// content is a disk with holes whose layer has about 600 KB.
func content() []byte {
	raw := make([]byte, 5<<20)
	_, _ = mathrand.NewChaCha8([32]byte{2}).Read(raw[1<<20 : 1<<20+600_000])
	copy(raw[5<<20-12:], "last sector")
	return raw
}

// folderWith writes files to a new folder.
func folderWith(t *testing.T, contents map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// web is a folder with a template and its disk.
func web(t *testing.T) string {
	t.Helper()
	return folderWith(t, map[string]string{"web.yaml": template, "fedora.44.raw": string(content())})
}

// run runs a command of the group and returns its exit code, what it prints and its messages, with the error.
func run(ctx context.Context, arguments ...string) (code int, out, messages string) {
	var written, errors bytes.Buffer
	group := newCommand(cli.Streams{In: strings.NewReader(""), Out: &written, Err: &errors}, registry.Options{Wait: noWait})
	group.SilenceErrors, group.SilenceUsage = true, true
	group.SetArgs(arguments)
	err := group.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(&errors, err)
	}
	return cli.ExitCode(err), written.String(), errors.String()
}

// succeed runs a command that has to succeed, and returns what it prints.
func succeed(t *testing.T, arguments ...string) string {
	t.Helper()
	code, out, messages := run(t.Context(), arguments...)
	if code != cli.ExitOK {
		t.Fatalf("%v: exit code %d, %s", arguments, code, messages)
	}
	return strings.TrimSpace(out)
}

// isWeb compares a folder with that of web.
func isWeb(t *testing.T, folder string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(folder, "fedora.44.raw")); err != nil || !bytes.Equal(got, content()) {
		t.Errorf("the disk has other content, or %v", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "web.yaml"))
	if diff := cmp.Diff(template, string(text)); diff != "" || err != nil {
		t.Errorf("the template (-want +got):\n%s%v", diff, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	if _, err := os.Stat(folder + partial); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the partial folder: %v", err)
	}
}

func TestFolderToArchiveAndBack(t *testing.T) {
	temp := t.TempDir()
	archive, again, out := filepath.Join(temp, "web.oci.tar"), filepath.Join(temp, "again.tar"), filepath.Join(temp, "out")
	if got := succeed(t, "push", web(t), archive); got != archive {
		t.Errorf("it prints %q", got)
	}
	if got := succeed(t, "pull", archive, "--output-folder", out); got != filepath.Join(out, "web.yaml")+"\n"+filepath.Join(out, "fedora.44.raw") {
		t.Errorf("it prints %q", got)
	}
	isWeb(t, out)
	succeed(t, "push", out, again)
	first, err := os.ReadFile(archive)
	second, also := os.ReadFile(again)
	if err != nil || also != nil || !bytes.Equal(first, second) {
		t.Errorf("the archive of what was pulled is another one, or %v, %v", err, also)
	}
	if table := succeed(t, "inspect", archive); !strings.Contains(table, "VirtualMachineTemplate web for amd64, 1 disk\n") || !strings.Contains(table, "disk fedora-44") || !strings.Contains(table, "5Mi") {
		t.Errorf("it prints %s", table)
	}
	if text := succeed(t, "inspect", archive, "--resource"); text+"\n" != template {
		t.Errorf("it prints %s", text)
	}
	var r report
	if err := json.Unmarshal([]byte(succeed(t, "inspect", archive, "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Disks) != 1 || r.Disks[0].Claim != "fedora.44" || r.Disks[0].Size != 5<<20 || r.Disks[0].File != "fedora.44.raw" || r.Kind != "VirtualMachineTemplate" || len(r.Warnings) != 0 {
		t.Errorf("report %+v", r)
	}
}

func TestResultsAsJSON(t *testing.T) {
	s := newServer(t)
	out := filepath.Join(t.TempDir(), "out")
	var pushed, pulled report
	if err := json.Unmarshal([]byte(succeed(t, "push", web(t), s.at("web:v1"), "-o", "json")), &pushed); err != nil {
		t.Fatal(err)
	}
	if len(pushed.Written) != 1 || pushed.Written[0] != s.at("web@"+pushed.Digest) || len(pushed.Disks) != 1 || pushed.Disks[0].Digest == "" {
		t.Fatalf("push: %+v", pushed)
	}
	if err := json.Unmarshal([]byte(succeed(t, "pull", pushed.Written[0], "--output-folder", out, "-o", "json")), &pulled); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(out, "web.yaml"), filepath.Join(out, "fedora.44.raw")}, pulled.Written); diff != "" || pulled.Digest != pushed.Digest {
		t.Errorf("pull: %+v, files (-want +got):\n%s", pulled, diff)
	}
	isWeb(t, out)
}

func TestVirtualMachines(t *testing.T) {
	temp := t.TempDir()
	archive, out := filepath.Join(temp, "db.tar"), filepath.Join(temp, "out")
	succeed(t, "push", folderWith(t, map[string]string{"vm.yaml": vm, "data.raw": "some data"}), archive)
	if table := succeed(t, "inspect", archive); !strings.Contains(table, "VirtualMachine db for arm64, 1 disk\n") {
		t.Errorf("it prints %s", table)
	}
	succeed(t, "pull", archive, "--output-folder", out)
	if got, err := os.ReadFile(filepath.Join(out, "data.raw")); err != nil || string(got) != "some data" {
		t.Errorf("disk %q, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(out, "db.yaml")); err != nil || !strings.Contains(string(text), "kind: VirtualMachine\n") {
		t.Errorf("VirtualMachine %s, %v", text, err)
	}
}

// digestOf is the digest in a reference.
func digestOf(reference string) string {
	_, digest, _ := strings.Cut(reference, "@")
	return digest
}

func TestRegistryByTagAndDigest(t *testing.T) {
	s := newServer(t)
	source := web(t)
	pinned := succeed(t, "push", source, s.at("templates/web:v1"))
	if !strings.HasPrefix(pinned, s.at("templates/web@sha256:")) {
		t.Errorf("it prints %s", pinned)
	}
	if sent := s.did("PATCH"); len(sent) != 2 {
		t.Errorf("requests %v", sent)
	}
	for i, from := range []string{s.at("templates/web:v1"), pinned} {
		out := filepath.Join(t.TempDir(), "out")
		succeed(t, "pull", from, "--output-folder", out)
		isWeb(t, out)
		if table := succeed(t, "inspect", from); !strings.Contains(table, "digest "+digestOf(pinned)+"\n") {
			t.Errorf("%d: it prints %s", i, table)
		}
	}
	s.forget()
	if again := succeed(t, "push", source, s.at("templates/web:v2")); again != pinned {
		t.Errorf("equal folders have the digests %s and %s", pinned, again)
	}
	if sent := s.did("P"); len(sent) != 1 {
		t.Errorf("requests %v for what the repository has", sent)
	}
	// The digest is that of the archive, and what is in it is sent unchanged.
	archive := filepath.Join(t.TempDir(), "web.tar")
	succeed(t, "push", source, archive)
	if other := succeed(t, "push", archive, s.at("other/web:v1")); digestOf(other) != digestOf(pinned) {
		t.Errorf("the archive has the digest %s, the folder %s", other, pinned)
	}
	if succeed(t, "push", archive, pinned) != pinned {
		t.Error("a push to the right digest has another result")
	}
	if code, _, messages := run(t.Context(), "push", archive, s.at("web@sha256:"+strings.Repeat("0", 64))); code != cli.ExitUsage || !strings.Contains(messages, "the artifact has the digest sha256:") {
		t.Errorf("exit code %d, %s", code, messages)
	}
}

func TestIndexOfOneArtifact(t *testing.T) {
	s := newServer(t)
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	reference, err := name.ParseReference(strings.TrimPrefix(pinned, scheme))
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: image})
	if err := remote.WriteIndex(reference.Context().Tag("index"), index); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:index"), "--output-folder", out)
	isWeb(t, out)
	// A signature of the index is one of the artifact in it.
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	key := sign(t, reference.Context(), digest.String())
	if table := succeed(t, "inspect", s.at("web:index"), "--key", key); !strings.Contains(table, ", signed by the key\n") {
		t.Errorf("it prints %s", table)
	}
}

func TestDownloadsContinueAfterCuts(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	s.forget()
	s.cutDownload = []int{100_000, 0, 0, 0, 200_000, 0, 1}
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
	var ranges []string
	for _, request := range s.did("GET /v2/web/blobs/") {
		if _, part, is := strings.Cut(request, " bytes="); is {
			ranges = append(ranges, strings.Split(part, "-")[0])
		}
	}
	if diff := cmp.Diff([]string{"100000", "100000", "100000", "100000", "300000", "300000", "300001"}, ranges); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

func TestAnotherPullContinues(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	out := filepath.Join(t.TempDir(), "out")
	s.cutDownload = []int{250_000, 0, 0, 0, 0, 0}
	code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", out)
	if code != cli.ExitCluster || !strings.Contains(messages, "what was received stays in "+out+".partial: run the command again to continue") {
		t.Fatalf("exit code %d, %s", code, messages)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	s.forget()
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
	if blobs := s.did("GET /v2/web/blobs/"); len(blobs) != 2 || !strings.Contains(blobs[1], "bytes=250000-") {
		t.Errorf("requests %v", blobs)
	}
}

func TestDamageOfAnEarlierPullIsFound(t *testing.T) {
	s := newServer(t)
	succeed(t, "push", web(t), s.at("web:v1"))
	for what, damage := range map[string]func(blob []byte) []byte{
		"other content": func(blob []byte) []byte { return bytes.Repeat([]byte{1}, len(blob)) },
		"too much":      func(blob []byte) []byte { return append(blob, make([]byte, 1<<20)...) },
	} {
		out := filepath.Join(t.TempDir(), "out")
		s.cutDownload = []int{250_000, 0, 0, 0, 0, 0}
		if code, _, messages := run(t.Context(), "pull", s.at("web:v1"), "--output-folder", out); code != cli.ExitCluster {
			t.Fatalf("exit code %d, %s", code, messages)
		}
		blobs, err := filepath.Glob(filepath.Join(out+partial, "blobs", "sha256", "*"))
		if err != nil || len(blobs) != 1 {
			t.Fatalf("blobs %v, %v", blobs, err)
		}
		received, err := os.ReadFile(blobs[0])
		if err := errors.Join(err, os.WriteFile(blobs[0], damage(received), 0o644)); err != nil {
			t.Fatal(err)
		}
		succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
		t.Log(what)
		isWeb(t, out)
	}
}

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

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
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

func TestCredentials(t *testing.T) {
	s := newServer(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, is := r.BasicAuth(); is && user == "robot" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	config := folderWith(t, map[string]string{"config.json": `{"auths":{"` + s.host + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("robot:secret")) + `"}}}`})
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if code, _, messages := run(t.Context(), "push", web(t), s.at("web:v1")); code != cli.ExitCluster || !strings.Contains(messages, "401") {
		t.Errorf("exit code %d, %s", code, messages)
	}
	t.Setenv("DOCKER_CONFIG", config)
	succeed(t, "push", web(t), s.at("web:v1"))
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", s.at("web:v1"), "--output-folder", out)
	isWeb(t, out)
}

// sign signs a digest as cosign does, and returns a file with the public key.
func sign(t *testing.T, repository name.Repository, digest string) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := must(signature.LoadSigner(private, crypto.SHA256))
	payload := []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
	made := must(signer.SignMessage(bytes.NewReader(payload)))
	image := must(mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{cosign.SignatureAnnotation: base64.StdEncoding.EncodeToString(made)},
	}))
	if err := remote.Write(repository.Tag(strings.Replace(digest, ":", "-", 1)+".sig"), image); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folderWith(t, map[string]string{"cosign.pub": string(must(cryptoutils.MarshalPublicKeyToPEM(private.Public())))}), "cosign.pub")
}

func TestSignatures(t *testing.T) {
	s := newServer(t)
	pinned := succeed(t, "push", web(t), s.at("web:v1"))
	repository := must(name.ParseReference(strings.TrimPrefix(pinned, scheme))).Context()
	key := sign(t, repository, digestOf(pinned))
	other := sign(t, repository, "sha256:"+strings.Repeat("0", 64))
	out := filepath.Join(t.TempDir(), "out")
	code, table, messages := run(t.Context(), "inspect", s.at("web:v1"), "--key", other, "-o", "json")
	if code != cli.ExitFindings || !strings.Contains(table, `"signed": false`) {
		t.Errorf("exit code %d, %s%s", code, table, messages)
	}
	code, _, messages = run(t.Context(), "pull", s.at("web:v1"), "--key", other, "--output-folder", out)
	if code != cli.ExitUsage || !strings.Contains(messages, s.at("web:v1")+" is not signed by the key in "+other) {
		t.Errorf("exit code %d, %s", code, messages)
	}
	if _, err := os.Stat(out + partial); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("layers were received: %v", err)
	}
	succeed(t, "pull", s.at("web:v1"), "--key", key, "--output-folder", out)
	isWeb(t, out)
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

// TestWhatKubeVirtsExporterWrites reads an archive that the builder of KubeVirt 1.9.0 wrote, kubevirt.io/kubevirt/pkg/storage/oci, which answers
// virtctl vmexport download --format=oci.
func TestWhatKubeVirtsExporterWrites(t *testing.T) {
	const archive = "../../../oci/testdata/kubevirt-1.9.oci.tar"
	raw := make([]byte, 8<<20)
	copy(raw, "first sector")
	copy(raw[8<<20-512:], "last sector")
	out := filepath.Join(t.TempDir(), "out")
	succeed(t, "pull", archive, "--output-folder", out)
	if got, err := os.ReadFile(filepath.Join(out, "fedora.44.raw")); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("the disk has other content, or %v", err)
	}
	// By way of a registry, it stays what it is.
	s := newServer(t)
	var local, remote report
	if err := errors.Join(
		json.Unmarshal([]byte(succeed(t, "inspect", archive, "-o", "json")), &local),
		json.Unmarshal([]byte(succeed(t, "inspect", succeed(t, "push", archive, s.at("web:v1")), "-o", "json")), &remote),
	); err != nil {
		t.Fatal(err)
	}
	remote.Artifact = local.Artifact
	if diff := cmp.Diff(local, remote); diff != "" {
		t.Errorf("in the registry (-archive +registry):\n%s", diff)
	}
}
