package seal_test

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
	command "github.com/vmstencil/stencil/cmd/stencilctl/seal"
	"github.com/vmstencil/stencil/internal/disktest"
	"github.com/vmstencil/stencil/internal/testfile"
	"github.com/vmstencil/stencil/seal"
)

// disks writes disks of seal/testdata into a folder, which becomes the working directory.
func disks(t *testing.T, names ...string) {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		raw := testfile.Expand(t, filepath.Join("..", "..", "..", "seal", "testdata", name+".zst"))
		testfile.Write(t, filepath.Join(folder, name+".raw"), raw)
	}
	t.Chdir(folder)
}

func run(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command.NewCommand(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	c.SetArgs(arguments)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestExitCodes(t *testing.T) {
	disks(t, "ext4", "ext4-sealed", "ext4-dirty")
	if err := os.WriteFile("broken.qcow2", []byte("QFI\xfb and nothing else"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, arguments string
		code            int
		message         string
	}{
		{"a sealed disk", "ext4-sealed.raw", cli.ExitOK, ""},
		{"a disk that is not sealed", "ext4.raw", cli.ExitFindings, ""},
		{"one of two disks is not sealed", "ext4-sealed.raw ext4.raw --allow-unknown", cli.ExitFindings, ""},
		{"an Unknown disk", "ext4-dirty.raw", cli.ExitFindings, ""},
		{"an Unknown disk that is allowed", "ext4-dirty.raw --allow-unknown", cli.ExitOK, ""},
		{"no disk", "nothing.raw", cli.ExitUsage, "open nothing.raw: no such file or directory"},
		{"a damaged image", "broken.qcow2", cli.ExitUsage, "broken.qcow2: qcow2: "},
		{"a format that is not that of the disk", "ext4.raw --disk-format vhdx", cli.ExitUsage, "ext4.raw: vhdx: "},
		{"a format that does not exist", "ext4.raw --disk-format vdi", cli.ExitUsage, `invalid argument "vdi" for "--disk-format" flag: must be one of auto, raw, qcow2, vmdk, vhd, vhdx`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := run(t, strings.Fields(tc.arguments)...)
			if got := cli.ExitCode(err); got != tc.code {
				t.Errorf("exit code %d, want %d: %v\n%s", got, tc.code, err, out)
			}
			if tc.message != "" && !strings.HasPrefix(err.Error(), tc.message) {
				t.Errorf("got the error %q, want %q", err, tc.message)
			}
		})
	}
}

// TestDocument compares the output with docs/seal.md.
func TestDocument(t *testing.T) {
	document := string(testfile.Read(t, "../../../docs/seal.md"))
	disks(t, "gpt", "mbr", "ext4-sealed")
	for _, arguments := range []string{"gpt.raw ext4-sealed.raw", "mbr.raw -o json"} {
		out, err := run(t, strings.Fields(arguments)...)
		if !errors.Is(err, cli.ErrFindings) {
			t.Fatal(err)
		}
		if want := "$ stencilctl seal " + arguments + "\n" + out + "```"; !strings.Contains(document, want) {
			t.Errorf("docs/seal.md does not contain:\n%s", want)
		}
	}
}

func TestFormats(t *testing.T) {
	raw := filepath.Join(t.TempDir(), "gpt.raw")
	testfile.Write(t, raw, testfile.Expand(t, "../../../seal/testdata/gpt.zst"))
	var want []seal.Finding
	for _, format := range []string{"raw", "qcow2", "vmdk", "vpc", "vhdx"} {
		out, err := run(t, disktest.Convert(t, raw, format), "-o", "json")
		if !errors.Is(err, cli.ErrFindings) {
			t.Fatalf("%s: %v", format, err)
		}
		var reports []seal.Report
		if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 1 {
			t.Fatalf("%s: %v: %s", format, err, out)
		}
		if format == "raw" {
			want = reports[0].Findings
		}
		if diff := cmp.Diff(want, reports[0].Findings); diff != "" || len(want) == 0 {
			t.Errorf("%s: %d findings\n%s", format, len(want), diff)
		}
	}
}
