package transfers_test

import (
	"bytes"
	"net/http"
	"testing"
)

// TestATemplateSurvivesItsPackage captures a VM, exports the template, deletes it, imports the package and creates a VM: its disk has the bytes of the first.
func TestATemplateSurvivesItsPackage(t *testing.T) {
	for name, tc := range map[string]struct{ format, file string }{
		"OVA": {"OVA", "golden.ova"},
		"OCI": {"OCI", "golden.oci.tar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			disk := content(uint64(len(name)))
			s.machine(t, disk)
			s.captured(t)
			e := s.export(t, "out", `, "format": "`+tc.format+`"`)
			for header, want := range map[string]int{"": http.StatusUnauthorized, "Bearer wrong": http.StatusUnauthorized} {
				if response, _ := e.get(t, http.Header{"Authorization": {header}}); response.StatusCode != want {
					t.Errorf("with %q: %s", header, response.Status)
				}
			}
			whole := e.download(t)
			export := s.uid(t, "vmte", "out")
			s.does(t, "", "delete", "vmte", "out")
			s.nothing(t, export)
			s.does(t, "", "delete", "vmt", "golden")
			s.does(t, "", "delete", "vmtr", "golden", "--ignore-not-found")
			s.gone(t, "vmt", "golden")
			s.imports(t, "again", `{"templateName": "golden", "checksum": "`+e.digest+`", "verification": "Require", "source": {"http": {"url": "`+offer(t, tc.file, whole)+`"}}}`)
			s.reaches(t, "vmti", "again", "{.status.phase}", "Succeeded")
			if got := s.boots(t, "golden", "web-2"); !bytes.Equal(got, disk) {
				t.Error("the disk of the new VM has other bytes")
			}
		})
	}
}
