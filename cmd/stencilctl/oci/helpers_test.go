package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/registry"
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
	return runWith(ctx, registry.Options{Wait: noWait}, arguments...)
}

func runWith(ctx context.Context, options registry.Options, arguments ...string) (code int, out, messages string) {
	var written, errors bytes.Buffer
	group := newCommand(cli.Streams{In: strings.NewReader(""), Out: &written, Err: &errors}, options)
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

// digestOf is the digest in a reference.
func digestOf(reference string) string {
	_, digest, _ := strings.Cut(reference, "@")
	return digest
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
