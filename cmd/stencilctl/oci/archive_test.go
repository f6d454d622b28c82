package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

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

// TestCompressionsOfLayers pushes a disk in each compression, and an artifact that has layers.
func TestCompressionsOfLayers(t *testing.T) {
	folder, temp := web(t), t.TempDir()
	sizes := map[string]int64{}
	for _, compression := range []string{"Fast", "Best", "None"} {
		archive, again, out := filepath.Join(temp, compression+".tar"), filepath.Join(temp, compression+"2.tar"), filepath.Join(temp, compression)
		succeed(t, "push", folder, archive, "--compression", compression)
		succeed(t, "push", folder, again, "--compression", compression)
		succeed(t, "pull", archive, "--output-folder", out)
		isWeb(t, out)
		first, err := os.ReadFile(archive)
		second, also := os.ReadFile(again)
		if err != nil || also != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: the same folder becomes another archive, or %v, %v", compression, err, also)
		}
		sizes[compression] = int64(len(first))
	}
	// Its data are random, and the rest of their MiB zeros.
	if sizes["None"] < sizes["Fast"]+400<<10 || sizes["Best"] > sizes["Fast"] {
		t.Errorf("sizes %v", sizes)
	}
	const want = "--compression is for a folder with disks, and ARCHIVE has layers, which are written as they are\n"
	archive := filepath.Join(temp, "Fast.tar")
	if code, out, messages := run(t.Context(), "push", archive, filepath.Join(temp, "other.tar"), "--compression", "Best"); code != cli.ExitUsage || out != "" || messages != strings.Replace(want, "ARCHIVE", archive, 1) {
		t.Errorf("exit code %d, %s%s", code, out, messages)
	}
	if code, out, messages := run(t.Context(), "push", folder, filepath.Join(temp, "other.tar"), "--compression", "Strong"); code == cli.ExitOK || !strings.Contains(messages, "must be one of Fast, Best, None") {
		t.Errorf("exit code %d, %s%s", code, out, messages)
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
