package transfers_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/vmstencil/stencil/test/bucket"
)

// TestATemplateSurvivesItsPackage captures a VM, exports the template, deletes it, imports the package and creates a VM: its disk has the bytes of the first.
func TestATemplateSurvivesItsPackage(t *testing.T) {
	for name, tc := range map[string]struct {
		format, compression string
		// source returns the source of the import, and further fields of its spec.
		source func(*testing.T, *shop, *exported, []byte) string
	}{
		"OVA": {"OVA", "Fast", func(t *testing.T, _ *shop, e *exported, whole []byte) string {
			return `{"http": {"url": "` + offer(t, "golden.ova", whole) + `"}}, "checksum": "` + e.Digest + `", "verification": "Require"`
		}},
		"OVF from a bucket": {"OVA", "Best", func(t *testing.T, s *shop, _ *exported, whole []byte) string {
			files := bucket.New(t)
			for name, content := range unpacked(t, whole) {
				files.Put(t, "golden disks/"+name, content)
			}
			s.does(t, "", "create", "secret", "generic", "bucket", "--from-literal=accessKeyId="+bucket.AccessKey, "--from-literal=secretKey="+bucket.SecretKey)
			return `{"s3": {"url": "` + files.URL + `/golden%20disks/golden.ovf", "region": "` + bucket.Region + `", "secretRef": {"name": "bucket"}}}, "verification": "Require"`
		}},
		"OCI": {"OCI", "Best", func(t *testing.T, _ *shop, _ *exported, whole []byte) string {
			return `{"registry": {"image": "` + push(t, whole) + `", "insecure": true}}`
		}},
		"OCI from a bucket": {"OCI", "None", func(t *testing.T, s *shop, e *exported, whole []byte) string {
			packages := bucket.New(t)
			packages.Put(t, "golden disks/web+1.tar", whole)
			s.does(t, "", "create", "secret", "generic", "bucket", "--from-literal=accessKeyId="+bucket.AccessKey, "--from-literal=secretKey="+bucket.SecretKey)
			return `{"s3": {"url": "` + packages.URL + `/golden%20disks/web+1.tar", "region": "` + bucket.Region + `", "secretRef": {"name": "bucket"}}}, "checksum": "` + e.Digest + `"`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			disk := content(uint64(len(name)))
			s.machine(t, disk)
			s.captured(t)
			e := s.export(t, "out", `, "format": "`+tc.format+`", "compression": "`+tc.compression+`"`)
			for header, want := range map[string]int{"": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized} {
				if response := e.get(t, http.Header{"Authorization": {header}}); response.Code != want {
					t.Errorf("with %q: status %d", header, response.Code)
				}
			}
			whole := e.download(t)
			if tc.format == "OVA" {
				e.isFolder(t, whole)
			}
			export := s.uid(t, "vmte", "out")
			s.does(t, "", "delete", "vmte", "out")
			s.nothing(t, export)
			s.removed(t)
			s.imports(t, "again", `{"templateName": "golden", "source": `+tc.source(t, s, e, whole)+`}`)
			s.reaches(t, "vmti", "again", "{.status.phase}", "Succeeded")
			// The disk has random bytes.
			if got := s.sealed(t, "vmti", "again"); !strings.HasPrefix(got, "Unknown NotExamined ") || !strings.HasSuffix(got, ": there is no partition table and no known file system") {
				t.Errorf("the import has the condition %s", got)
			}
			if got := s.boots(t, "golden", "web-2"); !bytes.Equal(got, disk) {
				t.Error("the disk of the new VM has other bytes")
			}
		})
	}
}

// unpacked are the files of an archive.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		files[header.Name] = content
	}
}

// isFolder downloads the files of an OVA one by one.
func (e *exported) isFolder(t *testing.T, whole []byte) {
	t.Helper()
	for name, want := range unpacked(t, whole) {
		of := *e.Package
		of.URL = of.URL[:strings.LastIndex(of.URL, "/")+1] + name
		if got := (&exported{&of}).get(t, e.authorized()); got.Code != http.StatusOK || !bytes.Equal(got.Body, want) {
			t.Errorf("%s: status %d with %d bytes, want %d", of.URL, got.Code, len(got.Body), len(want))
		}
	}
}
